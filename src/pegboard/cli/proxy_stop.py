"""`pegboard proxy stop`: ends the proxy, after making sure that it is one."""

from __future__ import annotations

import argparse

from pegboard.cli import output
from pegboard.cli.proxy_places import RESTART_HINT, base_url, proxy_config
from pegboard.cli.proxy_process import end, is_alive, is_taken, last, running
from pegboard.cli.proxy_start import tell_pointed
from pegboard.errors import PegboardError
from pegboard.proxy.tally import Running


def run(args: argparse.Namespace) -> int:
    """Lets streams finish for a while, then ends it in any case."""
    config = proxy_config(args)
    there = running(config.state_dir)
    if there is None:
        _refuse_hanging(last(config.state_dir))
        if args.json:
            output.emit({"stopped": False, "pid": None, "forced": False})
        else:
            output.say("The proxy is not running.")
        return 0
    by_itself = end(there)
    if args.json:
        output.emit({"stopped": True, "pid": there.pid, "forced": not by_itself})
        return 0
    how = "has ended" if by_itself else "did not end by itself and was killed"
    output.say(f"The proxy on {base_url(there.listen)}, process {there.pid}, {how}.")
    output.say(RESTART_HINT)
    tell_pointed(config)
    return 0


def _refuse_hanging(known: Running | None) -> None:
    """One that does not say who it is could be anybody's process, so it is not touched; but it is not "not running"."""
    if known is not None and is_alive(known.pid) and is_taken(known.listen):
        raise PegboardError(
            f"Process {known.pid} may be the proxy, but does not answer on {known.listen}.",
            hint=f"`ps -p {known.pid}` says what it is; a proxy that hangs ends with `kill -9 {known.pid}`.",
        )
