"""The revisions and their eras."""

from __future__ import annotations

import pytest

from pegboard.wire.versions import (
    HANDSHAKE_VERSIONS,
    NEWEST_HANDSHAKE,
    NEWEST_STATELESS,
    SPOKEN_VERSIONS,
    Era,
    era_of,
)


def test_the_newest_of_each_era_is_known() -> None:
    assert (NEWEST_HANDSHAKE, NEWEST_STATELESS) == ("2025-11-25", "2026-07-28")


@pytest.mark.parametrize("version", HANDSHAKE_VERSIONS)
def test_revisions_with_initialize_belong_to_the_handshake_era(version: str) -> None:
    assert era_of(version) is Era.HANDSHAKE


def test_the_revision_without_it_is_stateless() -> None:
    assert era_of("2026-07-28") is Era.STATELESS


@pytest.mark.parametrize("version", ["", "2024-10-07", "2099-01-01", "2026-07-28 "])
def test_a_revision_we_do_not_speak_has_no_era(version: str) -> None:
    assert era_of(version) is None


def test_what_we_speak_is_offered_newest_first() -> None:
    assert list(SPOKEN_VERSIONS) == sorted(SPOKEN_VERSIONS, reverse=True)
    assert len(SPOKEN_VERSIONS) == 5
