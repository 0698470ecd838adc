"""The sockets under the proxy: what is written arrives whole and in order, with TLS too; nobody waits without end."""

from __future__ import annotations

import asyncio
import datetime as dt
import ipaddress
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import httpcore2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard.proxy.sockets import MOST_HELD, PIECE, JoinedWrites, Sockets, Stream
from tests.proxies import running

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Taken(asyncio.Transport):
    """A transport that notes what it is given."""

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[bytes] = []

    def write(self, data: object) -> None:
        assert isinstance(data, bytes)
        self.sent.append(data)

    def is_closing(self) -> bool:
        return False

    def close(self) -> None:
        self.sent.append(b"closed")


@asynccontextmanager
async def connected(serve: Serve, context: ssl.SSLContext | None = None) -> AsyncIterator[Stream]:
    """A stream to a server that does this."""

    async def guarded(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await serve(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError, ssl.SSLError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(guarded, "127.0.0.1", 0, ssl=context)
    stream = await Sockets().connect_tcp("127.0.0.1", server.sockets[0].getsockname()[1], timeout=10)
    try:
        yield stream
    finally:
        await stream.aclose()
        server.close()


async def everything(stream: Stream) -> bytes:
    data = b""
    while part := await stream.read(PIECE, timeout=10):
        data += part
    return data


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(PIECE):
        writer.write(data)
        await writer.drain()


# ── writes ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_first_write_of_a_turn_goes_at_once_and_the_rest_of_it_together():
    async def main() -> None:
        taken = Taken()
        joined = JoinedWrites(taken)
        for part in (b"a", b"b", b"c"):
            joined.write(part)
        assert taken.sent == [b"a"]
        await asyncio.sleep(0)
        assert taken.sent == [b"a", b"bc"]

    running(main)


def test_a_head_goes_out_with_the_first_of_its_body():
    async def main() -> None:
        taken = Taken()
        joined = JoinedWrites(taken)
        joined.hold()
        joined.write(b"head ")
        assert taken.sent == []
        joined.write(b"body")
        assert taken.sent == [b"head body"]

    running(main)


def test_a_head_without_a_body_is_not_kept_back():
    async def main() -> None:
        taken = Taken()
        joined = JoinedWrites(taken)
        joined.hold()
        joined.write(b"head")
        await asyncio.sleep(0)
        assert taken.sent == [b"head"]

    running(main)


@given(st.lists(st.one_of(st.binary(max_size=5), st.sampled_from(["hold", "turn", "flush"])), max_size=20))
def test_whatever_is_joined_arrives_in_order_and_before_the_end(steps: list[bytes | str]):
    async def main() -> None:
        taken = Taken()
        joined = JoinedWrites(taken)
        given = b""
        for step in steps:
            if isinstance(step, bytes):
                joined.write(step)
                given += step
            elif step == "turn":
                await asyncio.sleep(0)
                assert b"".join(taken.sent) == given
            else:
                getattr(joined, step)()
        joined.close()
        assert b"".join(taken.sent) == given + b"closed"

    asyncio.run(main())


# ── streams ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_what_is_written_comes_back_whole():
    async def main() -> None:
        whole = bytes(range(256)) * 8000
        async with connected(echo) as stream:
            sending = asyncio.ensure_future(stream.write(whole, timeout=10))
            got = bytearray()
            while len(got) < len(whole):
                got += await stream.read(1000, timeout=10)
            await sending
            assert got == whole

    running(main)


def test_what_came_before_the_end_is_read_before_the_end_is_told():
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"last words")

    async def main() -> None:
        async with connected(serve) as stream:
            assert await everything(stream) == b"last words"
            assert stream.get_extra_info("is_readable")

    running(main)


def test_an_upstream_that_sends_faster_than_anybody_reads_is_held_up():
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for _ in range(64):
            writer.write(b"x" * PIECE)
            await writer.drain()

    async def main() -> None:
        async with connected(serve) as stream:
            got = most = 0
            while part := await stream.read(PIECE, timeout=10):
                got += len(part)
                for _ in range(20):  # turns in which more could come
                    await asyncio.sleep(0)
                    most = max(most, stream.held)
            assert got == 64 * PIECE
            assert PIECE < most <= MOST_HELD + PIECE

    running(main)


def test_waiting_ends_in_time():
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(60)

    async def main() -> None:
        async with connected(serve) as stream:
            with pytest.raises(httpcore2.ReadTimeout):
                await stream.read(10, timeout=0.01)
            with pytest.raises(httpcore2.WriteTimeout):
                await stream.write(b"x" * 64 * 1024 * 1024, timeout=0.01)

    running(main)


def test_nothing_is_written_into_a_connection_that_is_closed():
    async def main() -> None:
        async with connected(echo) as stream:
            await stream.aclose()
            with pytest.raises(httpcore2.WriteError):
                await stream.write(b"too late", timeout=1)

    running(main)


def test_nobody_listening_is_told_as_such():
    async def main() -> None:
        with pytest.raises(httpcore2.ConnectError):
            await Sockets().connect_tcp("127.0.0.1", 1, timeout=10)

    running(main)


# ── TLS ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_what_is_written_comes_back_whole_through_tls(tmp_path: Path):
    serving, trusting = certified(tmp_path)

    async def main() -> None:
        whole = bytes(range(256)) * 4000
        async with connected(echo, serving) as plain:
            stream = await plain.start_tls(trusting, "127.0.0.1", timeout=10)
            sending = asyncio.ensure_future(stream.write(whole, timeout=10))
            got = bytearray()
            while len(got) < len(whole):
                got += await stream.read(PIECE, timeout=10)
            await sending
            assert got == whole

    running(main)


def test_a_certificate_that_nobody_vouches_for_is_refused(tmp_path: Path):
    serving, _ = certified(tmp_path)

    async def main() -> None:
        async with connected(echo, serving) as plain:
            with pytest.raises(httpcore2.ConnectError, match="certificate"):
                await plain.start_tls(ssl.create_default_context(), "127.0.0.1", timeout=10)

    asyncio.run(main())


def certified(folder: Path) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """A server's context with a certificate of its own, and one that trusts it."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "a server of this test")])
    now = dt.datetime.now(dt.UTC)
    day = dt.timedelta(days=1)
    address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number(), now - day, now + day)
        .add_extension(x509.SubjectAlternativeName([address]), critical=False)
        .sign(key, hashes.SHA256())
    )
    public, private = folder / "public.pem", folder / "private.pem"
    public.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    form = serialization.PrivateFormat.PKCS8
    private.write_bytes(key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()))
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(public, private)
    return serving, ssl.create_default_context(cafile=str(public))
