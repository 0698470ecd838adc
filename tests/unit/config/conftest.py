"""A place of one's own: an empty home, an empty project, and an environment that knows nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from pegboard.config.load import Examination, examine, load
from pegboard.config.model import Config


class Place:
    """A project folder and a user's configuration folder, with the environment that leads to them."""

    def __init__(self, root: Path) -> None:
        self.home = root / "home"
        self.project = root / "project"
        self.home.mkdir()
        self.project.mkdir()
        self.environ = {
            "HOME": str(self.home),
            "XDG_CONFIG_HOME": str(self.home / ".config"),
            "PATH": "/usr/bin:/bin",
        }

    def write(self, text: str, name: str = "pegboard.toml") -> Path:
        """A file of the project."""
        path = self.project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def write_json(self, value: object, name: str = ".mcp.json") -> Path:
        """A JSON file of the project."""
        return self.write(msgspec.json.format(msgspec.json.encode(value), indent=2).decode(), name)

    def write_user(self, text: str) -> Path:
        """The user's own file."""
        path = self.home / ".config" / "pegboard" / "pegboard.toml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def load(self, *, files: Sequence[Path] = (), overrides: Sequence[str] = (), **variables: str) -> Config:
        """What the configuration is here."""
        environ = {**self.environ, **variables}
        return load(files=files, overrides=overrides, environ=environ, cwd=self.project)

    def examine(self, *, files: Sequence[Path] = (), overrides: Sequence[str] = (), **variables: str) -> Examination:
        """What the configuration is here, with all that is wrong with it."""
        environ = {**self.environ, **variables}
        return examine(files=files, overrides=overrides, environ=environ, cwd=self.project)

    def problems(self, *, files: Sequence[Path] = (), overrides: Sequence[str] = (), **variables: str) -> list[str]:
        """Only what is wrong, with the project's folder cut off."""
        found = self.examine(files=files, overrides=overrides, **variables).problems
        return [str(problem).replace(f"{self.project}/", "") for problem in found]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """An empty project."""
    return Place(tmp_path)
