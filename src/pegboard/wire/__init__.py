"""MCP without I/O: framing, ids, limits and the two protocol eras, over plain JSON."""
