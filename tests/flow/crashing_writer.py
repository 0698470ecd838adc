"""A process that writes one file with DiskFiles and comes to grief at the Nth call that changes the disk.

python crashing_writer.py TARGET CONTENT-FILE HOW N, where HOW is `kill-before`, `kill-after`, `kill-half` (of what
a write would have written) or the name of an errno. It exits with 0 when N lies beyond the last such call, with 3
when the error came out of DiskFiles, with 4 when DiskFiles could live with it. With HOW `trace` it prints the calls.
"""

from __future__ import annotations

import errno
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path

from pegboard.store.files import DiskFiles

CALLS = ("mkdir", "open", "write", "fchmod", "fsync", "close", "replace", "unlink")


def main():
    target, content, how, which = Path(sys.argv[1]), Path(sys.argv[2]).read_bytes(), sys.argv[3], int(sys.argv[4])
    struck = _arm(how, which)
    try:
        DiskFiles().write(target, content)
    except OSError:
        os._exit(3)
    os._exit(4 if struck() else 0)


def _arm(how, which):
    """Lays the trap; what it returns tells whether it has been stepped on."""
    seen = 0

    def strike(call, *args, **kwargs):
        nonlocal seen
        seen += 1
        if how == "trace":
            print(call.__name__, flush=True)
        if seen != which:
            return call(*args, **kwargs)
        if how == "kill-half" and call is write:
            call(args[0], bytes(args[1])[: len(args[1]) // 2])
        if how == "kill-after":
            with suppress(OSError):
                call(*args, **kwargs)
        if how.startswith("kill"):
            os.kill(os.getpid(), signal.SIGKILL)
        if call is close:
            call(*args, **kwargs)  # the kernel frees the descriptor whatever it answers
        code = getattr(errno, how)
        raise OSError(code, os.strerror(code))

    write, close = os.write, os.close
    for name in CALLS:
        real = getattr(os, name)
        setattr(os, name, lambda *args, _real=real, **kwargs: strike(_real, *args, **kwargs))
    return lambda: seen >= which


if __name__ == "__main__":
    main()
