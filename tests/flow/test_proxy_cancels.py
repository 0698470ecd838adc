"""Both sides hang up at any moment and in any order: every request ends once, nothing stays, and the next one works."""

from __future__ import annotations

import asyncio
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from pegboard.proxy.seam import Asked, Exchange, Passed
from tests.proxies import PATIENCE, Got, Proxy, RawClient, Shout, post, proxy, running
from tests.servers.raw_upstream import Connection, Request, response, upstream

EVENT = b"data: {}\n\n"
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
CHUNK = b"%x\r\n%s\r\n" % (len(EVENT), EVENT)
END = b"0\r\n\r\n"
CLIENT, SERVER = ("client fin", "client rst"), ("server fin", "server rst")
ORDERS = [
    *((one,) for one in (*CLIENT, *SERVER)),
    *product(CLIENT, SERVER),
    *product(SERVER, CLIENT),
]
MOMENTS = ("planning", "asked", "streaming", "between rounds", "asked again", "streaming again")


class Case:
    """One request: what is let go when, and the connection that its upstream has."""

    def __init__(self) -> None:
        self.planning, self.may_plan = asyncio.Event(), asyncio.Event()
        self.between, self.may_go_on = asyncio.Event(), asyncio.Event()
        self.asked: asyncio.Queue[Connection] = asyncio.Queue()
        self.orders: asyncio.Queue[bytes | str] = asyncio.Queue()
        self.exchange: Held | None = None

    def let_go(self) -> None:
        self.may_plan.set()
        self.may_go_on.set()


class Held(Shout):
    """Waits before its second round."""

    def __init__(self, case: Case, asked: Asked) -> None:
        super().__init__(asked.body, streamed=True, rounds=2)
        self._case = case

    async def again(self) -> bool:
        if self._left > 1:
            self._case.between.set()
            await self._case.may_go_on.wait()
        return await super().again()


class Cases:
    """All requests of a test, by the number in their bodies: planner and upstream in one."""

    def __init__(self, *, edits: bool) -> None:
        self.edits = edits
        self.all: dict[str, Case] = {}

    async def plan(self, asked: Asked) -> Exchange | Passed:
        case = self.all.get(asked.body.decode())
        if case is None:
            return Passed("sober")
        case.planning.set()
        await case.may_plan.wait()
        if not self.edits:
            return Passed("as it is")
        case.exchange = Held(case, asked)
        return case.exchange

    async def answer(self, connection: Connection, request: Request) -> None:
        case = self.all.get(request.target.decode().partition("?")[2])
        if case is None:
            await connection.send(response(b"sober"))
            return
        case.asked.put_nowait(connection)
        while (order := await case.orders.get()) != END:
            if isinstance(order, bytes):
                await connection.send(order)
            elif order == "stay":
                await connection.stay()
                return
            else:
                connection.fin() if order == "fin" else connection.rst()
                return
        await connection.send(END)


async def reach(moment: str, case: Case, client: RawClient) -> None:
    """Lets the request come this far."""
    await case.planning.wait()
    for step in MOMENTS[1 : MOMENTS.index(moment) + 1]:
        if step in ("asked", "asked again"):
            case.let_go() if step == "asked again" else case.may_plan.set()
            await case.asked.get()
        elif step in ("streaming", "streaming again"):
            case.orders.put_nowait(HEAD + CHUNK)
            await client.until(EVENT)
        else:
            case.orders.put_nowait(END)
            await case.between.wait()


def hang_up(order: tuple[str, ...], case: Case, client: RawClient, *, is_asked: bool) -> None:
    for each in order:
        side, way = each.split()
        if side == "client":
            client.close() if way == "fin" else client.reset()
        elif is_asked:
            case.orders.put_nowait(way)
    case.orders.put_nowait("stay")


async def never_whole(moment: str, client: RawClient) -> None:
    """Only the upstream hung up: the client is told so, or sees that there is no end."""
    if moment == "asked":
        assert (await client.reply()).status == 502
    else:
        assert not (await client.all()).endswith(END)
    client.close()


async def one(px: Proxy, cases: Cases, moment: str, order: tuple[str, ...]) -> None:
    number = str(len(cases.all))
    case = cases.all[number] = Case()
    client = await px.connect()
    await client.send(post(f"/up/v1/messages?{number}", number.encode()))
    async with asyncio.timeout(PATIENCE):
        await reach(moment, case, client)
        hang_up(order, case, client, is_asked=moment not in ("planning", "between rounds"))
        if order[0].startswith("server") and len(order) == 1:
            await never_whole(moment, client)
        while px.tally.streaming or (case.exchange is not None and not case.exchange.closed):
            await asyncio.sleep(0)
    case.let_go()
    assert case.exchange is None or case.exchange.closed == 1
    got: Got = await px.ask(post("/up/v1/x", b"sober"))
    assert (got.status, got.body, got.whole) == (200, b"sober", True)


def cancel(folder: Path, moments: list[str], *, edits: bool) -> None:
    async def main() -> None:
        cases = Cases(edits=edits)
        async with upstream(cases.answer) as up, proxy({"up": up.url}, folder, cases) as px:
            before: Any = None
            for moment, order in product(moments, ORDERS):
                if moment in ("planning", "between rounds") and not any(each.startswith("client") for each in order):
                    continue  # nobody is connected who could hang up
                await one(px, cases, moment, order)
                before = before or len(asyncio.all_tasks())
            while len(asyncio.all_tasks()) > before + 4:
                await asyncio.sleep(0)
            assert sum(px.tally.failures.values()) == len(cases.all)
            assert set(px.tally.failures) <= {"client left", "reply cut", "round refused"}

    running(main)


@pytest.mark.timeout(120)
@pytest.mark.parametrize("moment", MOMENTS)
def test_whoever_hangs_up_when_and_in_whatever_order_a_changed_request_ends_once(tmp_path: Path, moment: str) -> None:
    cancel(tmp_path, [moment], edits=True)


@pytest.mark.timeout(120)
@pytest.mark.parametrize("moment", MOMENTS[:3])
def test_whoever_hangs_up_when_and_in_whatever_order_a_request_ends_once(tmp_path: Path, moment: str) -> None:
    cancel(tmp_path, [moment], edits=False)
