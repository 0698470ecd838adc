"""The index that serves now: there is always one, and it becomes that of the catalog behind the scenes."""

from __future__ import annotations

import asyncio
import threading

import msgspec
import pytest

from pegboard.catalog.catalog import build
from pegboard.errors import EmbedderError
from pegboard.index.finder import Terms
from pegboard.index.keeper import IndexKeeper, words_only
from pegboard.index.live import REBUILDING, LiveIndex
from pegboard.index.narrow import Narrow
from pegboard.types import Priors
from tests.unit.catalog.given import config, snapshot, spec
from tests.unit.catalog.given import tool as listed
from tests.unit.index.given import OFFICE, BrokenEmbedder, CountingEmbedder, names, static

RINGING = {"door": {"ring_bell": "Ring the bell at the front door."}}


def catalog_of(offered):
    specs = [spec(server) for server in offered]
    return build(
        config(*specs),
        {one.name: snapshot(one, *(listed(name, about) for name, about in offered[one.name].items())) for one in specs},
    )


CATALOG = catalog_of(OFFICE)
MORE = catalog_of(OFFICE | RINGING)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "index.pegboard"


def live_on(path, embedder=None, **options):
    return LiveIndex(IndexKeeper(path, embedder or CountingEmbedder()), **options)


async def building(path):
    """An index whose first build has begun and goes on when it is told to, and the embedder that holds it up."""
    embedder = CountingEmbedder()
    embedder.may_go_on.clear()
    live = live_on(path, embedder)
    await live.search(CATALOG, "open an issue")
    return live, embedder


def run(scenario):
    """Runs it, and sees to it that nothing is left running."""

    async def alone():
        await scenario()
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(alone())


def test_without_an_index_words_serve_at_once_while_one_is_built(path):
    async def scenario():
        embedder = CountingEmbedder()
        embedder.may_go_on.clear()
        live = live_on(path, embedder)
        answer = await live.search(CATALOG, "open an issue")
        assert names(answer)[0] == "github__create_issue"
        assert answer.notes == (REBUILDING,)
        assert embedder.queries == []
        assert not path.exists()
        embedder.may_go_on.set()
        assert (await live.ready(CATALOG)).embedded == len(CATALOG.tools)
        answer = await live.search(CATALOG, "open an issue")
        assert names(answer)[0] == "github__create_issue"
        assert answer.notes == ()
        assert answer.hits[0].match.dense > 0
        await live.close()

    run(scenario)


def test_the_next_process_finds_the_index_made(path):
    async def scenario():
        first = live_on(path)
        await first.ready(CATALOG)
        await first.close()
        embedder = CountingEmbedder()
        second = live_on(path, embedder)
        assert await second.ready(CATALOG) is None
        assert (await second.search(CATALOG, "open an issue")).notes == ()
        assert embedder.tools == []
        assert second.warnings == []
        await second.close()

    run(scenario)


def test_an_old_index_serves_until_the_new_one_takes_its_place(path):
    async def scenario():
        embedder = CountingEmbedder()
        live = live_on(path, embedder)
        await live.ready(CATALOG)
        embedder.tools.clear()
        embedder.may_go_on.clear()
        answer = await live.search(MORE, "ring the bell at the door", Terms(always=True))
        assert "door__ring_bell" not in names(answer)
        assert answer.notes == (REBUILDING,)
        assert (await live.search(MORE, "open an issue")).hits[0].match.dense > 0
        assert names(await live.search(MORE, "door__ring_bell")) == ["door__ring_bell"]
        embedder.may_go_on.set()
        built = await live.ready(MORE)
        assert (built.read, built.embedded, len(embedder.tools)) == (1, 1, 1)
        answer = await live.search(MORE, "ring the bell at the door")
        assert names(answer)[0] == "door__ring_bell"
        assert answer.notes == ()
        await live.close()

    run(scenario)


def test_a_tool_that_is_gone_is_not_found_while_the_old_index_serves(path):
    async def scenario():
        embedder = CountingEmbedder()
        live = live_on(path, embedder)
        await live.ready(MORE)
        embedder.may_go_on.clear()
        answer = await live.search(CATALOG, "ring the bell at the door", Terms(always=True, limit=20))
        assert "door__ring_bell" not in names(answer)
        embedder.may_go_on.set()
        await live.ready(CATALOG)
        await live.close()

    run(scenario)


def test_ready_waits_and_says_what_was_done(path):
    async def scenario():
        live = live_on(path)
        built = await live.ready(CATALOG)
        assert (built.read, built.embedded) == (len(CATALOG.tools), len(CATALOG.tools))
        assert path.exists()
        assert await live.ready(CATALOG) is None
        await live.close()

    run(scenario)


