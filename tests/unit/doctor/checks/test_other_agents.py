"""Agents that cannot defer, and Codex with models it does not know."""

from __future__ import annotations

from typing import Any

import pytest

from pegboard.doctor.checks.causes import CODEX_MODEL, NO_DEFERRAL
from pegboard.doctor.facts import Agent, AgentState, Deferral, Proof, Session
from tests.unit.doctor.checks.made import NOW, causes, findings, server, session, setting, state

PLAIN: dict[str, Any] = {"definitions": (), "deferral": Deferral.UNKNOWN, "proof": Proof.NONE, "counted": False}


def with_servers(agent: Agent, *names: str, **about: Any) -> AgentState:
    return state(agent=agent, version="", servers=tuple(server(name, agent=agent) for name in names), **about)


def ran(agent: Agent, count: int, **about: Any) -> list[Session]:
    return [
        session(number, agent=agent, **{**PLAIN, "server_calls": {"a": 1, "b": 1, "c": 1}, **about})
        for number in range(count)
    ]


@pytest.mark.parametrize("agent", ["opencode", "kilo", "cline", "gemini", "zed"])
def test_an_agent_without_deferral_gets_the_gateway_or_the_proxy(agent: Agent) -> None:
    [finding] = findings(with_servers(agent, "a", "b", "c"), *ran(agent, 3))
    assert (finding.cause, finding.id, finding.agent) == (NO_DEFERRAL, f"no-native-deferral:{agent}", agent)
    assert finding.tokens_per_session == {"a": 2_000, "b": 2_000, "c": 2_000}
    assert finding.saving_per_session < 6_000 - 700
    assert finding.fix is not None
    assert finding.fix.kind == ("proxy-install" if agent == "kilo" else "gateway-install")
    assert [each.name for each in finding.fix.servers] == ["a", "b", "c"]


@pytest.mark.parametrize("agent", ["cursor", "vscode"])
def test_an_agent_that_defers_by_itself_is_left_alone(agent: Agent) -> None:
    assert causes(with_servers(agent, "a", "b", "c", "d")) == []


def test_a_few_tools_are_no_burden() -> None:
    assert causes(with_servers("opencode", "a", "b"), *ran("opencode", 3)) == []


def test_servers_of_many_projects_are_not_sent_together() -> None:
    folders = [f"/code/{name}" for name in "abc"]
    states = [with_servers("opencode", folder[-1], project=folder) for folder in folders]
    told = [each for folder in folders for each in ran("opencode", 2, project=folder)]
    assert causes(with_servers("opencode"), *states, *told) == []


def test_only_the_projects_with_many_servers_are_told_of() -> None:
    many = with_servers("opencode", *"abcd", project="/code/many")
    few = with_servers("opencode", "e", project="/code/few")
    told = [*ran("opencode", 4, project="/code/many"), *ran("opencode", 9, project="/code/few")]
    found = findings(with_servers("opencode"), many, few, *told)
    [finding] = [each for each in found if each.cause == NO_DEFERRAL]
    assert finding.sessions == 4
    assert finding.tokens_per_session == dict.fromkeys("abcd", 2_000)
    assert finding.fix is not None
    assert [each.name for each in finding.fix.servers] == list("abcd")


def test_what_codex_sends_is_the_mean_of_the_folders_it_ran_in() -> None:
    one = with_servers("codex", "a", project="/code/one")
    two = with_servers("codex", "b", project="/code/two")
    told = [*ran("codex", 3, project="/code/one", models=("my-model",)),
            *ran("codex", 1, project="/code/two", models=("my-model",))]  # fmt: skip
    found = findings(with_servers("codex"), one, two, *told)
    [finding] = [each for each in found if each.cause == CODEX_MODEL]
    assert finding.tokens_per_session == {"a": 1_500, "b": 500}


def test_tools_that_were_called_show_how_large_a_server_is() -> None:
    many = {f"a_tool_{number}": 1 for number in range(15)}
    [finding] = findings(with_servers("opencode", "a"), *ran("opencode", 3, calls=many))
    assert finding.tokens_per_session == {"a": 6_000}


def test_an_agent_with_pegboard_alone_is_served_already() -> None:
    assert causes(with_servers("opencode", "pegboard"), *ran("opencode", 3)) == []


