"""What `pegboard install` and `uninstall` ask of the machine: folders, the running command, where servers are written.

Above: the two commands. Below: the configuration's places and the importers' view of the machine.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping
from pathlib import Path

from pegboard.config.importers.found import Places
from pegboard.config.installers.clients import Launch, Scope
from pegboard.config.load import FILES_VARIABLE, examine
from pegboard.config.places import FILE_NAME, expand_home, user_file
from pegboard.errors import PegboardError
from pegboard.store.installs import Installs

PATIENCE = 20.0
_BARE_PATH = "/usr/bin:/bin:/usr/sbin:/sbin"
# A client that was started from a menu has not read the files in which a shell sets these.
_OUR_PLACES = ("XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME")
_PASSING = (f"{os.sep}uv{os.sep}archive-", f"{os.sep}uv{os.sep}environments-", f"{os.sep}pipx{os.sep}.cache{os.sep}")


def add_place_flags(parser: argparse.ArgumentParser) -> None:
    """The flags that say which of a client's settings are meant."""
    parser.add_argument("--scope", choices=("user", "project"), help="your own settings, or those of one project")
    parser.add_argument("--project", type=Path, metavar="DIR", help="the project's folder; means --scope project")


def scope_of(args: argparse.Namespace) -> Scope:
    """Whose settings are meant."""
    if args.scope == "user" and args.project is not None:
        raise PegboardError("--project names a folder, and --scope user has none.", hint="Use one of the two.")
    return "project" if args.scope == "project" or args.project is not None else "user"


def places_of(args: argparse.Namespace) -> Places:
    """The machine, with the project as its working folder."""
    try:
        here = Path.cwd()
    except OSError:
        raise PegboardError("The working folder is gone.", hint="Change to one that exists.") from None
    folder = here if args.project is None else Path(os.path.abspath(args.project.expanduser()))  # noqa: PTH100 - links stay
    if not folder.is_dir():
        raise PegboardError(f"There is no folder {folder}.", hint="--project names the folder of a project.")
    return Places(home=Path.home(), cwd=folder, environ=os.environ, platform=sys.platform)


def installs_of(environ: Mapping[str, str]) -> Installs:
    """The journal. Only the user's own file says where it is: an uninstall must find it from any folder."""
    user = user_file(environ)
    config = examine(files=[user] if user.is_file() else [Path(os.devnull)]).config
    return Installs(config.state_dir)


def config_file(args: argparse.Namespace, scope: Scope, places: Places) -> Path:
    """The pegboard.toml that servers are moved to."""
    named = named_files(args, places)
    if not named:
        return user_file(places.environ) if scope == "user" else places.cwd / FILE_NAME
    if named[-1].suffix.lower() != ".toml":
        raise PegboardError(f"{named[-1]} does not end in .toml.", hint="Servers are written as TOML.")
    return named[-1]


def named_files(args: argparse.Namespace, places: Places) -> list[Path]:
    """The configuration files that a flag or a variable names, in place of the user's and the project's."""
    texts = [str(file) for file in args.config]
    texts = texts or [name for name in places.environ.get(FILES_VARIABLE, "").split(os.pathsep) if name]
    return [Path(os.path.abspath(expand_home(text, places.environ))) for text in texts]  # noqa: PTH100 - links stay


def launch_of(args: argparse.Namespace, scope: Scope, places: Places, *, new_config: bool) -> Launch:
    """The command that starts this very Pegboard from anywhere, without the help of a shell.

    It names no configuration file that will not be there: Pegboard would refuse to start.
    """
    files = named_files(args, places)
    target = config_file(args, scope, places)
    absent = [file for file in files if not file.is_file() and not (new_config and file == target)]
    if absent:
        raise PegboardError(f"There is no file {absent[0]}.", hint="Write it first, or leave out --config.")
    if scope == "project" and not files:
        # Where a client starts its servers is not known, so the project is named.
        user = user_file(places.environ)
        files = [file for file in (user, target) if file.is_file() or (new_config and file == target)]
    flags = [word for file in files for word in ("--config", str(file))]
    env = {name: value for name in _OUR_PLACES if (value := places.environ.get(name))}
    return Launch((*executable(), "serve", *flags), env)


def executable() -> tuple[str, ...]:
    """The running program: the `pegboard` script by its path, or Python and the module."""
    script = Path(os.path.abspath(sys.argv[0]))  # noqa: PTH100 - a link in ~/.local/bin outlives what it points to
    if script.stem == "pegboard" and os.access(script, os.X_OK) and script.is_file():
        return (str(script),)
    return (sys.executable, "-m", "pegboard")


def is_passing(command: tuple[str, ...]) -> bool:
    """Whether the program lies in a folder that its installer may empty."""
    return any(part in command[0] for part in _PASSING)


def refuse_unstartable(command: tuple[str, ...], environ: Mapping[str, str]) -> None:
    """A client that was started from a menu has a bare PATH: what does not start there is not entered."""
    import subprocess

    bare = {"PATH": _BARE_PATH, "HOME": environ.get("HOME", "")}
    try:
        done = subprocess.run(
            [*command, "--version"],
            env=bare,
            cwd=os.sep,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PATIENCE,
            check=False,
        )
        reason = "" if done.returncode == 0 else done.stderr.decode(errors="replace").strip()[-200:] or "it failed"
    except (OSError, subprocess.TimeoutExpired) as error:
        reason = str(error)
    if reason:
        raise PegboardError(
            f"{' '.join(command)} does not start outside your shell: {reason}",
            hint="Install Pegboard for good, as with `uv tool install pegboard`, and run that.",
        )
