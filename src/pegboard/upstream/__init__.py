"""Supervised connections to MCP servers: stdio, streamable HTTP and legacy SSE."""
