"""`pegboard` in a process that is killed when it is about to make its Nth write, or just after it.

python crashing_installer.py before|after N install cursor --yes. It exits as `pegboard` does when N lies beyond the
last write.
"""

from __future__ import annotations

import os
import signal
import sys

from pegboard.cli.main import main
from pegboard.store.files import DiskFiles

write = DiskFiles.write
seen = 0


def struck(self, path, content):
    global seen
    seen += 1
    if seen == int(sys.argv[2]) and sys.argv[1] == "before":
        os.kill(os.getpid(), signal.SIGKILL)
    write(self, path, content)
    if seen == int(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    DiskFiles.write = struck  # type: ignore[method-assign]
    sys.exit(main(sys.argv[3:]))
