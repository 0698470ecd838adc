"""A person at a real terminal: questions, Ctrl-C, Ctrl-D, and terminals that cannot show everything."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.servers import plain_command

ERAS = ("modern", "legacy")
IN_CONTROL = """
import fcntl, os, signal, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.execv(sys.argv[1], sys.argv[1:])
"""
"""Makes the terminal the process's own, so that Ctrl-C reaches it, also where a background job ignores it."""


class Terminal:
    """`pegboard call` of a tool that asks for a name, in a pseudo-terminal."""

    def __init__(self, folder: Path, era: str, kind: str = "string") -> None:
        program, *arguments = plain_command("--era", era, "--asks", kind)
        text = f'[servers.one]\ncommand = "{program}"\nargs = {arguments!r}\n[store]\ncache_dir = "{folder}/cache"\n'
        (folder / "pegboard.toml").write_text(text.replace("'", '"'))
        self._folder = folder

    def call(self, *typed: tuple[str, str]) -> tuple[int, str]:
        """Types each answer once its prompt has come; the exit code and all that was shown."""
        command = [sys.executable, "-m", "pegboard", "call", "one__ask", '{"question": "Who?"}']
        terminal, inside = pty.openpty()
        with subprocess.Popen(
            [sys.executable, "-c", IN_CONTROL, *command],
            cwd=self._folder,
            start_new_session=True,
            stdin=inside,
            stdout=inside,
            stderr=inside,
        ) as process:
            os.close(inside)
            try:
                shown = self._converse(terminal, typed)
            except BaseException:
                process.kill()
                raise
        os.close(terminal)
        return process.returncode, shown

    def _converse(self, terminal: int, typed: Sequence[tuple[str, str]]) -> str:
        shown, seen, left = "", 0, list(typed)
        while data := _read(terminal):
            shown += data
            if left and left[0][0] in shown[seen:]:
                seen = len(shown)
                os.write(terminal, left.pop(0)[1].encode())
        return shown


def _read(terminal: int) -> str:
    try:
        return os.read(terminal, 4096).decode()
    except OSError:  # how Linux says that nobody has the other end open any more
        return ""


@pytest.mark.parametrize("era", ERAS)
def test_a_question_is_answered_at_the_terminal(tmp_path: Path, era: str) -> None:
    code, shown = Terminal(tmp_path, era).call(("name: ", "Ada\n"), ("[y/N] ", "y\n"))
    assert "The server asks: Who?" in shown
    assert "accept Ada" in shown
    assert code == 0


@pytest.mark.parametrize("era", ERAS)
def test_nothing_is_sent_unless_the_person_agrees(tmp_path: Path, era: str) -> None:
    assert "decline" in Terminal(tmp_path, era).call(("name: ", "Ada\n"), ("[y/N] ", "\n"))[1]


@pytest.mark.parametrize("era", ERAS)
def test_the_end_of_input_cancels_the_question_and_not_pegboard(tmp_path: Path, era: str) -> None:
    code, shown = Terminal(tmp_path, era).call(("name: ", "\x04"))
    assert "cancel" in shown
    assert "Traceback" not in shown
    assert code == 0


@pytest.mark.parametrize("era", ERAS)
def test_an_interrupt_ends_a_call_that_waits_for_an_answer(tmp_path: Path, era: str) -> None:
    code, shown = Terminal(tmp_path, era).call(("name: ", "\x03"))
    assert "Traceback" not in shown
    assert code == 130


def test_a_number_that_is_none_is_asked_for_again(tmp_path: Path) -> None:
    answers = (("name: ", "three\n"), ("name: ", "3\n"), ("[y/N] ", "y\n"))
    shown = Terminal(tmp_path, "modern", "integer").call(*answers)[1]
    assert "That is not a whole number." in shown
    assert "accept 3" in shown


def ascii_only(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environ = {**os.environ, "PYTHONIOENCODING": "ascii"}
    command = [sys.executable, "-m", "pegboard", *arguments]
    return subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, timeout=50, check=False)


def test_a_terminal_without_unicode_gets_the_same_words(tmp_path: Path) -> None:
    Terminal(tmp_path, "modern")
    refreshed = ascii_only(tmp_path, "refresh")
    assert "+ one: 9 tools" in refreshed.stdout
    roster = ascii_only(tmp_path, "servers")
    assert "------" in roster.stdout.splitlines()[1]
    answered = ascii_only(tmp_path, "call", "one__echo", '{"text": "caf\\u00e9"}')
    assert answered.stdout == "caf\\xe9\n"
    assert [refreshed.stderr, roster.stderr, answered.stderr] == ["", "", ""]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_full_disk_behind_the_output_is_said_in_words(tmp_path: Path) -> None:
    Terminal(tmp_path, "modern")
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "pegboard", "servers"],
            cwd=tmp_path,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=50,
            check=False,
        )
    assert done.stderr == "pegboard: The output cannot be written: No space left on device\n"
    assert done.returncode == 1
