"""`pegboard search`, `index` and `eval` as people use them, over real servers' tools."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from pegboard.index.intents import SUITE
from tests.flow.shell import Shell
from tests.servers import example_command


def listed(folder: Path) -> Shell:
    """Three servers that were asked for their tools."""
    shell = Shell(folder)
    for name in ("notes", "units", "calendar_server"):
        extra = 'tags = ["office"]\ncost_usd = 0.5\n' if name == "notes" else ""
        shell.server(name.removesuffix("_server"), example_command(name), extra)
    shell.run("refresh")
    return shell


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    """For tests that only ask."""
    return listed(tmp_path_factory.mktemp("listed"))


@pytest.fixture
def own(tmp_path: Path) -> Shell:
    """For tests that change something."""
    return listed(tmp_path)


def names(answer: dict[str, list[dict[str, object]]]) -> list[object]:
    return [hit["name"] for hit in answer["hits"]]


def index_file(shell: Shell) -> Path:
    (found,) = (shell.folder / "cache" / "index").glob("*.index")
    return found


def test_the_right_tool_comes_first_and_is_shown_with_its_signature(shell: Shell) -> None:
    done = shell.run("search", "turn 26 miles into kilometres")
    assert done.stdout.startswith(" 1. units__convert(value: float, from_unit: str, to_unit: str)")
    assert "units ·" in done.stdout


def test_an_answer_in_json_has_all_that_a_script_needs(shell: Shell) -> None:
    answer = shell.json("search", "save a note", "--limit", "1")
    assert names(answer) == ["notes__add_note"]
    assert answer["hits"][0]["signature"].startswith("notes__add_note(text: str")
    assert 0.15 <= answer["hits"][0]["confidence"] <= 1


def test_nothing_fits_is_an_answer_with_an_exit_code_and_the_nearest_servers(shell: Shell) -> None:
    done = shell.run("search", "grind some coffee beans", code=1)
    assert done.stdout == ""
    assert "Nothing fits. The nearest servers:" in done.stderr


def test_an_exact_name_is_found_by_its_name(shell: Shell) -> None:
    assert names(shell.json("search", "notes__tag_note")) == ["notes__tag_note"]
    assert names(shell.json("search", "tag_note"))[0] == "notes__tag_note"


def test_select_gives_just_these_and_tells_what_it_does_not_know(shell: Shell) -> None:
    answer = shell.json("search", "select:units__convert, notes__fly")
    assert names(answer) == ["units__convert"]
    assert answer["unknown"] == ["notes__fly"]
    assert "No tool is named notes__fly" in shell.run("search", "select:notes__fly", code=1).stderr


def test_explain_shows_fields_and_every_part_of_the_score(shell: Shell) -> None:
    shown = shell.run("search", "list the events", "--explain").stdout
    assert "in name" in shown
    for part in ("words", "meaning", "fused", "name covered", "query covered", "record", "final"):
        assert part in shown
    match = shell.json("search", "list the events", "--explain")["hits"][0]["match"]
    assert match["words"]["event"]


def test_filters_leave_out_what_they_should(shell: Shell) -> None:
    everywhere = names(shell.json("search", "list all", "--limit", "20"))
    assert any(str(name).startswith("notes__") for name in everywhere)
    assert not any(
        str(name).startswith("notes__") for name in names(shell.json("search", "list all", "--max-cost", "0.1"))
    )
    assert all(str(name).startswith("notes__") for name in names(shell.json("search", "list all", "--tag", "office")))
    assert all(str(name).startswith("units__") for name in names(shell.json("search", "list all", "--server", "units")))
    assert names(shell.json("search", "list all", "--allow", "*__list_notes")) == ["notes__list_notes"]


def test_servers_are_routed_to(shell: Shell) -> None:
    assert shell.json("search", "--servers", "add an event to the calendar")["servers"][0] == "calendar"
    assert "calendar" in shell.run("search", "--servers", "add an event to the calendar").stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("search", "x", "--server", "unit"), "Did you mean units?"),
        (("search", " "), "There is nothing to search for."),
    ],
)
def test_what_cannot_be_searched_is_told(shell: Shell, arguments: tuple[str, ...], said: str) -> None:
    assert said in shell.run(*arguments, code=1).stderr


@pytest.mark.parametrize("limit", ["0", "21", "many"])
def test_a_limit_out_of_range_is_refused(shell: Shell, limit: str) -> None:
    assert "1 to 20" in shell.run("search", "x", "--limit", limit, code=2).stderr


def test_without_tools_it_says_how_to_get_them(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    shell.plain("one")
    assert "pegboard refresh" in shell.run("search", "anything", code=1).stderr


def test_an_embedder_that_is_missing_leaves_a_search_by_words_and_the_command_that_installs_it(shell: Shell) -> None:
    done = shell.run("--set", "search.embedder=sentence-transformers", "search", "save a note")
    assert " 1. notes__" in done.stdout
    assert done.stderr.count("pip install 'pegboard[sentence-transformers]'") == 1


def test_an_endpoint_that_does_not_answer_leaves_a_search_by_words(shell: Shell) -> None:
    flags = ("--set", "search.embedder=endpoint", "--set", "search.url=http://127.0.0.1:9", "--set", "search.model=m")
    done = shell.run(*flags, "search", "save a note")
    assert " 1. notes__" in done.stdout
    assert done.stderr.count("by words alone") == 1


def test_the_index_is_built_kept_and_built_again_only_for_what_changed(own: Shell) -> None:
    built = own.json("index", "build")
    assert (built["tools"], built["read"], built["embedded"]) == (11, 11, 11)
    assert own.json("index", "status")["state"] == "current"
    (own.folder / "pegboard.toml").write_text(
        (own.folder / "pegboard.toml").read_text().replace('["office"]', '["desk"]')
    )
    assert own.json("index", "status")["state"] == "out of date"
    again = own.json("index", "build")
    assert (again["read"], again["embedded"]) == (5, 5)
    assert own.json("index", "build", "--anew")["read"] == 11


def test_a_damaged_index_is_found_out_and_made_anew_by_the_next_search(own: Shell) -> None:
    own.run("index", "build")
    assert own.json("index", "verify")["ok"]
    path = index_file(own)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF
    path.write_bytes(content)
    assert not own.json("index", "verify", code=1)["ok"]
    assert own.json("index", "status")["state"] == "damaged"
    assert names(own.json("search", "save a note"))[0] == "notes__add_note"
    assert own.json("index", "verify")["ok"]


def test_an_index_that_is_not_there_yet_is_told(own: Shell) -> None:
    shutil.rmtree(own.folder / "cache" / "index", ignore_errors=True)
    assert own.json("index", "status")["state"] == "missing"
    assert "There is no index yet" in own.run("index", "verify", code=1).stdout


# ── eval ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

TOOLS = (
    {"id": "a", "server": "files", "name": "read_file", "description": "Reads a file.", "inputSchema": {}},
    {"id": "b", "server": "mail", "name": "send_mail", "description": "Sends an email.", "inputSchema": {}},
)


def test_a_folder_in_the_place_of_the_index_is_told_and_searches_go_on(own: Shell) -> None:
    file = index_file_after_search(own)
    file.unlink()
    file.mkdir()
    built = own.run("index", "build", code=1)
    assert "cannot be written" in built.stderr
    assert "not kept" in built.stdout
    found = own.run("search", "save a note")
    assert "notes__add_note" in found.stdout
    assert "index ignored" in found.stderr


def index_file_after_search(shell: Shell) -> Path:
    shell.run("search", "save a note")
    return index_file(shell)


@pytest.mark.parametrize("query", ["🎉", "…", "!!!"])
def test_a_query_without_words_finds_no_tool_and_names_no_server(shell: Shell, query: str) -> None:
    assert shell.json("search", query, code=1)["nearest_servers"] == []
    assert shell.json("search", query, "--servers", code=1) == {"servers": []}


def test_an_alias_of_no_tool_is_told_where_it_is_looked_for(own: Shell) -> None:
    own.server("more", example_command("units"), 'aliases = { convrt = "change" }\n')
    own.run("refresh", "more")
    assert "'convrt'" in own.run("search", "turn miles into kilometres").stderr


@pytest.mark.parametrize("share", ["nan", "2", "-0.1", "most"])
def test_a_pass_mark_that_is_no_share_is_refused(bare: Shell, share: str) -> None:
    assert "expected a share" in bare.run("eval", "intents", "--own", "--at-least", share, code=2).stderr


def write_rows(path: Path, rows: Sequence[Mapping[str, object]]) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


@pytest.fixture
def bare(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


def test_eval_scores_labelled_queries_by_groups(bare: Shell) -> None:
    tools = write_rows(bare.folder / "tools.jsonl", TOOLS)
    queries = write_rows(
        bare.folder / "queries.jsonl",
        (
            {"query": "email my boss", "relevant": ["b"]},
            {"query": "read the file and mail it", "groups": [["a"], ["b", "c"]]},
        ),
    )
    figures = bare.json("eval", "--tools", tools, queries)
    assert figures["recall@3"] == figures["recall@10"] == 1
    assert figures["queries"] == 2
    assert {"recall@1", "recall@5", "ndcg@10", "mrr", "latency_ms"} <= set(figures)
    assert set(figures["latency_ms"]) == {"p50", "p95"}


def test_eval_shows_misses_and_compares_two_configurations(bare: Shell) -> None:
    tools = write_rows(bare.folder / "tools.jsonl", TOOLS)
    queries = write_rows(bare.folder / "queries.jsonl", ({"query": "email my boss", "relevant": ["gone"]},))
    done = bare.run("eval", "--tools", tools, queries, "--misses", "--compare", "search.embedder=none")
    assert "difference" in done.stdout
    assert "needs  gone" in done.stdout
    assert "1 groups have no tool" in done.stderr
    compared = bare.json("eval", "--tools", tools, queries, "--compare", "search.embedder=none")["compared"]
    assert set(compared) == {"as configured", "search.embedder=none"}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('{"query": "x", "relevant": ["a"]}\n{', "queries.jsonl:2: this line is not JSON"),
        ('{"query": 3}', "queries.jsonl:1: a query needs a text"),
        ('{"query": "x"}', "queries.jsonl:1: a query needs `groups` or `relevant`"),
        ("", "has no queries"),
    ],
)
def test_bad_evaluation_data_is_named_by_file_and_line(bare: Shell, content: str, said: str) -> None:
    tools = write_rows(bare.folder / "tools.jsonl", TOOLS)
    (bare.folder / "queries.jsonl").write_text(content)
    assert said in bare.run("eval", "--tools", tools, "queries.jsonl", code=1).stderr


def test_eval_runs_on_the_users_own_catalog(shell: Shell) -> None:
    rows = ({"query": "convert miles to km", "relevant": ["units__convert"]},)
    queries = write_rows(shell.folder / "queries.jsonl", rows)
    assert shell.json("eval", queries)["recall@1"] == 1


def test_a_team_keeps_its_own_intents_and_ci_fails_when_they_are_not_found(shell: Shell) -> None:
    path = shell.folder / "intents.toml"
    path.write_text('[[intent]]\nask = "save a note"\nfind = ["add_note"]\n')
    assert shell.json("eval", "intents")["top3"] == 1
    path.write_text(path.read_text() + '[[intent]]\nask = "convert miles to km"\nfind = ["notes__list_notes"]\n')
    done = shell.run("eval", "intents", code=1)
    assert "NOT enough" in done.stdout
    assert "convert miles to km" in done.stdout


def test_an_intent_that_names_no_tool_is_an_error_that_says_so(shell: Shell) -> None:
    (shell.folder / "intents.toml").write_text('[[intent]]\nask = "fly"\nfind = ["fly_away"]\n')
    assert "'fly_away', which no server has" in shell.run("eval", "intents", code=1).stderr


def test_the_suite_that_comes_with_it_passes(bare: Shell) -> None:
    report = bare.json("eval", "intents", "--own")
    assert report["ok"]
    assert report["intents"] >= 150
    assert report["nothing_fits"] >= 0.5
    asked = {verdict["case"]["ask"] for verdict in report["failed"]}
    assert not asked & {"score this account against ICP", "pull pipeline data from HubSpot"}


def test_the_suite_has_intents_of_every_kind_over_tools_that_exist(bare: Shell) -> None:
    kinds = bare.json("eval", "intents", "--own")["kinds"]
    wanted = {"exact", "paraphrased", "unnamed", "multi-step", "other-language", "nothing", "typo"}
    assert set(kinds) == wanted
    assert (SUITE / "tools.jsonl").exists()