def test_many_who_ask_at_once_wait_for_one_build(path):
    async def scenario():
        embedder = CountingEmbedder()
        live = live_on(path, embedder)
        await asyncio.gather(
            *(live.search(CATALOG, "open an issue") for _ in range(5)), *(live.ready(CATALOG) for _ in range(5))
        )
        assert len(embedder.tools) == len(CATALOG.tools)
        await live.close()

    run(scenario)


def test_closing_stops_what_is_being_built_and_leaves_the_file_as_it_is(path):
    async def scenario():
        embedder = CountingEmbedder()
        live = live_on(path, embedder)
        await live.ready(CATALOG)
        before = path.read_bytes()
        embedder.may_go_on.clear()
        await live.search(MORE, "open an issue")
        await live.close()
        assert path.read_bytes() == before

    run(scenario)


def test_closing_what_was_never_used_is_fine(path):
    async def scenario():
        live = live_on(path)
        await live.close()
        await live.close()

    run(scenario)


def test_whoever_waits_for_a_build_that_is_stopped_is_told(path):
    async def scenario():
        live, _ = await building(path)
        waiting = asyncio.ensure_future(live.ready(CATALOG))
        await asyncio.sleep(0)
        await live.close()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    run(scenario)


def test_a_newer_catalog_takes_over_from_the_one_being_built(path):
    async def scenario():
        live, embedder = await building(path)
        await live.search(MORE, "open an issue")
        embedder.may_go_on.set()
        await live.ready(MORE)
        answer = await live.search(MORE, "ring the bell at the door")
        assert names(answer)[0] == "door__ring_bell"
        assert answer.notes == ()
        await live.close()

    run(scenario)


def test_a_catalog_that_comes_back_is_built_again(path):
    async def scenario():
        live = live_on(path)
        for catalog in (CATALOG, MORE, CATALOG, MORE):
            await live.ready(catalog)
            assert (await live.search(catalog, "open an issue")).notes == ()
        await live.close()

    run(scenario)


@pytest.mark.parametrize("damage", [b"", b"not an index", b"pegboard-arrays 1 zzzzzzzz"])
def test_a_damaged_file_is_told_and_built_anew(path, damage):
    async def scenario():
        path.write_bytes(damage)
        live = live_on(path)
        answer = await live.search(CATALOG, "open an issue")
        assert names(answer)[0] == "github__create_issue"
        (warning,) = live.warnings
        assert str(path) in warning
        await live.ready(CATALOG)
        await live.close()
        again = live_on(path)
        assert await again.ready(CATALOG) is None
        assert again.warnings == []

    run(scenario)


def test_an_index_that_cannot_be_kept_serves_with_a_warning(tmp_path):
    async def scenario():
        (tmp_path / "file").touch()
        live = live_on(tmp_path / "file" / "index")
        await live.ready(CATALOG)
        assert any("not kept" in warning for warning in live.warnings)
        answer = await live.search(CATALOG, "open an issue")
        assert names(answer)[0] == "github__create_issue"
        assert answer.notes == ()
        assert answer.hits[0].match.dense > 0
        await live.close()

    run(scenario)


def test_an_embedder_that_fails_leaves_words_and_a_warning(path):
    async def scenario():
        live = live_on(path, BrokenEmbedder())
        await live.ready(CATALOG)
        assert any("the model is asleep" in warning for warning in live.warnings)
        assert names(await live.search(CATALOG, "open an issue"))[0] == "github__create_issue"
        await live.close()

    run(scenario)


class Stumbling(CountingEmbedder):
    """Breaks in a way that no embedder should, once."""

    def __init__(self):
        super().__init__()
        self.stumbled = False

    async def embed(self, texts, *, query=False):
        if not self.stumbled:
            self.stumbled = True
            raise ArithmeticError("out of step")
        return await super().embed(texts, query=query)


def test_a_build_that_broke_is_tried_again(path):
    async def scenario():
        live = live_on(path, Stumbling())
        with pytest.raises((ArithmeticError, EmbedderError)):
            await live.ready(CATALOG)
        assert names(await live.search(CATALOG, "open an issue"))[0] == "github__create_issue"
        await live.ready(CATALOG)
        assert (await live.search(CATALOG, "open an issue")).notes == ()
        await live.close()

    run(scenario)


