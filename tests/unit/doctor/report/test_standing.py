"""Whether an applied change still stands in files that agents and people go on writing."""

import json
from pathlib import Path
from typing import Any

import pytest

from pegboard.config.installers.journal import Install, Journal, Redirect, digest
from pegboard.config.installers.settings import Setting
from pegboard.config.installers.undo import Change as Moved
from pegboard.doctor.plans.actions import Action, Delegated, FileChange
from pegboard.doctor.plans.edits import Edit
from pegboard.doctor.report.scope import Scope
from pegboard.doctor.report.standing import change_of, standing

SET = Edit(path=("env", "ENABLE_TOOL_SEARCH"), do="set", value="auto:5")
REMOVE = Edit(path=("mcpServers", "github", "alwaysLoad"), do="remove")


def _read(path: Path) -> bytes | None:
    return path.read_bytes() if path.exists() else None


def _action(file: Path, *edits: Edit, after: bytes = b"", **about: Any) -> Action:
    changed = FileChange(file=str(file), edits=edits, after=digest(after))
    usual: dict[str, Any] = {
        "id": "a",
        "kind": "defer-threshold",
        "finding": "f",
        "agent": "claude-code",
        "applied_at": 1.0,
        "status": "applied",
        "changes": (changed,),
    }
    return Action(**(usual | about))


def _write(file: Path, value: object) -> bytes:
    file.write_text(json.dumps(value), "utf-8")
    return file.read_bytes()


def test_a_file_as_it_was_left_stands(tmp_path: Path):
    raw = _write(tmp_path / "settings.json", {"anything": 1})
    assert standing(_action(tmp_path / "settings.json", SET, after=raw), _read, Journal()) is True


def test_a_file_that_changed_elsewhere_stands_by_its_key(tmp_path: Path):
    file = tmp_path / "settings.json"
    _write(file, {"env": {"ENABLE_TOOL_SEARCH": "auto:5"}, "model": "new"})
    assert standing(_action(file, SET), _read, Journal()) is True


@pytest.mark.parametrize("now", [{"env": {"ENABLE_TOOL_SEARCH": "false"}}, {"env": {}}, {}])
def test_a_value_that_somebody_set_otherwise_does_not_stand(tmp_path: Path, now: object):
    file = tmp_path / "settings.json"
    _write(file, now)
    assert standing(_action(file, SET), _read, Journal()) is False


def test_a_value_whose_file_is_gone_does_not_stand_but_what_was_removed_does(tmp_path: Path):
    assert standing(_action(tmp_path / "gone.json", SET), _read, Journal()) is False
    assert standing(_action(tmp_path / "gone.json", REMOVE), _read, Journal()) is True


def test_a_key_that_somebody_put_back_does_not_stand(tmp_path: Path):
    file = tmp_path / ".claude.json"
    _write(file, {"mcpServers": {"github": {"alwaysLoad": True}}})
    assert standing(_action(file, REMOVE), _read, Journal()) is False


def test_one_of_two_files_that_was_put_back_is_enough(tmp_path: Path):
    _write(tmp_path / "a.json", {"env": {"ENABLE_TOOL_SEARCH": "auto:5"}})
    _write(tmp_path / "b.json", {})
    both = tuple(FileChange(file=str(tmp_path / name), edits=(SET,), after="") for name in ("a.json", "b.json"))
    assert standing(_action(tmp_path / "a.json", changes=both), _read, Journal()) is False


@pytest.mark.parametrize("raw", [b"{ not json", b"\xff\xfe\x00", b"[1"])
def test_of_a_broken_file_nobody_can_tell(tmp_path: Path, raw: bytes):
    file = tmp_path / "settings.json"
    file.write_bytes(raw)
    assert standing(_action(file, SET), _read, Journal()) is None


def test_of_a_file_that_cannot_be_read_nobody_can_tell(tmp_path: Path):
    assert standing(_action(tmp_path, SET), _read, Journal()) is None


def _later(file: Path, *edits: Edit, **about: Any) -> Action:
    return _action(file, *edits, id="b", applied_at=2.0, **about)


