"""What pointing an agent at the proxy comes to."""

from __future__ import annotations

from pathlib import Path

import pytest

from pegboard.config import jsonc
from pegboard.config.importers.found import Places
from pegboard.config.installers.agents import AGENTS, agent_named
from pegboard.config.installers.journal import Redirect
from pegboard.config.installers.redirect import Proxy, plan
from pegboard.config.installers.settings import Setting
from pegboard.errors import ConfigError, PegboardError

BUILT_IN = {"anthropic": "https://api.anthropic.com", "openai": "https://api.openai.com"}
PROXY = Proxy(base="http://127.0.0.1:8722", upstreams=BUILT_IN, built_in=frozenset(BUILT_IN))
CONFIG = (Path("/home/me/.config/pegboard/pegboard.toml"), None)
A, B = Path("/a.json"), Path("/b.json")


def planned(agent, *texts, proxy=PROXY, journal=(), config=CONFIG):
    files = (A, B, Path("/c.json"), Path("/d.json"), Path("/e.json"))
    return plan(agent_named(agent), dict(zip(files, texts, strict=False)), proxy, config, journal)


def values(found):
    return {setting.name: setting.value for each in found.files for setting in each.settings}


def provider(name, address):
    return f'"{name}": {{"options": {{"baseURL": "{address}"}}}}'


def test_known_providers_are_pointed_and_others_that_have_an_address_get_an_upstream_of_their_own():
    found = planned("opencode", f'{{"provider": {{{provider("Open Router", "https://openrouter.ai/api/v1/")}}}}}')
    assert values(found) == {
        "provider.anthropic.options.baseURL": "http://127.0.0.1:8722/anthropic/v1",
        "provider.openai.options.baseURL": "http://127.0.0.1:8722/openai/v1",
        "provider.Open Router.options.baseURL": "http://127.0.0.1:8722/open-router/v1",
    }
    assert found.config.after == '[proxy.upstreams]\nopen-router = "https://openrouter.ai/api"\n'
    assert found.files[0].upstreams == ("anthropic", "openai", "open-router")


def test_a_known_provider_with_an_address_of_its_own_keeps_going_there():
    text = f'{{"provider": {{{provider("anthropic", "https://llm.corp.example/v1")}}}}}'
    found = planned("opencode", text)
    assert values(found)["provider.anthropic.options.baseURL"] == "http://127.0.0.1:8722/opencode-anthropic/v1"
    assert found.config.settings == (Setting(("proxy", "upstreams", "opencode-anthropic"), "https://llm.corp.example"),)


def test_an_upstream_of_the_same_address_is_used_again():
    known = Proxy(base=PROXY.base, upstreams={**BUILT_IN, "mine": "https://x.example/api/"}, built_in=PROXY.built_in)
    text = f'{{"provider": {{{provider("a", "https://x.example/api")}, {provider("b", "https://api.openai.com/v1")}}}}}'
    found = planned("opencode", text, proxy=known)
    assert values(found)["provider.a.options.baseURL"] == "http://127.0.0.1:8722/mine"
    assert values(found)["provider.b.options.baseURL"] == "http://127.0.0.1:8722/openai/v1"
    assert found.config is None


def test_the_file_that_counts_is_the_one_that_is_changed():
    found = planned("opencode", "{}", f'{{"provider": {{{provider("openai", "https://corp.example/v1")}}}}}')
    by_file = {each.file: [setting.name for setting in each.settings] for each in found.files}
    assert by_file == {A: ["provider.anthropic.options.baseURL"], B: ["provider.openai.options.baseURL"]}


def test_when_there_is_no_file_the_plain_name_is_made():
    found = planned("kilo", None, None, None, None, None)
    assert [each.file for each in found.files] == [B]