def test_without_an_embedder_the_index_is_current_by_words(path):
    async def scenario():
        live = LiveIndex(IndexKeeper(path, None))
        await live.ready(CATALOG)
        answer = await live.search(CATALOG, "open an issue")
        assert names(answer)[0] == "github__create_issue"
        assert answer.notes == ()
        await live.close()

    run(scenario)


def test_records_that_come_in_count_from_the_next_search_on(path):
    async def scenario():
        live = live_on(path, static())
        await live.ready(CATALOG)
        assert (await live.search(CATALOG, "open an issue")).hits[0].match.prior == 0
        live.priors = {"github__create_issue": Priors(calls=100, success_rate=1.0)}
        assert (await live.search(CATALOG, "open an issue")).hits[0].match.prior > 0
        await live.close()

    run(scenario)


def test_terms_and_trust_reach_the_finder(path):
    async def scenario():
        live = live_on(path, static(), limited=["github"], max_share=0.2)
        await live.ready(CATALOG)
        answer = await live.search(CATALOG, "github issue or pull request", Terms(limit=5, always=True))
        assert sum(hit.server == "github" for hit in answer.hits) == 1
        narrowed = await live.search(CATALOG, "open an issue", Terms(narrow=Narrow(servers=("slack",)), always=True))
        assert {hit.server for hit in narrowed.hits} == {"slack"}
        assert (await live.servers(CATALOG, "delete a file from the disk"))[0] == "files"
        assert await live.servers(CATALOG, "open an issue", 5, Narrow(servers=("slack",))) == ("slack",)
        await live.close()

    run(scenario)


def test_an_empty_catalog_is_searched_in_peace(path):
    async def scenario():
        empty = catalog_of({})
        live = live_on(path)
        assert (await live.search(empty, "open an issue")).hits == ()
        await live.ready(empty)
        assert await live.servers(empty, "open an issue") == ()
        await live.close()

    run(scenario)


class Recovering(CountingEmbedder):
    """Fails as an embedder may, until it is `awake`."""

    def __init__(self):
        super().__init__()
        self.awake = False

    async def embed(self, texts, *, query=False):
        if not self.awake:
            raise EmbedderError("the model is asleep")
        return await super().embed(texts, query=query)


def test_an_answer_says_that_the_embedder_failed_and_not_that_an_index_is_coming(path):
    async def scenario():
        live = live_on(path, Recovering())
        await live.ready(CATALOG)
        (note,) = (await live.search(CATALOG, "open an issue")).notes
        assert "by words alone" in note
        assert "the model is asleep" in note
        await live.close()

    run(scenario)


def test_an_embedder_that_failed_is_tried_again_after_a_rest(path):
    async def scenario():
        embedder = Recovering()
        live = live_on(path, embedder, rest_seconds=0)
        await live.ready(CATALOG)
        embedder.awake = True
        await live.ready(CATALOG)
        answer = await live.search(CATALOG, "open an issue")
        assert answer.notes == ()
        assert answer.hits[0].match.dense > 0
        await live.close()

    run(scenario)


def test_an_embedder_that_failed_is_not_tried_before_that(path):
    async def scenario():
        embedder = Recovering()
        live = live_on(path, embedder)
        await live.ready(CATALOG)
        embedder.awake = True
        await live.search(CATALOG, "open an issue")
        await live.ready(CATALOG)
        assert embedder.tools == []
        await live.close()

    run(scenario)


def test_vectors_that_are_there_outlive_an_embedder_that_fails(path):
    async def scenario():
        embedder = Recovering()
        embedder.awake = True
        live = live_on(path, embedder, rest_seconds=0)
        await live.ready(CATALOG)
        embedder.awake = False
        assert "asleep" in (await live.ready(MORE)).by_words
        embedder.awake = True
        embedder.tools.clear()
        built = await live.ready(MORE)
        assert (built.embedded, len(embedder.tools)) == (1, 1)
        await live.close()

    run(scenario)


def test_a_build_is_not_cut_short_by_the_next_catalog(path):
    async def scenario():
        live, embedder = await building(path)
        waiting = asyncio.ensure_future(live.ready(CATALOG))
        await asyncio.sleep(0)
        await live.search(MORE, "open an issue")
        embedder.may_go_on.set()
        assert (await waiting).index.parts.about.catalog == CATALOG.version
        newer = await live.ready(MORE)
        assert newer is None or newer.index.parts.about.catalog == MORE.version
        assert (await live.search(MORE, "open an issue")).notes == ()
        await live.close()

    run(scenario)


