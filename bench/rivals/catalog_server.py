"""The server behind every gateway: the plain one of the tests, which also lists the definitions of a file.

`python -IS catalog_server.py MARK [FILE]`; FILE has a JSON list of definitions. A call of one answers with its name.
MARK is not read: by it a command is one gateway's alone. pmcp ends every process on the machine that has the command
of one of its servers, as a leftover of its own.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "servers"))

from plain import OPTIONS, PlainServer  # type: ignore[import-not-found]

if __name__ == "__main__":
    server = PlainServer(dict(OPTIONS))
    if len(sys.argv) > 2:
        server.named += json.loads(Path(sys.argv[2]).read_text("utf-8"))
    server.run()
