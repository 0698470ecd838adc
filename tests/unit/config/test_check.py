"""Wrong keys, types and values: each is told with file, line, key and what would be right."""

from __future__ import annotations

import pytest

from pegboard.config.check import SECTIONS, fields_of
from pegboard.config.model import ServerConfig, Table

GOOD = 'command = "x"\n'


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ('comand = "x"', "comand: unknown key; did you mean command?"),
        ("start-timeout = 3", "start-timeout: unknown key; did you mean start_timeout?"),
        ('args = "x"', "args: expected a list of strings, got a string"),
        ("args = ['a', 3]", "args[1]: expected a string, got a whole number"),
        ("env = ['a']", "env: expected a table of strings, got a list"),
        ("env = { A = 3 }", "env.A: expected a string, got a whole number"),
        ("env = { A = true }", "env.A: expected a string, got true"),
        ("env = { 'A=B' = 'x' }", 'env."A=B": not a name an environment variable can have'),
        ("env = { '' = 'x' }", 'env."": not a name an environment variable can have'),
        ("headers = { 'A B' = 'x' }", 'headers."A B": not a name an HTTP header can have'),
        ("cwd = 1979-05-27", "cwd: expected a string, got a date or time"),
        ("cwd = ' '", "cwd: must not be empty"),
        ('enabled = "yes"', "enabled: expected true or false, got a string"),
        ("enabled = 1", "enabled: expected true or false, got a whole number"),
        ('transport = "htp"', 'transport: expected one of stdio, http, sse, got "htp"; did you mean http?'),
        ("transport = 3", "transport: expected one of stdio, http, sse, got a whole number"),
        ("start_timeout = 0", "start_timeout: must be greater than 0, got 0"),
        ("call_timeout = -1.5", "call_timeout: must be greater than 0, got -1.5"),
        ("call_timeout = true", "call_timeout: expected a number, got true"),
        ("call_timeout = inf", "call_timeout: expected a finite number"),
        ("call_timeout = nan", "call_timeout: must be greater than 0, got nan"),
        ('idle_timeout = "5m"', "idle_timeout: expected a number, got a string"),
        ("max_result_bytes = 10", "max_result_bytes: must be at least 1024, got 10"),
        ("max_result_bytes = 2048.5", "max_result_bytes: expected a whole number, got a number"),
        ("cost_usd = -1", "cost_usd: must be at least 0, got -1"),
        ("inherit_env = 3", "inherit_env: expected true or false or a list of strings, got a whole number"),
        ("inherit_env = [3]", "inherit_env[0]: expected a string, got a whole number"),
        ("requires = 'git'", "requires: expected a table, got a string"),
        ("requires = { envs = ['A'] }", "requires.envs: unknown key; did you mean env?"),
        ("requires = { env = 'A' }", "requires.env: expected a list of strings, got a string"),
        ("requires = { url = 'example.org' }",
         'requires.url: expected an address such as https://example.org, got "example.org"'),
        ("include = ['']", "include[0]: an empty pattern matches no tool"),
        ("exclude = ['a', 'b[c']", 'exclude[1]: the [ in pattern "b[c" is never closed; a literal [ is written [[]'),
        ('args = ["a\\u0000b"]', "args[0]: a string here cannot contain the character NUL"),
    ],
)  # fmt: skip
def test_a_wrong_key_of_a_server_is_told_with_file_line_and_key(place, line, told):
    place.write(f"# a comment\n[servers.github]\n{GOOD}{line}\n")
    assert place.problems() == [f"pegboard.toml:4: servers.github.{told}"]


@pytest.mark.parametrize("pattern", ["a*", "[[]x", "[!a]b", "[]]", "[!]]", "a]b", "?", "github__*"])
def test_globs_that_can_match_are_accepted(place, pattern):
    place.write(f"[tools]\ndeny = ['{pattern}']\n[servers.a]\n{GOOD}include = ['{pattern}']\n")
    config = place.load()
    assert config.tools.deny == config.servers["a"].config.include == (pattern,)


