"""Reads the MCP servers that other programs already have configured."""