@pytest.mark.parametrize("address", ["http://127.0.0.1:8722/anthropic/v1", "http://localhost:8722/anthropic/v1/"])
def test_an_address_that_points_at_the_proxy_is_left_as_it_is(address):
    found = planned("zed", f'{{"language_models": {{"anthropic": {{"api_url": "{address}"}}}}}}')
    assert list(values(found)) == ["language_models.openai.api_url"]
    assert found.pointed == ("language_models.anthropic.api_url",)


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("{env:BASE}", "filled in by opencode alone"),
        ("http://10.0.0.5:11434/v1", "must begin with https://"),
        ("https://user:pass@x.example/v1", "no user"),
        ("nonsense", "expected an address"),
    ],
)
def test_an_address_that_the_proxy_could_not_reach_safely_stays_and_the_reason_is_told(address, reason):
    found = planned("opencode", f'{{"provider": {{{provider("x", address)}}}}}')
    assert reason in found.stays["provider.x.options.baseURL"]
    assert found.config is None


def test_what_we_wrote_for_a_proxy_that_listened_elsewhere_is_moved_and_is_no_upstream():
    path = ("provider", "x", "options", "baseURL")
    old = Setting(path, "http://127.0.0.1:9000/mine/v1")
    record = Redirect(agent="opencode", file=str(A), at="", format="json", settings=(old,), after="")
    found = planned("opencode", f'{{"provider": {{{provider("x", old.value)}}}}}', journal=[record])
    assert values(found)["provider.x.options.baseURL"] == "http://127.0.0.1:8722/mine/v1"
    assert found.config is None


def test_zed_is_told_addresses_as_it_expects_them():
    text = '{"language_models": {"openai_compatible": {"Together AI": {"api_url": "https://api.together.xyz/v1"}}}}'
    assert values(planned("zed", text)) == {
        "language_models.anthropic.api_url": "http://127.0.0.1:8722/anthropic",
        "language_models.openai.api_url": "http://127.0.0.1:8722/openai/v1",
        "language_models.openai_compatible.Together AI.api_url": "http://127.0.0.1:8722/together-ai/v1",
    }


def test_cline_is_pointed_for_the_providers_that_someone_has_set_up():
    text = (
        '{"providers": {"anthropic": {"settings": {"apiKey": "k"}}, "cline": {"settings": {}}, "openai-compatible": '
        '{"settings": {"baseUrl": "http://localhost:4000/v1"}}}}'
    )
    assert values(planned("cline", text)) == {
        "providers.anthropic.settings.baseUrl": "http://127.0.0.1:8722/anthropic/v1",
        "providers.openai-compatible.settings.baseUrl": "http://127.0.0.1:8722/openai-compatible/v1",
    }
    assert not planned("cline", None).is_needed


def test_keys_and_tables_of_others_stay_as_they_are():
    found = planned("opencode", '{"provider": {"openai": {"options": {"apiKey": "k"}}}, "theme": "dark"}')
    document = jsonc.parse(found.files[0].after)
    assert document["provider"]["openai"] == {"options": {"apiKey": "k", "baseURL": "http://127.0.0.1:8722/openai/v1"}}
    assert document["theme"] == "dark"


def test_two_providers_of_one_plain_name_get_two_upstreams():
    text = f'{{"provider": {{{provider("a b", "https://x.example")}, {provider("A-B", "https://y.example")}}}}}'
    assert [setting.path[-1] for setting in planned("opencode", text).config.settings] == ["a-b", "opencode-a-b"]


@pytest.mark.parametrize("text", ["{", '{"provider": []}', "[]"])
def test_a_file_that_cannot_be_understood_is_named(text):
    with pytest.raises(ConfigError, match=r"/a\.json"):
        planned("opencode", text)


def test_no_file_of_any_agent_lies_in_a_project(tmp_path):
    places = Places(home=tmp_path / "home", cwd=tmp_path / "project", environ={}, platform="linux")
    for agent in AGENTS:
        for file in agent.files(places) if agent.files else ():
            assert file.is_relative_to(places.home)


def test_an_agent_that_is_not_known_is_told_the_nearest():
    with pytest.raises(PegboardError) as caught:
        agent_named("opencod")
    assert caught.value.hint == "Did you mean opencode?"