@pytest.mark.parametrize("pattern", ["[", "a[", "[!", "[]", "[!]", "x[]y"])
def test_globs_with_an_open_bracket_are_refused(place, pattern):
    place.write(f"[tools]\ndeny = ['{pattern}']\n")
    assert "is never closed" in place.problems()[0]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[gatway]", "1: gatway: unknown key; did you mean gateway?"),
        ("[xyzzy]", f"1: xyzzy: unknown key; there are {', '.join((*SECTIONS, 'servers'))}"),
        ("servers = 3", "1: servers: expected tables such as [servers.github], got a whole number"),
        ("servers = []", "1: servers: expected tables such as [servers.github], got a list"),
        ("[[servers]]", "1: servers: expected tables such as [servers.github], got a list"),
        ("[servers]\ngithub = 'npx'", "2: servers.github: expected a table, got a string"),
        ("[servers.'']\ncommand = 'x'", '1: servers."": a server needs a name'),
        ("tools = 'x'", "1: tools: expected a table, got a string"),
        ("[gateway]\nmax_starting = 0", "2: gateway.max_starting: must be at least 1, got 0"),
        ("[gateway]\nmax_starting = 1.5", "2: gateway.max_starting: expected a whole number, got a number"),
        ("[tools]\nrefresh_after = -1", "2: tools.refresh_after: must be at least 0, got -1"),
        ("[store]\ncache_dir = 3", "2: store.cache_dir: expected a string, got a whole number"),
        ("mcpServers = {}", "1: mcpServers: unknown key; did you mean servers?"),
    ],
)
def test_a_wrong_table_is_told(place, text, told):
    place.write(text + "\n")
    assert place.problems() == [f"pegboard.toml:{told}"]


@pytest.mark.parametrize(
    ("server", "told"),
    [
        ("lazy = false", "1: servers.a: needs a command (a local server) or a url (a remote one)"),
        ("command = ''", "2: servers.a.command: must not be empty"),
        ("command = 'x'\nurl = 'https://x.org'", "3: servers.a.url: a server has a command or a url, not both"),
        ("url = 'ftp://x.org'",
         '2: servers.a.url: expected an address such as https://example.org/mcp, got "ftp://x.org"'),
        ("url = 'x.org/mcp'", "2: servers.a.url: expected an address such as https://example.org/mcp"),
        ("url = 'https://'", "2: servers.a.url: expected an address such as https://example.org/mcp"),
        ("url = 'http://:80'", "2: servers.a.url: expected an address such as https://example.org/mcp"),
        ("url = 'http://a b/'", "2: servers.a.url: expected an address such as https://example.org/mcp"),
        ("url = 'https://x.org'\ntransport = 'stdio'",
         "3: servers.a.transport: stdio needs a command, but the server has a url"),
        ("command = 'x'\ntransport = 'sse'",
         "3: servers.a.transport: sse needs a url, but the server has a command"),
        ("url = 'https://x.org'\nheaders = { A = \"x\\ny\" }",
         "3: servers.a.headers.A: an HTTP header cannot contain a line break"),
    ],
)  # fmt: skip
def test_a_server_that_cannot_be_reached_as_written_is_told(place, server, told):
    place.write(f"[servers.a]\n{server}\n")
    (problem,) = place.problems()
    assert problem.startswith(f"pegboard.toml:{told}")


@pytest.mark.parametrize(
    "url", ["http://localhost", "HTTPS://Example.org:8443/mcp?x=y#z", "http://[::1]:80/", "https://u:p@h/x"]
)
def test_addresses_that_can_be_reached_are_accepted(place, url):
    place.write(f"[servers.a]\nurl = '{url}'\n")
    assert place.load().servers["a"].config.url == url


def test_a_misspelt_command_is_told_once_and_not_as_a_missing_one_too(place):
    place.write("[servers.a]\ncomand = 'x'\n[servers.ab]\nlazy = true\n")
    assert [line.split(": ", 1)[1] for line in place.problems()] == [
        "servers.a.comand: unknown key; did you mean command?",
        "servers.ab: needs a command (a local server) or a url (a remote one)",
    ]


