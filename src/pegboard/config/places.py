"""Where the platform wants a program to keep its files, and where the project's own file lies.

On Linux the answer is a variable or a folder in the home directory, so it is computed here: importing platformdirs
would cost more than reading the configuration. Above: `load` and the model. Below: nothing.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

FILE_NAME = "pegboard.toml"

Kind = Literal["config", "cache", "state"]
_XDG = {
    "config": ("XDG_CONFIG_HOME", ".config"),
    "cache": ("XDG_CACHE_HOME", ".cache"),
    "state": ("XDG_STATE_HOME", ".local/state"),
}


def user_folder(kind: Kind, environ: Mapping[str, str] | None = None) -> Path:
    """Pegboard's own folder of this kind; the XDG variables count on every platform."""
    environ = os.environ if environ is None else environ
    variable, in_home = _XDG[kind]
    named = environ.get(variable, "")
    platform: str = sys.platform  # as plain text: the other platforms' code is to be type-checked too
    if Path(named).is_absolute():
        return Path(named) / "pegboard"
    if platform == "linux":
        return Path(expand_home("~", environ)) / in_home / "pegboard"
    import platformdirs

    dirs = platformdirs.PlatformDirs("pegboard", appauthor=False)
    return {"config": dirs.user_config_path, "cache": dirs.user_cache_path, "state": dirs.user_state_path}[kind]


def user_file(environ: Mapping[str, str]) -> Path:
    """The user's own configuration file, whether it exists or not."""
    return user_folder("config", environ) / FILE_NAME


def project_file(cwd: Path) -> Path | None:
    """The nearest pegboard.toml in `cwd` or a folder above it."""
    for folder in (cwd, *cwd.parents):
        candidate = folder / FILE_NAME
        if os.path.isfile(candidate):  # noqa: PTH113 - unlike Path.is_file, false for a folder we may not enter
            return candidate
    return None


def expand_home(text: str, environ: Mapping[str, str]) -> str:
    """`text` with a leading `~` or `~user` replaced by that home folder."""
    if not text.startswith("~"):
        return text
    home = environ.get("HOME", "")
    if home and (text == "~" or text.startswith("~/")):
        return home.rstrip("/") + text[1:] if text != "~" else home
    return os.path.expanduser(text)  # noqa: PTH111 - keeps the text as it is when there is no such user
