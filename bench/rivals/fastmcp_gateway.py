"""fastmcp as a gateway on stdio: one kept connection a server, mounted under its name; `search` adds its transform.

`python fastmcp_gateway.py CONFIG [search]`. A proxy made of the whole configuration at once would start every server
anew for each call; this is the way that does not.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from fastmcp import FastMCP  # type: ignore[import-not-found]
from fastmcp.client.transports import StdioTransport  # type: ignore[import-not-found]
from fastmcp.server import create_proxy  # type: ignore[import-not-found]
from fastmcp.server.transforms.search import BM25SearchTransform  # type: ignore[import-not-found]


def main(config: Path, *, search: bool) -> None:
    """Serves until stdin ends."""
    gateway = FastMCP("bench")
    for name, server in json.loads(config.read_text("utf-8"))["mcpServers"].items():
        transport = StdioTransport(server["command"], server["args"], keep_alive=True)
        gateway.mount(create_proxy(transport), namespace=name)
    if search:
        gateway.add_transform(BM25SearchTransform())
    gateway.run(show_banner=False, log_level="ERROR")


if __name__ == "__main__":
    main(Path(sys.argv[1]), search="search" in sys.argv[2:])