def test_command_and_url_from_two_files_name_the_other_file(place):
    user = place.write_user("[servers.a]\ncommand = 'x'\n")
    place.write("[servers.a]\nurl = 'https://x.org'\n")
    assert place.problems() == [
        f"pegboard.toml:2: servers.a.url: a server has a command or a url, not both ({user} says command)"
    ]


def test_what_has_no_effect_is_a_warning(place):
    place.write(
        "[servers.a]\nurl = 'https://x.org'\nargs = ['x']\nenv = { A = 'x' }\n"
        "[servers.b]\ncommand = 'x'\nheaders = { X = 'y' }\n"
    )
    warnings = [line.rpartition("/")[2] for line in place.load().warnings]
    assert warnings == [
        "pegboard.toml:3: servers.a.args: has no effect on a server that has a url",
        "pegboard.toml:4: servers.a.env.A: has no effect on a server that has a url",
        "pegboard.toml:7: servers.b.headers.X: has no effect on a server that has a command",
    ]


def test_every_field_of_every_table_can_be_said_wrongly_and_is_then_told(place):
    # A date fits no field: if a field were not checked, its problem would be missing.
    tables: dict[str, type[Table]] = {**SECTIONS, "servers.a": ServerConfig}
    wrong = [(name, key) for name, table in tables.items() for key in fields_of(table)]
    text = "".join(
        f"[{name}]\n" + "".join(f"{key} = 1979-05-27\n" for key in fields_of(table)) for name, table in tables.items()
    )
    place.write_user(text)
    told = [problem.key for problem in place.examine().problems]
    assert told == [f"{name}.{key}" for name, key in wrong]


@pytest.mark.parametrize(
    ("name", "address", "told"),
    [
        (
            "a",
            "http://llm.example",
            "must begin with https:// unless it is on this machine: your API keys are sent there",
        ),
        (
            "a",
            "http://10.0.0.1:80",
            "must begin with https:// unless it is on this machine: your API keys are sent there",
        ),
        ("a", "ftp://127.0.0.1", "must begin with https:// unless it is on this machine: your API keys are sent there"),
        ("a", "llm.example", 'expected an address such as https://api.example.org, got "llm.example"'),
        ("a", "https://x:port/", 'not an address: "https://x:port/"'),
        ("a", "https://me:key@x", "an address here has no user, no query and no fragment; keys stay with the agent"),
        ("a", "https://x?key=1", "an address here has no user, no query and no fragment; keys stay with the agent"),
        (
            "a b",
            "https://x",
            "not a name that can stand in an address: letters, digits, `.`, `_` and `-`, a letter or digit first",
        ),
    ],
)
def test_an_upstream_that_keys_should_not_go_to_is_told_with_its_line(place, name, address, told):
    named = place.write(f'[proxy.upstreams]\nfine = "https://x"\n"{name}" = "{address}"\n', "own.toml")
    key = name if name == "a" else f'"{name}"'
    assert place.problems(files=[named]) == [f"own.toml:3: proxy.upstreams.{key}: {told}"]


@pytest.mark.parametrize(
    "address", ["http://127.0.0.1:11434", "http://localhost/v1", "http://[::1]:1", "https://x/api"]
)
def test_an_upstream_on_this_machine_or_behind_https_is_fine(place, address):
    named = place.write(f'[proxy.upstreams]\na = "{address}"\n', "own.toml")
    assert place.load(files=[named]).proxy.upstreams == {"a": address}


@pytest.mark.parametrize("listen", ["8722", ":8722", "127.0.0.1", "127.0.0.1:http", "127.0.0.1:65536", "[]:1"])
def test_where_to_listen_is_said_whole(place, listen):
    named = place.write(f'[proxy]\nlisten = "{listen}"\n', "own.toml")
    told = f'own.toml:2: proxy.listen: expected a host and a port, as in 127.0.0.1:8722, got "{listen}"'
    assert place.problems(files=[named]) == [told]


def test_globs_of_the_proxy_are_checked_as_others_are(place):
    named = place.write('[proxy]\nlisten = "[::1]:0"\nkeep = ["a["]\ndeny_models = [" "]\n', "own.toml")
    assert [problem.split(": ")[1] for problem in place.problems(files=[named])] == [
        "proxy.keep[0]",
        "proxy.deny_models[0]",
    ]
