"""`pegboard login`: signs in to a remote server with a browser, or forgets that one did."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from pegboard.cli import output
from pegboard.cli.context import load_with_servers, port, seconds
from pegboard.config.model import Config, ServerSpec
from pegboard.errors import PegboardError, ServerNotFound, ServerUnavailable

if TYPE_CHECKING:
    from pegboard.engine import Refreshed
    from pegboard.upstream.oauth import Registration


def configure(parser: argparse.ArgumentParser) -> None:
    """The command's own flags."""
    parser.add_argument("server", help="its name in the configuration")
    parser.add_argument("--forget", action="store_true", help="delete the tokens kept for it instead of signing in")
    parser.add_argument("--no-browser", action="store_true", help="only print the address to open")
    parser.add_argument(
        "--port", type=port, default=0, help="port of 127.0.0.1 the browser comes back to; default: any"
    )
    parser.add_argument("--timeout", type=seconds, default=300.0, metavar="SECONDS", help="how long to wait for you")
    parser.add_argument("--client-id", default="", metavar="ID", help="a client registered beforehand")
    parser.add_argument("--client-secret-env", default="", metavar="VARIABLE", help="variable that holds its secret")
    parser.add_argument("--client-metadata-url", default="", metavar="URL", help="https address of client metadata")


def run(args: argparse.Namespace) -> int:
    """Signs in, and lists the server's tools to show that it works."""
    config = load_with_servers(args)
    spec = _spec(config, args.server)
    if args.forget:
        return _forget(config, spec, as_json=args.json)
    _refuse_unusable(spec)
    signed_in, outcome = asyncio.run(_login(config, spec, args))
    if args.json:
        output.emit({"server": spec.name, "signed_in": signed_in, "tools": outcome.tools, "error": outcome.error})
    elif outcome.error:
        output.warn(f"pegboard: {output.printable(outcome.error)}")
        output.warn(f"  {output.printable(outcome.hint)}" if outcome.hint else "")
    else:
        how = f"Signed in to {spec.name}" if signed_in else f"{spec.name} asks for no sign-in"
        output.say(f"{how}: {outcome.tools} tools.")
    return 1 if outcome.error else 0


def _spec(config: Config, name: str) -> ServerSpec:
    spec = config.servers.get(name)
    if spec is None:
        from pegboard.catalog.nearest import nearest

        raise ServerNotFound(name, nearest(name, config.servers))
    return spec


def _refuse_unusable(spec: ServerSpec) -> None:
    if spec.problem:
        raise ServerUnavailable(spec.name, spec.problem, hint="`pegboard config check` shows where.")
    if not spec.config.enabled:
        raise ServerUnavailable(spec.name, "it is disabled", hint=f"Set `enabled = true` in servers.{spec.name} first.")


def _forget(config: Config, spec: ServerSpec, *, as_json: bool) -> int:
    from pegboard.upstream.tokens import forget_sign_in

    try:
        was_there = forget_sign_in(spec, config.state_dir)
    except OSError as error:
        raise PegboardError(f"The tokens of {spec.name} cannot be deleted: {error.strerror}.") from None
    if as_json:
        output.emit({"server": spec.name, "forgotten": was_there})
    else:
        output.say(f"The tokens of {spec.name} are deleted." if was_there else f"No tokens of {spec.name} were kept.")
    return 0


async def _login(config: Config, spec: ServerSpec, args: argparse.Namespace) -> tuple[bool, Refreshed]:
    from pegboard.engine import Engine
    from pegboard.upstream.sign_in import sign_in

    async def open_url(url: str) -> None:
        output.warn(f"Sign in to {spec.name} here:\n\n  {output.printable(url)}\n")
        sys.stderr.flush()
        if not args.no_browser and not await asyncio.to_thread(_open_browser, url):
            output.warn("No browser could be opened: please open that address yourself.")

    signed_in = await sign_in(
        spec,
        config.state_dir,
        open_url=open_url,
        port=args.port,
        timeout=args.timeout,
        registration=_registration(args),
        gateway=config.gateway,
    )
    async with Engine(config) as engine:
        outcomes = await engine.refresh([spec.name])
    return signed_in, outcomes[0]


def _registration(args: argparse.Namespace) -> Registration | None:
    from pegboard.upstream.oauth import Registration

    secret = os.environ.get(args.client_secret_env, "") if args.client_secret_env else ""
    if args.client_secret_env and not secret:
        raise PegboardError(f"The variable {args.client_secret_env} is not set.")
    if secret and not args.client_id:
        raise PegboardError("A client secret is of no use without its --client-id.")
    if not args.client_id and not args.client_metadata_url:
        return None
    return Registration(client_id=args.client_id, client_secret=secret, metadata_url=args.client_metadata_url)


def _open_browser(url: str) -> bool:
    """Opens a window; no shell is involved. False when there is nothing to open one with."""
    import webbrowser
    from urllib.parse import urlsplit

    if urlsplit(url).scheme not in ("http", "https"):
        return False
    try:
        browser = webbrowser.get()
    except webbrowser.Error:
        return False
    # Browsers that run in the terminal would take it over; whoever wants one says so in BROWSER.
    if type(browser) is webbrowser.GenericBrowser and not os.environ.get("BROWSER"):
        return False
    with _out_of_the_answer():
        return browser.open(url)


@contextlib.contextmanager
def _out_of_the_answer() -> Iterator[None]:
    """What a program prints that is started here goes to stderr: stdout is for the answer."""
    sys.stdout.flush()
    answer = os.dup(1)
    try:
        os.dup2(2, 1)
        yield
    finally:
        os.dup2(answer, 1)
        os.close(answer)
