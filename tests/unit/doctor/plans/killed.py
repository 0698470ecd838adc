"""A process whose children are killed at each call that changes the disk, one after another, while they apply or undo.

python killed.py FOLDER apply|undo|recover before|half|after. Prints one line of JSON for each call: what was left, and
what the next run made of it. It ends with the first child that was not killed.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from pegboard.doctor.plans.journal import actions
from tests.unit.doctor.plans.made import Bench, enable, setting

CALLS = ("mkdir", "open", "write", "fchmod", "fsync", "close", "replace", "unlink", "rmdir")
MOST = 400
SETTINGS = '\ufeff{\r\n\t// mine\n\t"env": {"ENABLE_TOOL_SEARCH": "false", /* x */ "A": "1",},\r\n\t"z": [1, 2]}'


def home(folder: Path) -> Bench:
    """One file behind a link, one that is not there yet, nor is its folder."""
    folder.mkdir(parents=True)
    bench = Bench(folder)
    real = bench.put("dotfiles/settings.json", SETTINGS, mode=0o640)
    link = bench.home / ".claude" / "settings.json"
    link.parent.mkdir()
    link.symlink_to(Path("..") / real.relative_to(bench.home))
    return bench


def apply(bench: Bench) -> None:
    """Changes the one file and makes the other."""
    places = [bench.home / ".claude/settings.json", bench.home / "code/new/.claude/settings.local.json"]
    bench.apply(enable(*(setting(file) for file in places), value="true"))


def undo(bench: Bench) -> None:
    """Takes back what stands."""
    [standing] = [each for each in actions(bench.state) if each.status != "undone"]
    bench.ledger.undo(standing)


def recover(bench: Bench) -> None:
    """What the next run begins with."""
    bench.ledger.recover()


def killed(work: Callable[[Bench], None], bench: Bench, which: int, how: str) -> bool:
    """Works in a child that dies at this call; tells whether it did."""
    child = os.fork()
    if not child:
        _arm(which, how)
        work(bench)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert status in (0, signal.SIGKILL), status
    return status != 0


def _arm(which: int, how: str) -> None:
    seen = 0

    def struck(call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        nonlocal seen
        seen += 1
        if seen != which:
            return call(*args, **kwargs)
        if how == "half" and call is write:
            call(args[0], bytes(args[1])[: len(args[1]) // 2])
        if how == "after":
            with suppress(OSError):
                call(*args, **kwargs)
        os.kill(os.getpid(), signal.SIGKILL)
        return None

    write = os.write
    for name in CALLS:
        real = getattr(os, name)
        setattr(os, name, lambda *args, _real=real, **kwargs: struck(_real, *args, **kwargs))


class Story:
    """What is to be told of each kill."""

    def __init__(self, folder: Path) -> None:
        bench = home(folder / "measure")
        self.before = bench.everything()
        apply(bench)
        self.after = bench.everything()

    def files(self, bench: Bench) -> str:
        """Whether the two files are old or new; nothing in between may be seen."""
        found = bench.everything()
        kinds = []
        for name in ("dotfiles/settings.json", "code/new/.claude/settings.local.json"):
            each = found.get(name)
            kinds.append("old" if each == self.before.get(name) else "new" if each == self.after[name] else "torn")
        return " ".join(kinds)

    def whole(self, bench: Bench) -> str:
        """Whether all of the home is as it was, or as it should become."""
        found = bench.everything()
        return "old" if found == self.before else "new" if found == self.after else "other"


def told(story: Story, bench: Bench) -> dict[str, Any]:
    """What was left, and what the next run makes of it; it has no part in what ran before."""
    left = story.files(bench)
    fresh = Bench(bench.home.parent)
    said = fresh.ledger.recover()
    settled = story.whole(fresh)
    statuses = [each.status for each in actions(fresh.state)]
    if "applied" in statuses:
        undo(fresh)
    apply(fresh)
    undo(fresh)
    return {"left": left, "said": said, "settled": settled, "statuses": statuses, "in the end": story.whole(fresh)}


def main() -> None:
    """All kills of one kind."""
    folder, what, how = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
    story = Story(folder)
    for which in range(1, MOST):
        bench = home(folder / str(which))
        if what == "undo":
            apply(bench)
        if what == "recover":
            # Dies where the first file is new and the second is not there yet.
            assert killed(apply, bench, _between(folder), "after")
        was_killed = killed({"apply": apply, "undo": undo, "recover": recover}[what], bench, which, how)
        print(json.dumps({"killed": was_killed, **told(story, bench)}), flush=True)
        if not was_killed:
            return
    raise AssertionError("there are more calls than were tried")


def _between(folder: Path, found: dict[str, int] = {}) -> int:  # noqa: B006 - it is found once
    if not found:
        story = Story(folder / "between")
        for which in range(1, MOST):
            bench = home(folder / "between" / str(which))
            killed(apply, bench, which, "after")
            if story.files(bench) == "new old":
                found["at"] = which
                break
    return found["at"]


if __name__ == "__main__":
    main()
