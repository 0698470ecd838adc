"""What a session of 20 turns with 100 tools costs: direct, with the API's own search, and through the bridge.

No model is asked: the API is `FakeLLM` on a socket, which plays the same script for all three, refuses what the real
one is documented to refuse, and reckons its cache by bytes, four to a token. Definitions are weighed by Pegboard's
estimate of tokens. The proxy is a process of its own, as people start it.
"""

from __future__ import annotations

import contextlib
import socket
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import uvicorn

from bench.measure import table
from bench.proxy import tools
from bench.proxy.agent import SEARCH, TURNS, Client, Player, plan
from bench.proxy.caller import Caller
from bench.proxy.subjects import BRIDGE, DIRECT, NATIVE, Subject, pegboard
from pegboard.doctor.prices import price_of
from pegboard.surface.tokens import WORD_PIECES
from pegboard.testing import FakeLLM
from pegboard.testing.script import Shown
from pegboard.types import Json

EXECUTORS = {DIRECT: "", NATIVE: "native", BRIDGE: "bridge"}
AIM_FEWER, MILLION = 0.6, 1_000_000
JOIN_S = 20.0


class Session(msgspec.Struct):
    """What one of them came to, over all requests that reached the API."""

    requests: int
    calls: list[str]
    """What the client ran, in order."""
    first_definitions: int
    """Tokens of definitions in the first request."""
    definitions: int
    """Tokens of definitions, those among them that searches brought."""
    input: int
    """Tokens that were neither read from the cache nor written to it."""
    read: int
    written: int
    output: int
    lost: int
    """Tokens that an earlier request began with too, and that were not read from the cache all the same."""

    @property
    def sent(self) -> int:
        """All tokens of input."""
        return self.input + self.read + self.written

    @property
    def read_share(self) -> float:
        """Of all tokens of input, what came from the cache."""
        return self.read / self.sent

    @property
    def dollars(self) -> float:
        """Of the input, at list prices; the output is next to the same for all."""
        price = price_of(tools.MODEL)
        assert price is not None
        weighed = self.input + self.read * price.read + self.written * price.write
        return weighed * price.input / MILLION


def run(folder: Path, turns: int = TURNS) -> Json:
    """All three, one table, and whether the aims are met."""
    found: dict[str, Session] = {}
    for name, executor in EXECUTORS.items():
        print(f"  a session of {turns} turns: {name} …", file=sys.stderr, flush=True)
        found[name] = measured(name, executor, folder / "session", turns)
    _show(found, turns)
    return {name: _figures(each) for name, each in found.items()}


def measured(name: str, executor: str, folder: Path, turns: int) -> Session:
    """One session over a socket; an executor's proxy stands in between."""
    folder.mkdir(exist_ok=True)
    player = Player(plan(turns))
    fake = FakeLLM(player)
    with contextlib.ExitStack() as stack:
        port = stack.enter_context(served(fake))
        subject = Subject(name=name, port=port)
        if executor:
            subject = stack.enter_context(pegboard(name, executor, port, folder))
        caller = Caller(subject)
        stack.callback(caller.close)
        client = Client(caller, tools.definitions())
        for number in range(turns):
            client.turn(number)
    return _summed(fake, player, client)


@contextlib.contextmanager
def served(fake: FakeLLM) -> Iterator[int]:
    """The API on a port of this machine, for as long as the block lasts."""
    application: Any = fake
    server = uvicorn.Server(uvicorn.Config(application, log_level="error", lifespan="off", ws="none"))
    with socket.create_server(("127.0.0.1", 0)) as listening:
        # Without it the last piece of a reply waits for the client's acknowledgement.
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        try:
            yield int(listening.getsockname()[1])
        finally:
            server.should_exit = True
            thread.join(JOIN_S)


def _summed(fake: FakeLLM, player: Player, client: Client) -> Session:
    usages = [each.reply["usage"] for each in fake.requests]
    weights = [_definitions(shown) for shown in player.shown]
    return Session(
        requests=len(usages),
        calls=client.called,
        first_definitions=weights[0],
        definitions=sum(weights),
        input=sum(each["input_tokens"] for each in usages),
        read=sum(each["cache_read_input_tokens"] for each in usages),
        written=sum(each["cache_creation_input_tokens"] for each in usages),
        output=sum(each["output_tokens"] for each in usages),
        lost=sum(each.reading.shared - each.reading.cached for each in fake.requests) // 4,
    )


def _definitions(shown: Shown) -> int:
    """Tokens of what a model is told of tools: definitions, and the answers of the bridge's searches."""
    told = sum(tools.tokens(each) for each in shown.tools)
    blocks = [block for message in shown.messages for block in message["content"] if isinstance(block, dict)]
    searches = {block["id"] for block in blocks if block.get("name") == SEARCH}
    answers = [block["content"] for block in blocks if block.get("tool_use_id") in searches]
    return told + sum(WORD_PIECES.count(each if isinstance(each, str) else str(each)) for each in answers)


def _figures(session: Session) -> Json:
    shares = {"read_share": session.read_share, "dollars": session.dollars}
    return {**msgspec.to_builtins(session), **shares}


def _show(found: dict[str, Session], turns: int) -> None:
    direct = found[DIRECT]
    rows = [
        [
            name,
            f"{each.requests}",
            f"{each.first_definitions:,}",
            f"{each.definitions:,}",
            "-" if each is direct else f"{1 - each.definitions / direct.definitions:.0%}",
            f"{each.sent:,}",
            f"{each.read:,}",
            f"{each.written:,}",
            f"{each.read_share:.2%}",
            f"{each.lost:,}",
            f"{each.dollars:.3f}",
            f"{each.dollars / direct.dollars:.2f}",
        ]
        for name, each in found.items()
    ]
    headers = ("", "requests", "definitions, first", "all", "fewer", "input", "cache read", "written", "read share",
               "again, not read", "dollars, input", "times direct")  # fmt: skip
    table(
        f"A session of {turns} turns with {tools.TOOLS} tools, in tokens; {tools.MODEL} at list prices", headers, rows
    )
    for name in (NATIVE, BRIDGE):
        fewer, share = 1 - found[name].definitions / direct.definitions, found[name].read_share
        print(f"  aim: {name}: {fewer:.0%} fewer tokens of definitions, at least {AIM_FEWER:.0%}: "
              f"{'met' if fewer >= AIM_FEWER else 'NOT met'}; "
              f"read share {share:.2%}, not under direct's {direct.read_share:.2%}: "
              f"{'met' if share >= direct.read_share else 'NOT met'}")  # fmt: skip
        if found[name].calls != direct.calls:
            print(f"  {name}: the client did not run the same calls as direct")
