"""`pegboard doctor verify-endpoint`: one tiny request tells whether an endpoint takes deferral; only when asked.

What is sent is shown first. Below: `doctor.endpoint`, which sends it and remembers the answer.
"""

from __future__ import annotations

import argparse
import sys
import time
from typing import Any

import msgspec

from pegboard.cli import doctor_examine, output
from pegboard.cli.proxy_places import proxy_config
from pegboard.doctor.endpoint import Answer, Endpoints, Request, ask, endpoints_in, model_in, request_to
from pegboard.doctor.plans.verdicts import Verdict
from pegboard.doctor.settings.machine import Machine
from pegboard.errors import PegboardError

QUESTION = "Send it? [y/N] "


def configure(parser: argparse.ArgumentParser) -> None:
    """The action's own flags."""
    parser.add_argument("--url", metavar="URL", help="ask this endpoint, not the one that Claude Code is set to")
    parser.add_argument("--model", metavar="MODEL", help="a model that the endpoint knows")
    parser.add_argument("--yes", "-y", action="store_true", help="do not ask before it is sent")
    parser.add_argument("--known", action="store_true", help="send nothing; show what was found out before")


def run(args: argparse.Namespace) -> int:
    """Shows what would be sent, asks, sends and remembers."""
    endpoints = Endpoints(proxy_config(args).state_dir)
    if args.known:
        return _known(args, endpoints)
    request = _request(args, doctor_examine.here())
    if not args.json:
        _show(request)
    if not _agreed(args):
        output.say("Nothing was sent.")
        return 0
    answer = ask(request, doctor_examine.here().environ)
    if answer.takes is not None:
        endpoints.remember(_verdict(request, answer))
    if args.json:
        output.emit({"url": request.url, "model": request.model, **msgspec.to_builtins(answer)})
    else:
        _tell(request, answer)
    return 0 if answer.takes is not None else 1


def _request(args: argparse.Namespace, machine: Machine) -> Request:
    from pegboard.doctor.settings.read import read_states

    states = read_states(machine, [machine.cwd])
    model = args.model or model_in(states)
    if args.url:
        return request_to(args.url, model, machine.environ)
    found = endpoints_in(states)
    if not found:
        raise PegboardError(
            "Claude Code talks to Anthropic's own endpoint, which takes deferral; there is nothing to verify.",
            hint="--url asks another one.",
        )
    if len(found) > 1:
        raise PegboardError(f"Claude Code is set to {' and '.join(found)}.", hint="Say which with --url.")
    [(url, said)] = found.items()
    if args.yes and said.scope in ("project", "local"):
        # Whoever wrote the project's files must not decide where a key goes that nobody was asked about.
        raise PegboardError(
            f"{said.file} asks for {url}, and a project's file does not decide alone where your key goes.",
            hint=f"Say so yourself: --url {url}",
        )
    return request_to(url, model, machine.environ)


def _show(request: Request) -> None:
    body = msgspec.json.encode(request.body)
    key = f"with your key from {request.key_from}, which is not stored" if request.key_from else "without a key"
    output.say(output.printable(f"POST {request.address}, {key}:"))
    output.say(output.printable(body.decode()))
    output.say(f"{len(body)} bytes; one token of {output.printable(request.model)} is asked for.")


def _agreed(args: argparse.Namespace) -> bool:
    if args.yes:
        return True
    if args.json or not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise PegboardError("There is nobody to ask, so nothing was sent.", hint="Say --yes.")
    try:
        return input(QUESTION).strip().lower() in {"y", "yes"}
    except EOFError:
        output.say()
        return False


def _verdict(request: Request, answer: Answer) -> Verdict:
    return Verdict(url=request.url, at=time.time(), takes=bool(answer.takes), status=answer.status, said=answer.said)


def _tell(request: Request, answer: Answer) -> None:
    said = f": {answer.said}" if answer.said else "."
    if answer.takes is None:
        output.warn(output.printable(f"{request.url} answered {answer.status}, which says nothing of deferral{said}"))
        output.warn(f"  {answer.hint} Nothing was remembered.")
        return
    verb = "takes" if answer.takes else "refuses"
    output.say(output.printable(f"{request.url} {verb} deferral ({answer.status}){said} This is remembered."))


def _known(args: argparse.Namespace, endpoints: Endpoints) -> int:
    known = list(endpoints.verdicts().values())
    if args.json:
        output.emit(known)
        return 0
    if not known:
        output.say("No endpoint was verified yet.")
        return 0
    rows: list[tuple[Any, ...]] = [
        (each.url, "yes" if each.takes else "no", f"{output.age(time.time() - each.at)} ago") for each in known
    ]
    output.table(("ENDPOINT", "TAKES DEFERRAL", "ASKED"), rows)
    return 0
