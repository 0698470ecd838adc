"""Whatever an agent's settings look like, pointing it at the proxy and back leaves every byte as it was."""

from __future__ import annotations

import stat
import tempfile
from pathlib import Path
from random import Random

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pegboard.config.importers.found import Places
from pegboard.config.installers.agents import AGENTS
from pegboard.config.installers.documents import parse
from pegboard.config.installers.redirect import Proxy, plan
from pegboard.config.installers.settings import apply, take_back, value_at
from pegboard.errors import ConfigError
from pegboard.store.redirects import Redirects
from tests.often import often
from tests.property.test_installers import LEAVES, OTHERS, RANDOMS, TOML_OTHERS, WORDS, written_json
from tests.property.toml_writer import Writer

BUILT_IN = {"anthropic": "https://api.anthropic.com", "openai": "https://api.openai.com", "gemini": "https://g.example"}
PROXY = Proxy(base="http://127.0.0.1:8722", upstreams=BUILT_IN, built_in=frozenset(BUILT_IN))
EDITED = [agent for agent in AGENTS if agent.files is not None]
ADDRESSES = st.sampled_from(
    [
        "https://api.anthropic.com/v1",
        "https://llm.example/v1/",
        "http://localhost:11434",
        "http://10.1.1.1/v1",
        "{env:X}",
        "http://127.0.0.1:8722/anthropic/v1",
        "",
    ]
)
PROVIDERS = st.dictionaries(
    st.one_of(st.sampled_from(["anthropic", "openai", "corp", "openai-compatible"]), WORDS),
    st.tuples(st.none() | ADDRESSES, st.dictionaries(WORDS, LEAVES, max_size=2)),
    max_size=4,
)
NEWLINES = st.sampled_from(["\n", "\r\n"])


def document_of(agent, providers, others):
    """Settings of this agent that speak of these providers."""

    def entry(key, address, more):
        return {**more, **({} if address is None else {key: address})}

    if agent in {"opencode", "kilo"}:
        table = {name: {"options": entry("baseURL", *each)} for name, each in providers.items()}
        return {**others, **({"provider": table} if table else {})}
    if agent == "cline":
        return {
            **others,
            "providers": {name: {"settings": entry("baseUrl", *each)} for name, each in providers.items()},
        }
    known = {name: each for name, each in providers.items() if name in {"anthropic", "openai"}}
    table = {name: entry("api_url", *each) for name, each in known.items()}
    compatible = {name: entry("api_url", *each) for name, each in providers.items() if name not in known}
    return {**others, "language_models": {**table, "openai_compatible": compatible}}


def written_env(providers, random, newline):
    names = ["GOOGLE_GEMINI_BASE_URL", "GEMINI_API_KEY", "A.b", "X_1"]
    lines = []
    for address, _ in providers.values():
        quote = random.choice(("", "'", '"', "`"))
        export, gap = random.choice(("", "export ", "  ")), random.choice(("=", " = ", "= "))
        comment = random.choice(("", " # mine", "  "))
        lines.append(f"{export}{random.choice(names)}{gap}{quote}{address or ''}{quote}{comment}")
        lines += random.choice(([], [""], ["# GOOGLE_GEMINI_BASE_URL=no"], ['M="a', "GOOGLE_GEMINI_BASE_URL=b", '"']))
    return random.choice(("", "\ufeff")) + newline.join(lines) + random.choice(("", newline))


def written_toml(providers, others, random, newline):
    addresses = [address for address, _ in providers.values() if address]
    writer = Writer(random)
    writer.table({**others, **({"openai_base_url": addresses[0]} if addresses else {})})
    text = writer.text.replace("\r\n", "\n").replace("\n", newline)
    return random.choice(("", "\ufeff")) + (text if random.random() < 0.5 else text.removesuffix(newline))


@st.composite
def texts(draw, agent):
    """A file of this agent, as people and programs write it."""
    random, newline, providers = draw(RANDOMS), draw(NEWLINES), draw(PROVIDERS)
    if agent.format == "env":
        return written_env(providers, random, newline)
    if agent.format == "toml":
        others = draw(TOML_OTHERS.filter(lambda each: "openai_base_url" not in each))
        return written_toml(providers, others, random, newline)
    others = draw(OTHERS.filter(lambda each: not {"provider", "providers", "language_models"} & each.keys()))
    document = document_of(agent.id, providers, others)
    return random.choice(
        (
            written_json(document, random, newline),
            msgspec.json.format(msgspec.json.encode(document), indent=random.choice((0, 2, 4))).decode(),
        )
    )


