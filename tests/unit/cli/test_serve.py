"""What `pegboard serve` refuses before it serves anybody."""

from __future__ import annotations

from pathlib import Path

import pytest

from pegboard.cli.main import main


@pytest.fixture(autouse=True)
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GOOD", "x" * 32)
    monkeypatch.setenv("SHORT", "secret-7")
    (tmp_path / "pegboard.toml").write_text(f'[store]\ncache_dir = "{tmp_path}"\nstate_dir = "{tmp_path}"\n')


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--http", "0.0.0.0:0"], "can be reached from other machines"),
        (["--http", "[::]:0"], "can be reached from other machines"),
        (["--http", "example.com:0"], "can be reached from other machines"),
        (["--http", "127.0.0.1:99999"], "no HOST:PORT"),
        (["--http", "127.0.0.1"], "no HOST:PORT"),
        (["--http", "x:y"], "no HOST:PORT"),
        (["--http", "0", "--token-env", "SHORT"], "no token of at least 16"),
        (["--http", "0", "--token-env", "NOT_SET"], "no token of at least 16"),
        (["--http", "203.0.113.1:0", "--token-env", "GOOD"], "Cannot listen on 203.0.113.1:0"),
    ],
)
def test_a_listener_that_would_be_unsafe_or_cannot_be_is_refused_with_words(
    flags: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["-c", "pegboard.toml", "serve", *flags]) == 1
    shown = capsys.readouterr()
    assert words in shown.err
    assert shown.out == ""
    assert "secret-7" not in shown.err
    assert "Traceback" not in shown.err