@pytest.mark.parametrize(("later", "now"), [
    (Edit(path=SET.path, do="remove"), {"env": {}}),
    (Edit(path=SET.path, do="set", value="auto:1"), {"env": {"ENABLE_TOOL_SEARCH": "auto:1"}}),
    (Edit(path=SET.path, do="remove"), {"env": {"ENABLE_TOOL_SEARCH": "false"}}),
])  # fmt: skip
def test_a_key_that_a_later_change_set_anew_was_reverted_by_nobody(tmp_path: Path, later: Edit, now: object):
    file = tmp_path / "settings.json"
    _write(file, now)
    first = _action(file, SET)
    assert standing(first, _read, Journal(), [_later(file, later)]) is True
    assert standing(first, _read, Journal(), [_later(file, later, status="undone")]) is False
    assert standing(first, _read, Journal(), [_later(tmp_path / "other.json", later)]) is False


def test_a_server_that_a_later_change_took_out_takes_its_keys_along(tmp_path: Path):
    file = tmp_path / ".claude.json"
    _write(file, {"mcpServers": {}})
    pin = Edit(path=REMOVE.path, do="set", value=False)
    gone = Edit(path=REMOVE.path[:2], do="remove")
    assert standing(_action(file, pin), _read, Journal(), [_later(file, gone)]) is True
    other = Edit(path=("mcpServers", "docs"), do="remove")
    assert standing(_action(file, pin), _read, Journal(), [_later(file, other)]) is False


def test_of_a_list_only_the_element_that_is_meant_counts(tmp_path: Path):
    file = tmp_path / "settings.local.json"
    _write(file, {"disabledMcpjsonServers": ["docs"]})
    first, second = (Edit(path=("disabledMcpjsonServers",), do="add", value=name) for name in ("github", "docs"))
    assert standing(_action(file, first), _read, Journal(), [_later(file, second)]) is False


def test_of_a_key_in_a_file_that_a_later_install_changed_nobody_can_tell(tmp_path: Path):
    file = tmp_path / "settings.json"
    _write(file, {})
    later = _action(file, id="b", changes=(), delegated=(Delegated(file=str(file), after="was"),))
    assert standing(_action(file, SET), _read, Journal(), [later]) is None


def _delegated(file: Path, **about: Any) -> Action:
    part = Delegated(file=str(file), after="was")
    config = Delegated(file=str(file.with_name("pegboard.toml")), after="was", is_config=True)
    return _action(file, kind="gateway-install", changes=(), delegated=(part, config), **about)


def _installed(file: Path) -> Journal:
    moved = Moved(
        format="json", table=("mcpServers",), moved=("github",), name="pegboard", entry={"command": "pegboard"}
    )
    record = Install(client="claude-code", scope="user", file=str(file), at="", change=moved, after="was")
    return Journal(installs=(record,))


def test_the_gateway_stands_while_its_entry_is_there(tmp_path: Path):
    file = tmp_path / ".claude.json"
    _write(file, {"mcpServers": {"pegboard": {"command": "pegboard", "args": ["-v"]}}})
    assert standing(_delegated(file), _read, _installed(file)) is True
    _write(file, {"mcpServers": {"github": {}}})
    assert standing(_delegated(file), _read, _installed(file)) is False


def test_the_proxy_stands_while_the_agent_is_pointed_at_it(tmp_path: Path):
    file = tmp_path / "opencode.json"
    address = Setting(("provider", "anthropic", "options", "baseURL"), "http://127.0.0.1:8722/anthropic/v1")
    redirect = Redirect(agent="opencode", file=str(file), at="", format="json", settings=(address,), after="was")
    journal = Journal(redirects=(redirect,))
    _write(file, {"provider": {"anthropic": {"options": {"baseURL": address.value, "x": 1}}}})
    assert standing(_delegated(file), _read, journal) is True
    _write(file, {"provider": {"anthropic": {"options": {"baseURL": "https://elsewhere/v1"}}}})
    assert standing(_delegated(file), _read, journal) is False


def test_an_install_that_its_own_command_took_back_does_not_stand(tmp_path: Path):
    file = tmp_path / ".claude.json"
    _write(file, {"mcpServers": {"pegboard": {}}})
    assert standing(_delegated(file), _read, Journal()) is False


def test_without_a_baseline_the_scope_is_as_the_action_tells(tmp_path: Path):
    removal = _action(tmp_path / "x.json", kind="server-disable", servers=("my server",))
    assert change_of(removal, _read, Journal()).scope == Scope(agent="claude-code", servers=("my_server",))
    deferral = _action(tmp_path / "x.json", servers=("github",))
    assert change_of(deferral, _read, Journal()).scope == Scope(agent="claude-code", own=True)
