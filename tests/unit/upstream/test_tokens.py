from __future__ import annotations

import stat
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard.config.model import ServerConfig, ServerSpec
from pegboard.upstream.tokens import (
    EARLY_SECONDS,
    SignIn,
    forget_sign_in,
    keep_sign_in,
    path_of,
    read_sign_in,
    sign_in_mark,
)


def server(name: str = "far", url: str = "https://far.example/mcp") -> ServerSpec:
    return ServerSpec(name=name, config=ServerConfig(url=url))


def signed_in(spec: ServerSpec) -> SignIn:
    return SignIn(server=spec.name, url=spec.config.url or "", access_token="AT", refresh_token="RT", expires_at=1e9)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_what_was_kept_is_read_again(tmp_path: Path) -> None:
    spec = server()
    keep_sign_in(spec, tmp_path, signed_in(spec))
    assert read_sign_in(spec, tmp_path) == signed_in(spec)


def test_only_the_owner_can_read_a_sign_in_even_if_others_could_before(tmp_path: Path) -> None:
    spec = server()
    path = keep_sign_in(spec, tmp_path, signed_in(spec))
    assert (mode(path), mode(path.parent)) == (0o600, 0o700)
    path.chmod(0o644)
    path.parent.chmod(0o755)
    keep_sign_in(spec, tmp_path, signed_in(spec))
    assert (mode(path), mode(path.parent)) == (0o600, 0o700)
    assert [each.name for each in path.parent.iterdir()] == [path.name]


def test_a_sign_in_belongs_to_one_server_at_one_address(tmp_path: Path) -> None:
    spec = server()
    path = keep_sign_in(spec, tmp_path, signed_in(spec))
    moved, renamed = server(url="https://far.example/other"), server(name="near")
    assert read_sign_in(moved, tmp_path) is None
    assert read_sign_in(renamed, tmp_path) is None
    for other in (moved, renamed):  # not even when somebody copies the file
        path_of(other, tmp_path).write_bytes(path.read_bytes())
        assert read_sign_in(other, tmp_path) is None


@given(st.text(), st.text(), st.text(), st.text())
def test_two_servers_never_share_a_file_and_none_leaves_the_folder(a: str, b: str, url_a: str, url_b: str) -> None:
    one, other = path_of(server(a, url_a), Path("/state")), path_of(server(b, url_b), Path("/state"))
    assert one.parent == Path("/state/oauth")
    assert len(one.name) < 100
    if (a, url_a) != (b, url_b) and "\n" not in a + b:
        assert one != other


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"server":1}', b"\xff\xfe", b"null"])
def test_a_file_that_cannot_be_read_counts_as_none(tmp_path: Path, content: bytes) -> None:
    spec = server()
    path = keep_sign_in(spec, tmp_path, signed_in(spec))
    path.write_bytes(content)
    assert read_sign_in(spec, tmp_path) is None


def test_a_forgotten_sign_in_is_gone(tmp_path: Path) -> None:
    spec = server()
    assert not forget_sign_in(spec, tmp_path)
    keep_sign_in(spec, tmp_path, signed_in(spec))
    assert forget_sign_in(spec, tmp_path)
    assert read_sign_in(spec, tmp_path) is None


def test_the_mark_changes_whenever_the_sign_in_does(tmp_path: Path) -> None:
    spec = server()
    marks = [sign_in_mark(spec, tmp_path)]
    for token in ("AT", "AT", "longer"):
        keep_sign_in(spec, tmp_path, msgspec.structs.replace(signed_in(spec), access_token=token))
        marks.append(sign_in_mark(spec, tmp_path))
    forget_sign_in(spec, tmp_path)
    assert marks[0] is None
    assert len({repr(mark) for mark in marks}) == len(marks)
    assert sign_in_mark(spec, tmp_path) is None


def test_a_token_counts_as_expired_a_moment_before_it_is() -> None:
    kept = signed_in(server())
    assert not kept.is_expired(1e9 - EARLY_SECONDS - 1)
    assert kept.is_expired(1e9 - EARLY_SECONDS)
    assert not SignIn(server="far", url="").is_expired(1e12)


def test_a_sign_in_does_not_show_its_tokens_to_whoever_prints_it() -> None:
    kept = signed_in(server())
    assert "AT" not in repr(kept)
    assert "RT" not in str(kept)
    assert "AT" not in f"{[kept]}"
