"""What looks like a secret, and servers written without any."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pegboard.config.expand import expand
from pegboard.config.importers.secrets import mask_secrets, masked, secrets_in, without_secrets
from pegboard.config.model import ServerConfig


def stdio(*args, **env):
    return ServerConfig(command="x", args=args, env=env)


@pytest.mark.parametrize(
    ("config", "places"),
    [
        (stdio(GITHUB_TOKEN="abc", LOG_LEVEL="debug"), ("env.GITHUB_TOKEN",)),
        (stdio(GITHUB_TOKEN="${GITHUB_TOKEN}"), ()),
        (stdio(GITHUB_TOKEN=""), ()),
        (stdio("--api-key=abc"), ("args.api-key",)),
        (stdio("--access-token", "abc"), ("args.access-token",)),
        (stdio("--access-token", "${T}"), ()),
        (stdio("-e", "API_KEY=abc"), ("args.API_KEY",)),
        (stdio("-e", "API_KEY"), ()),
        (stdio("--header", "Authorization: Bearer abc"), ("args.Authorization",)),
        (stdio("postgresql://me:pw@db.example/x"), ("args",)),
        (stdio("--database", "postgresql://db.example/x", "--port", "80", "--max-tokens", "5"), ()),
        (ServerConfig(url="https://x.example/mcp?api_key=abc&x=1#y"), ("url.api_key",)),
        (ServerConfig(url="https://me:pw@x.example/mcp"), ("url.password",)),
        (ServerConfig(url="https://x.example", headers={"X-Api-Key": "abc", "Accept": "*/*"}), ("headers.X-Api-Key",)),
        (ServerConfig(url="https://x.example", headers={"Authorization": "Bearer ${T}"}), ()),
    ],
)
def test_secrets_are_found_wherever_they_stand(config, places):
    assert secrets_in(config) == places


def test_secrets_become_variables_and_the_rest_stays_as_it_is():
    config = stdio("-y", "--api-key=abc", "--header", "Authorization: Bearer abc", GITHUB_TOKEN="t", LOG="1")

    written, variables = without_secrets({"git-hub": config})

    assert written["git-hub"] == stdio(
        "-y",
        "--api-key=${GIT_HUB_API_KEY}",
        "--header",
        "Authorization: Bearer ${GIT_HUB_AUTHORIZATION}",
        GITHUB_TOKEN="${GITHUB_TOKEN}",
        LOG="1",
    )
    assert variables == {
        "GITHUB_TOKEN": ("git-hub: env.GITHUB_TOKEN",),
        "GIT_HUB_API_KEY": ("git-hub: args.api-key",),
        "GIT_HUB_AUTHORIZATION": ("git-hub: args.Authorization",),
    }


def test_secrets_of_a_remote_server_keep_their_scheme_and_place():
    config = ServerConfig(url="https://u:pw@x.example/mcp?a=1&key=k", headers={"Authorization": "Bearer abc"})

    written, _ = without_secrets({"x": config})

    assert written["x"].url == "https://u:${X_PASSWORD}@x.example/mcp?a=1&key=${X_KEY}"
    assert written["x"].headers == {"Authorization": "Bearer ${X_AUTHORIZATION}"}


def test_two_values_of_one_name_never_share_a_variable_and_equal_values_do():
    written, variables = without_secrets({"a": stdio(TOKEN="1"), "b": stdio(TOKEN="2"), "c": stdio(TOKEN="1")})

    assert [config.env["TOKEN"] for config in written.values()] == ["${TOKEN}", "${B_TOKEN}", "${TOKEN}"]
    assert variables["TOKEN"] == ("a: env.TOKEN", "c: env.TOKEN")


@given(
    st.dictionaries(
        st.sampled_from(["a", "b", "c-d", "c_d"]),
        st.builds(
            ServerConfig,
            command=st.just("x"),
            args=st.lists(st.sampled_from(["--token", "--key=1", "--key=2", "a", "b", "T=3"])).map(tuple),
            env=st.dictionaries(st.sampled_from(["TOKEN", "B_TOKEN", "token", "LOG"]), st.sampled_from("123")),
        ),
    )
)
@settings(deadline=None)
def test_setting_the_variables_gives_back_the_very_servers(servers):
    written, variables = without_secrets(servers)
    values: dict[str, str] = {}
    for key, config in servers.items():
        for place, before, after in (
            *((f"env.{name}", value, written[key].env[name]) for name, value in config.env.items()),
            *(("args", *pair) for pair in zip(config.args, written[key].args, strict=True)),
        ):
            for name in expand(after, {}).names:
                start = after.index("${")
                assert before[:start] == after[:start], place
                assert values.setdefault(name, before[start:]) == before[start:]
    assert set(values) == set(variables)
    assert all(not secrets_in(config) for config in written.values())


def test_masking_hides_every_literal_value_and_shows_references():
    config = stdio("--x", TOKEN="abc", LOG="debug", PLAIN="${PLAIN}", FALLBACK="${A:-secret}", MIXED="pre${A}")

    assert masked(config).env == {
        "TOKEN": "***",
        "LOG": "***",
        "PLAIN": "${PLAIN}",
        "FALLBACK": "***",
        "MIXED": "***",
    }
    assert masked(config).args == config.args


def test_masking_what_would_be_written_hides_only_secrets():
    config = ServerConfig(url="https://x.example", headers={"Authorization": "Bearer abc", "Accept": "*/*"})

    assert mask_secrets(config).headers == {"Authorization": "Bearer ***", "Accept": "*/*"}
