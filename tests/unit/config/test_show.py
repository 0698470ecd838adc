"""The effective configuration, fit to be pasted anywhere."""

from __future__ import annotations

import tomllib

from pegboard.config.show import as_toml, masked

TEXT = """\
[tools]
deny = ["x"]
plugin_dirs = ["plugins"]
[gateway]
call_timeout = 60
[servers.github]
command = "npx"
args = ["--token", "hush-arg", "--api-key=hush-option", "--key", "${SECRET_KEY}", "--name", "${WHO}", "plain"]
env = { GITHUB_TOKEN = "hush-env", MODE = "fast", HOST_NAME = "${WHO}" }
start_timeout = 5
[servers."odd name"]
url = "https://ada:hush-user@example.org/mcp?api_key=hush-query&page=2"
headers = { Authorization = "Bearer hush-header", Accept = "text/plain", X-Who = "${WHO}" }
[servers.path]
url = "https://example.org/${SECRET_KEY}/mcp"
[servers.broken]
command = "${NOT_SET}"
"""


def configured(place):
    place.write(TEXT)
    plugin = place.project / "plugins" / "p" / "plugin.json"
    plugin.parent.mkdir(parents=True)
    plugin.write_text('{"name": "p", "version": "2.0", "command": "x"}', encoding="utf-8")
    return place.load(WHO="hush-variable", SECRET_KEY="hush-key")


def test_secrets_are_masked_and_the_rest_is_shown(place):
    servers = masked(configured(place))["servers"]
    assert servers["github"]["args"] == [
        *("--token", "***", "--api-key=***", "--key", "***", "--name", "hush-variable", "plain")
    ]
    assert servers["github"]["env"] == {"GITHUB_TOKEN": "***", "MODE": "fast", "HOST_NAME": "***"}
    assert servers["odd name"]["url"] == "https://***@example.org/mcp?api_key=***&page=2"
    assert servers["odd name"]["headers"] == {"Authorization": "***", "Accept": "text/plain", "X-Who": "***"}
    assert servers["path"]["url"] == "https://example.org/***"


def test_nothing_secret_is_left_in_the_text(place):
    config = configured(place)
    assert "hush" not in as_toml(config).replace("hush-variable", "", 1)  # --name, which is no secret
    assert "hush" not in str(masked(config)).replace("hush-variable", "", 1)


def test_the_text_is_toml_and_names_where_each_server_comes_from(place):
    text = as_toml(configured(place))
    document = tomllib.loads(text)
    assert document["gateway"] == {
        "max_starting": 4,
        "background_refresh": True,
        "start_timeout": 30.0,
        "call_timeout": 60.0,
        "idle_timeout": 300.0,
        "max_result_bytes": 16 * 1024 * 1024,
        "max_pages": 100,
        "max_tools": 10_000,
    }
    assert document["tools"]["deny"] == ["x"]
    assert list(document["servers"]) == ["github", "odd name", "path", "broken", "p"]
    assert document["servers"]["github"]["start_timeout"] == 5.0
    assert "call_timeout" not in document["servers"]["github"]
    assert f"# read: {place.project}/pegboard.toml" in text
    assert f"# from {place.project}/pegboard.toml\n[servers.github]" in text
    assert f"# from {place.project}/plugins/p/plugin.json\n# plug-in version 2.0\n[servers.p]" in text
    assert "# problem: environment variable NOT_SET is not set" in text


def test_odd_characters_cannot_break_out_of_their_line(place):
    path = place.write_json({"mcpServers": {"a\nb": {"command": "x\u007f\n\"'\\", "args": ["\u2028", "[]"]}}})
    config = place.load(files=[path])
    document = tomllib.loads(as_toml(config))
    assert document["servers"]["a\nb"]["command"] == "x\u007f\n\"'\\"
    assert document["servers"]["a\nb"]["args"] == ["\u2028", "[]"]
    plugin = place.project / "plugins" / "p\nq = 1" / "plugin.json"
    plugin.parent.mkdir(parents=True)
    plugin.write_text("{", encoding="utf-8")
    config = place.load(overrides=["tools.plugin_dirs=['plugins']"])
    assert list(tomllib.loads(as_toml(config))["servers"]) == ["p\nq = 1"]


def test_a_server_from_a_flag_says_so(place):
    config = place.load(overrides=["servers.a.command=x"])
    assert "# no configuration file was found" in as_toml(config)
    assert "# from flags or variables\n[servers.a]" in as_toml(config)
    assert masked(config)["servers"]["a"]["origin"] is None