def test_code_mode_hides_tools_already() -> None:
    on = setting("OPENCODE_EXPERIMENTAL_CODE_MODE", "1", scope="environment", file=None)
    here = state(on, agent="opencode", servers=tuple(server(name, agent="opencode") for name in "abc"))
    assert causes(here, *ran("opencode", 3)) == []


def test_codex_with_a_model_it_does_not_know_is_found() -> None:
    [finding] = findings(with_servers("codex", "a", "b"), *ran("codex", 3, models=("qwen3-coder",)))
    assert (finding.cause, finding.sessions) == (CODEX_MODEL, 3)
    assert "qwen3-coder" in finding.title
    assert finding.fix is not None
    assert finding.fix.kind == "gateway-install"


@pytest.mark.parametrize("model", ["gpt-5.2", "gpt-5.5", "gpt-5.6-sol", "gpt-5.3-codex", "gpt-6.1-sol", "gpt-5.10"])
def test_codex_with_a_model_it_knows_is_left_alone(model: str) -> None:
    assert causes(with_servers("codex", "a"), *ran("codex", 3, models=(model,), server_calls={"a": 1})) == []


@pytest.mark.parametrize("model", ["gpt-5", "gpt-5.1-codex", "gpt-4.1", "my-gpt-5.5", "claude-sonnet-5"])
def test_models_codex_has_no_deferral_for(model: str) -> None:
    assert causes(with_servers("codex", "a"), *ran("codex", 3, models=(model,), server_calls={"a": 1})) == [CODEX_MODEL]


def test_a_search_proves_that_codex_defers_all_the_same() -> None:
    searched = ran("codex", 3, models=("my-model",), searches=1, server_calls={"a": 1})
    assert causes(with_servers("codex", "a"), *searched) == []


def test_a_model_that_is_used_no_more_is_no_finding() -> None:
    old = ran("codex", 3, models=("my-model",), server_calls={"a": 1})
    new = [session(9, agent="codex", **{**PLAIN, "models": ("gpt-5.5",), "server_calls": {"a": 1}})]
    assert causes(with_servers("codex", "a"), *old, *new) == []


def test_codex_without_servers_has_nothing_to_defer() -> None:
    assert causes(with_servers("codex"), *ran("codex", 3, models=("my-model",))) == []


def test_a_model_that_somebody_has_chosen_since_ends_the_matter() -> None:
    chosen = setting("model", "gpt-5.5", changed_at=NOW)
    here = state(chosen, agent="codex", servers=(server("a", agent="codex"),))
    assert causes(here, *ran("codex", 3, models=("my-model",), server_calls={"a": 1})) == []


def test_an_unknown_model_that_is_set_is_found_before_a_session_ran() -> None:
    here = state(setting("model", "my-model"), agent="codex", servers=(server("a", agent="codex"),))
    [finding] = findings(here)
    assert (finding.cause, finding.confidence, finding.sessions) == (CODEX_MODEL, "low", 0)


@pytest.mark.parametrize(
    "address", ["http://127.0.0.1:8722/anthropic/v1", "http://localhost:9000/corp", "http://[::1]:1/x/v1/"]
)
def test_an_agent_behind_the_proxy_is_served_already(address: str) -> None:
    proxied = setting("provider.anthropic.options.baseURL", address)
    here = state(proxied, agent="opencode", servers=tuple(server(name, agent="opencode") for name in "abc"))
    assert causes(here, *ran("opencode", 3)) == []


@pytest.mark.parametrize(
    "address", ["http://localhost:11434/v1", "https://api.anthropic.com/v1", "http://10.0.0.2:8722/x"]
)
def test_an_agent_before_another_endpoint_is_not_behind_the_proxy(address: str) -> None:
    elsewhere = setting("provider.anthropic.options.baseURL", address)
    here = state(elsewhere, agent="opencode", servers=tuple(server(name, agent="opencode") for name in "abc"))
    assert causes(here, *ran("opencode", 3)) == [NO_DEFERRAL]


def test_gemini_is_not_served_by_the_proxy() -> None:
    proxied = setting("GOOGLE_GEMINI_BASE_URL", "http://127.0.0.1:8722/gemini")
    here = state(proxied, agent="gemini", servers=tuple(server(name, agent="gemini") for name in "abc"))
    assert causes(here) == [NO_DEFERRAL]