def test_of_catalogs_that_wait_only_the_newest_is_built(path):
    async def scenario():
        live, embedder = await building(path)
        between = msgspec.structs.replace(CATALOG, version="between")
        waiting = asyncio.ensure_future(live.ready(between))
        await asyncio.sleep(0)
        await live.search(MORE, "open an issue")
        embedder.may_go_on.set()
        assert (await waiting).index.parts.about.catalog == MORE.version
        await live.close()

    run(scenario)


def test_whoever_stops_waiting_does_not_stop_the_build(path):
    async def scenario():
        live, embedder = await building(path)
        impatient, patient = (asyncio.ensure_future(live.ready(CATALOG)) for _ in range(2))
        await asyncio.sleep(0)
        impatient.cancel()
        with pytest.raises(asyncio.CancelledError):
            await impatient
        embedder.may_go_on.set()
        assert (await patient).embedded == len(CATALOG.tools)
        await live.close()

    run(scenario)


def test_a_build_that_is_quicker_than_the_index_by_words_stays(path, monkeypatch):
    async def scenario():
        built, loop = asyncio.Event(), asyncio.get_running_loop()
        live = live_on(path, static())

        def late(tools, catalog):
            asyncio.run_coroutine_threadsafe(built.wait(), loop).result()
            return words_only(tools, catalog)

        monkeypatch.setattr("pegboard.index.live.words_only", late)
        searching = asyncio.ensure_future(live.search(CATALOG, "open an issue"))
        await live.ready(CATALOG)
        built.set()
        assert (await searching).hits[0].match.dense > 0
        assert (await live.search(CATALOG, "open an issue")).notes == ()
        await live.close()

    run(scenario)


class Single(CountingEmbedder):
    """Knows how many builds asked it at once."""

    asking = most = 0

    async def embed(self, texts, *, query=False):
        if query:
            return await super().embed(texts, query=query)
        self.asking += 1
        self.most = max(self.most, self.asking)
        rows = await super().embed(texts)
        await asyncio.sleep(0.01)
        self.asking -= 1
        return rows


def test_a_catalog_that_changes_there_and_back_while_one_is_built_is_built_once(path):
    async def scenario():
        embedder = Single()
        embedder.may_go_on.clear()
        live = live_on(path, embedder)
        await live.search(CATALOG, "open an issue")
        for catalog in (MORE, msgspec.structs.replace(CATALOG, version="between"), MORE):
            await live.search(catalog, "open an issue")
        embedder.may_go_on.set()
        await live.ready(MORE)
        await live.close()
        assert embedder.most == 1
        assert len(embedder.tools) == len(CATALOG.tools) + 1

    run(scenario)


def test_who_is_still_searching_when_it_is_closed_starts_no_build(path):
    async def scenario():
        embedder = CountingEmbedder()
        live = live_on(path, embedder)
        searching = asyncio.ensure_future(live.search(CATALOG, "open an issue"))
        await asyncio.sleep(0)
        await live.close()
        assert names(await searching)[0] == "github__create_issue"
        with pytest.raises(asyncio.CancelledError):
            await live.ready(CATALOG)
        assert embedder.tools == []

    run(scenario)


def test_the_note_is_of_the_index_that_answered(path):
    async def scenario():
        began, may_go_on = threading.Event(), threading.Event()

        class Slow(dict):
            def __contains__(self, name):
                began.set()
                return may_go_on.wait(10) and super().__contains__(name)

        live = live_on(path)
        await live.ready(CATALOG)
        more = msgspec.structs.replace(MORE, tools=Slow(MORE.tools))
        searching = asyncio.ensure_future(live.search(more, "ring the bell at the door", Terms(always=True)))
        while not began.is_set():
            await asyncio.sleep(0)
        await live.ready(more)
        may_go_on.set()
        answer = await searching
        assert "door__ring_bell" not in names(answer)
        assert answer.notes == (REBUILDING,)
        await live.close()

    run(scenario)


def test_an_empty_catalog_has_no_other_model(path):
    async def scenario():
        empty = catalog_of({})
        live = live_on(path)
        await live.ready(empty)
        assert (await live.search(empty, "open an issue")).notes == ()
        await live.close()

    run(scenario)


def test_a_build_that_breaks_is_told_once_and_searches_go_on(path):
    class Broken(CountingEmbedder):
        async def embed(self, texts, *, query=False):
            raise ZeroDivisionError("an embedder with a fault")

    async def scenario():
        live = live_on(path, Broken())
        for _ in range(3):
            assert (await live.search(CATALOG, "open an issue")).hits
            with pytest.raises(ZeroDivisionError):
                await live.ready(CATALOG)
        await live.close()
        assert live.warnings == ["the index could not be built: ZeroDivisionError: an embedder with a fault"]

    run(scenario)