class Home:
    """A home folder with one agent's file, and perhaps a pegboard.toml."""

    def __init__(self, folder, agent, text, config):
        self.agent = agent
        places = Places(home=folder, cwd=folder, environ={}, platform="linux")
        self.files = agent.files(places)
        self.file = self.files[agent.default]
        self.config = folder / "pegboard.toml"
        self.folder = folder
        self.redirects = Redirects(folder / "state")
        if text is not None:
            self.file.parent.mkdir(parents=True)
            self.file.write_bytes(text.encode())
            self.file.chmod(0o640)
        if config is not None:
            self.config.write_bytes(config.encode())

    def plan(self):
        texts = {file: self._text(file) for file in self.files}
        journal = self.redirects.journal().redirects_of(self.agent.id)
        return plan(self.agent, texts, PROXY, (self.config, self._text(self.config)), journal)

    def undo(self):
        return self.redirects.undo(self.redirects.journal().redirects_of(self.agent.id))

    def everything(self):
        state = self.folder / "state"
        files = (path for path in self.folder.rglob("*") if state not in path.parents and path != state)
        return {
            path: (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) if path.is_file() else None for path in files
        }

    @staticmethod
    def _text(file):
        return file.read_bytes().decode() if file.exists() else None


CONFIGS = st.sampled_from(
    [
        None,
        "",
        "# mine",
        '[servers.a]\r\ncommand = "a"\r\n',
        '\ufeff[proxy.upstreams]\nx = "https://x" # y\n\n[search]\n',
    ]
)


@pytest.mark.parametrize("agent", EDITED, ids=lambda agent: agent.id)
@settings(max_examples=often(60), deadline=None)
@given(st.data())
def test_pointing_an_agent_at_the_proxy_and_back_leaves_every_byte_as_it_was(agent, data):
    text, config = data.draw(st.none() | texts(agent)), data.draw(CONFIGS)
    with tempfile.TemporaryDirectory() as folder:
        home = Home(Path(folder), agent, text, config)
        before = home.everything()
        try:
            found = home.plan()
        except ConfigError:
            # Only where keys that we need hold something else.
            assert home.everything() == before
            return
        if not found.is_needed:
            return
        home.redirects.apply(found)
        again = home.plan()
        assert not again.is_needed
        assert {*again.pointed} >= {setting.name for each in found.files for setting in each.settings}
        home.undo()
        assert home.everything() == before
        assert home.redirects.journal().redirects == ()


@pytest.mark.parametrize("agent", EDITED, ids=lambda agent: agent.id)
@settings(max_examples=often(100), deadline=None)
@given(st.data())
def test_taking_back_from_a_file_that_was_written_anew_changes_our_values_alone(agent, data):
    text, later = data.draw(texts(agent)), data.draw(texts(agent))
    with tempfile.TemporaryDirectory() as folder:
        home = Home(Path(folder), agent, None, None)
        try:
            files = dict.fromkeys(home.files) | {home.file: text}
            [found] = plan(agent, files, PROXY, (home.config, None), ()).files
            if data.draw(st.booleans()):
                later = apply(later, found.settings, agent.format)
            now = parse(later, agent.format)
        except (ConfigError, ValueError):
            return
        ours = [setting for setting in found.settings if value_at(now, setting.path) == setting.value]
        try:
            back = take_back(later, text, found.settings, agent.format)
        except ConfigError:
            return
        old, after = parse(text, agent.format), parse(back.text, agent.format)
        assert list(back.restored) == ours
        for setting in found.settings:
            wanted = value_at(old, setting.path) if setting in ours else value_at(now, setting.path)
            assert value_at(after, setting.path) == wanted
        for key in now.keys() - {setting.path[0] for setting in found.settings}:
            assert after[key] == now[key]


def test_random_files_are_of_every_kind():
    """The generators do what they are there for: some have marks, some Windows line ends, some no end of line."""
    random = Random(1)
    made = [written_env({"a": ("https://x", {}), "b": (None, {})}, random, "\r\n") for _ in range(50)]
    assert any(text.startswith("\ufeff") for text in made)
    assert any(not text.endswith("\n") for text in made)
    assert any("\r\n" in text for text in made)
