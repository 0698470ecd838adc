"""`pegboard proxy status`: what the proxy has done so far; or, when it is down, how agents work without it."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Mapping
from typing import Any

import msgspec

from pegboard.cli import output
from pegboard.cli.proxy_places import base_url, proxy_config, variables_set
from pegboard.cli.proxy_process import last, running
from pegboard.config.installers.journal import Redirect
from pegboard.config.model import Config
from pegboard.errors import PegboardError
from pegboard.proxy.tally import Running, Tally, Tokens
from pegboard.store.redirects import Redirects

EVERY = 1.0
DOWN = 1
_CLEAR = "\x1b[H\x1b[J"


def run(args: argparse.Namespace) -> int:
    """Shows where everything stands, once or again and again."""
    config = proxy_config(args)
    if not args.watch:
        return _show(args, config)
    try:
        return _watch(args, config)
    except KeyboardInterrupt:
        return 0


def _watch(args: argparse.Namespace, config: Config) -> int:
    in_place = sys.stdout.isatty() and not args.json
    while True:
        if in_place:
            sys.stdout.write(_CLEAR)
        code = _show(args, config)
        if not in_place and not args.json:
            output.say()
        sys.stdout.flush()
        if _is_over(EVERY):
            return code


def _is_over(seconds: float) -> bool:
    """Whether whoever feeds this command has gone; otherwise the time has passed."""
    if sys.stdin is None or sys.stdin.isatty():
        time.sleep(seconds)
        return False
    import select

    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        ready, _, _ = select.select([sys.stdin.fileno()], [], [], left)
        if ready and not os.read(sys.stdin.fileno(), 4096):
            return True
    return False


def _show(args: argparse.Namespace, config: Config) -> int:
    there = running(config.state_dir)
    known = there or last(config.state_dir)
    agents, variables = _agents(Redirects(config.state_dir)), variables_set(config)
    if args.json:
        found = _as_json(known, is_running=there is not None) | {"agents": agents, "variables": variables}
        if args.watch:
            output.say(msgspec.json.encode(found).decode())
        else:
            output.emit(found)
    else:
        _tell(there, known)
        if there is None:
            _tell_direct(agents, variables)
    return 0 if there is not None else DOWN


def _tell(there: Running | None, known: Running | None) -> None:
    if there is not None:
        since = output.age(time.time() - there.started_at)
        output.say(f"The proxy runs: {base_url(there.listen)}, process {there.pid}, for {since}.")
    else:
        output.say("The proxy is not running. `pegboard proxy start` begins it.")
    if known is not None:
        if there is None:
            output.say("Until it ended it counted:")
        _tell_counts(known.tally, is_running=there is not None)


# ── counts ───────────────────────────────────────────────────────────────────────────────────────────────────────


def _tell_counts(tally: Tally, *, is_running: bool) -> None:
    deferred, passed = sum(tally.deferred.values()), sum(tally.passed.values())
    open_now = f"; {tally.streaming:,} streams are open" if tally.streaming and is_running else ""
    rows = (
        ("requests", f"{tally.requests:,}{open_now}"),
        ("deferred", f"{deferred:,}{_in_brackets(tally.deferred)}"),
        ("counted", f"{tally.counted:,} requests that only count tokens, as if deferred"),
        ("passed", f"{passed:,}{_in_brackets(tally.passed)}"),
        ("tools", f"{tally.tools_deferred:,} definitions deferred"),
        ("tokens", _definitions(tally)),
        ("searches", f"{tally.searches:,}, of which {tally.searches_empty:,} found nothing"),
        ("rounds", f"{tally.rounds:,} that clients did not ask for themselves"),
        ("failures", f"{sum(tally.failures.values()):,}{_in_brackets(tally.failures)}"),
    )
    for label, text in rows:
        output.say(f"{label:9} {output.printable(text)}")
    output.say()
    header = ("", "replies", "tokens in", "tokens out", "from cache", "to cache")
    output.table(header, [_cells("passed", tally.direct_tokens), _cells("deferred", tally.deferred_tokens)])


def _in_brackets(counts: Mapping[str, int]) -> str:
    most = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return f" ({', '.join(f'{name} {count:,}' for name, count in most)})" if most else ""


def _definitions(tally: Tally) -> str:
    before, after = tally.definition_tokens_before, tally.definition_tokens_after
    share = f", {after / before:.0%}" if before else ""
    return f"of definitions {before:,} {output.symbol('→', '->')} {after:,}{share}"


def _cells(name: str, tokens: Tokens) -> tuple[str, ...]:
    numbers = (f"{tokens.requests:,}", f"{tokens.input:,}", f"{tokens.output:,}")
    return (name, *numbers, f"{tokens.read_share:.0%}", f"{tokens.write_share:.0%}")


# ── agents ───────────────────────────────────────────────────────────────────────────────────────────────────────


def _agents(redirects: Redirects) -> list[dict[str, Any]]:
    """Every file that is pointed at the proxy, with what stood there before."""
    return [
        {"agent": each.agent, "file": each.file, "direct": _direct(redirects, each)}
        for each in redirects.journal().redirects
        if not each.is_config
    ]


def _direct(redirects: Redirects, record: Redirect) -> dict[str, str | None]:
    try:
        return redirects.direct(record)
    except PegboardError:
        return {}


def _tell_direct(agents: list[dict[str, Any]], variables: list[str]) -> None:
    if not agents and not variables:
        return
    output.say()
    output.say("Pointed at it, and of no use until it runs again:")
    if variables:
        output.say(f"  this shell  {', '.join(variables)}")
        output.say(f"    `unset {' '.join(variables)}` lets what is started from it work without the proxy.")
    for each in agents:
        output.say(output.printable(f"  {each['agent']}  {each['file']}"))
        for name, value in each["direct"].items():
            output.say(output.printable(f"    directly: {name} {'is not set' if value is None else f'= {value}'}"))
        output.say(f"    `pegboard proxy uninstall {each['agent']}` does that.")


def _as_json(known: Running | None, *, is_running: bool) -> dict[str, Any]:
    plain: dict[str, Any] = {} if known is None else msgspec.to_builtins(known)
    if known is not None:
        for name in ("direct_tokens", "deferred_tokens"):
            tokens: Tokens = getattr(known.tally, name)
            plain["tally"][name] |= {"read_share": tokens.read_share, "write_share": tokens.write_share}
    return {"running": is_running, **plain}
