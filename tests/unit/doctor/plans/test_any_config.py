"""Whatever settings say and however they are written: a change touches its key alone, and undoing gives the bytes back.

Seeds make the cases, so each failure can be seen again. Ten thousand of them run in `make test-all`.
"""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest

from pegboard.config.installers.documents import format_of, parse
from pegboard.doctor.plans.actions import Action
from pegboard.doctor.plans.journal import actions
from pegboard.doctor.plans.plan import Plan
from pegboard.errors import PegboardError
from tests.unit.doctor.plans.cases import Case, File, case
from tests.unit.doctor.plans.made import Bench

UNWRITABLE = "cannot be changed as this file is written"
_MOST_NEW_LINES = 8


def lived(seed: int, folder: Path) -> str:
    """Plans, applies, is meddled with and undoes; says how it ended."""
    bench = Bench(folder)
    each = case(seed, bench)
    rng = Random(f"meddling {seed}")
    before = bench.everything()
    plan = bench.plan(each.fix)
    if plan.refusal:
        assert UNWRITABLE in plan.refusal, plan.refusal
        return "refused as written"
    if each.is_locked:
        with pytest.raises(PegboardError, match="is read-only"):
            bench.ledger.apply(plan)
        assert bench.everything() == before
        return "locked"
    if rng.random() < 0.15:
        _meddle_before(bench, plan, rng, before)
    action = bench.ledger.apply(plan)
    _check_applied(bench, each, plan, before)
    if rng.random() < 0.25:
        _meddle_between(bench, plan, action, rng)
    bench.ledger.undo(action)
    assert bench.everything() == before, "bytes, modes, links and folders are what they were"
    assert [found.status for found in actions(bench.state)] == ["undone"]
    assert list((bench.state / "doctor/backups").glob("*.bak")) == []
    return "undone"


# ── applied ──────────────────────────────────────────────────────────────────────────────────────────────────────


def _check_applied(bench: Bench, each: Case, plan: Plan, before: dict[str, Any]) -> None:
    after = bench.everything()
    assert len(plan.files) == len(each.files)
    for file, edit in zip(each.files, plan.files, strict=True):
        raw = file.path.read_bytes()
        assert raw.decode() == edit.after
        said = parse(edit.after, format_of(file.path.name))
        assert _seen(said, file) == _seen(file.wanted, file)
        _check_text(file, edit.before or "", edit.after)
    changed = {name for name in after if before.get(name) != after[name]}
    real = {str(file.path.resolve().relative_to(bench.home.resolve())) for file in each.files}
    made = {str(parent) for name in real for parent in Path(name).parents}
    assert real <= changed <= real | made, "nothing else changed"
    assert before.keys() <= after.keys(), "nothing is left over, and nothing went"
    for name in real & before.keys():
        assert after[name][1] == before[name][1], "the mode stays"


def _seen(document: dict[str, Any], file: File) -> dict[str, Any]:
    """What can be told of it: in TOML, a table that dotted keys make is gone with its last key."""
    outer = file.target[0]
    is_gone = file.format == "toml" and document.get(outer) == {}
    return {key: value for key, value in document.items() if not is_gone or key != outer}


def _check_text(file: File, before: str, after: str) -> None:
    """Comments, order, line ends and the byte-order mark stay; what is new is a few lines."""
    assert after.startswith("\ufeff") == before.startswith("\ufeff")
    lost = [
        text for text, keys in file.comments.items() if text not in after and keys[: len(file.target)] != file.target
    ]
    assert lost == []
    new = set(after.splitlines()) - set(before.splitlines())
    assert len(new) <= _MOST_NEW_LINES, new
    if file.format != "toml":
        old, now = (list(parse(text, format_of(file.path.name))) for text in (before, after))
        assert now == [*(key for key in old if key in now), *(key for key in now if key not in old)], (
            "in the same order"
        )
    if file.hand is not None and file.hand.newline in before:
        ends = after.count("\r\n") if file.hand.newline == "\r\n" else after.count("\n") - after.count("\r")
        assert ends == after.count("\n"), "line ends are of one kind"


# ── meddling ─────────────────────────────────────────────────────────────────────────────────────────────────────


def _meddle_before(bench: Bench, plan: Plan, rng: Random, before: dict[str, Any]) -> None:
    """Between plan and apply: refused, theirs stays, what was planned on is kept; then it is as if nothing had been."""
    edit = rng.choice(plan.files)
    new_folders = [folder for folder in edit.file.resolve().parents if not folder.exists()]
    theirs = _foreign(edit.file, rng)
    with pytest.raises(PegboardError, match="was changed in the meantime") as caught:
        bench.ledger.apply(plan)
    assert (edit.file.read_bytes() if edit.file.exists() else None) == theirs
    assert actions(bench.state) == ()
    if edit.before is not None:
        [kept] = (bench.state / "doctor/backups").glob("*.planned")
        assert str(kept) in caught.value.message
        assert kept.read_bytes() == edit.before.encode()
    _put_back(edit.file, None if edit.before is None else edit.before.encode())
    for folder in new_folders:
        folder.rmdir()
    assert bench.everything() == before


def _meddle_between(bench: Bench, plan: Plan, action: Action, rng: Random) -> None:
    """Between apply and undo: refused, theirs stays, what was before is kept; then theirs goes again."""
    after = bench.everything()
    change, edit = rng.choice(list(zip(action.changes, plan.files, strict=True)))
    file = Path(change.file)
    ours = file.read_bytes()
    theirs = _foreign(file, rng)
    with pytest.raises(PegboardError, match="was changed since, and was left as it is") as caught:
        bench.ledger.undo(action)
    assert (file.read_bytes() if file.exists() else None) == theirs
    kept = bench.ledger.kept_at(change)
    if kept is None:
        assert "there was no such file" in caught.value.message
    else:
        assert str(kept) in caught.value.message
        assert kept.read_bytes() == (edit.before or "").encode()
    _put_back(file, ours)
    assert bench.everything() == after


def _foreign(file: Path, rng: Random) -> bytes | None:
    """What somebody else makes of a file, in place; None when it is gone."""
    if not file.exists():
        file.resolve().parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"{}")
        return b"{}"
    raw = file.read_bytes()
    theirs = rng.choice([raw + b" ", raw + b"\n", b"\xef\xbb\xbf" + raw, raw.replace(b"a", b"b") + b"#", b"{", b"\xff"])
    file.write_bytes(theirs)
    return theirs


def _put_back(file: Path, raw: bytes | None) -> None:
    if raw is None:
        file.resolve().unlink()
    else:
        file.write_bytes(raw)


# ── how many ─────────────────────────────────────────────────────────────────────────────────────────────────────


def _live(seeds: range, folder: Path) -> Counter[str]:
    ends: Counter[str] = Counter()
    for seed in seeds:
        home = folder / str(seed)
        home.mkdir()
        try:
            ends[lived(seed, home)] += 1
        except Exception as error:
            raise AssertionError(f"seed {seed}: {error}") from error
        shutil.rmtree(home)
    return ends


def _are_telling(ends: Counter[str]) -> bool:
    """Whether nearly all went the whole way."""
    return ends["undone"] > 0.85 * ends.total() and ends["refused as written"] < 0.05 * ends.total()


@pytest.mark.parametrize("start", range(0, 400, 100))
def test_any_config_has_its_bytes_back(start, quick):
    assert _are_telling(_live(range(start, start + 100), quick))


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("start", range(0, 10_000, 2_500))
def test_ten_thousand_configs_have_their_bytes_back(start, quick):
    assert _are_telling(_live(range(start, start + 2_500), quick))
