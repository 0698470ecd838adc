"""The MCP edge: puts the desk's tools, and the servers' prompts and resources, on stdio and HTTP. Decides nothing."""
