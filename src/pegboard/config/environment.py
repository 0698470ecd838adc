"""The environment a local server gets: the user's own, without what no server needs to know.

Every MCP server is somebody else's program. By default it inherits the environment minus what looks like a secret,
a connection string or the socket of a key agent; what it needs it is given by name. Names decide first, because a
secret is a secret before it has a value; values are looked at where a name says nothing.
Above: `upstream` starts processes with it, `config show` masks by it. Below: the model.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping

from pegboard.config.model import ServerConfig

MINIMAL = ("PATH", "HOME")
"""What a server gets with `inherit_env = false`."""

_OWN = "PEGBOARD_"

_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
# Wherever they stand in a name, it is about a secret. As endings they count too: PGPASSWORD, githubtoken.
_SECRET = ("TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL", "CREDENTIALS", "APIKEY", "COOKIE")
_ALWAYS = {*_SECRET, "SECRETS", "PASSWORDS", "COOKIES", "DSN", "JWT"}
_ENDINGS = (*_SECRET, "ACCESSKEY", "PRIVATEKEY", "SECRETKEY", "CONNECTIONSTRING", "CONNSTR")
# Only at the end, so that KEY_REPEAT, AUTH_MODE and PWD itself pass.
_LAST = {"KEY", "KEYS", "AUTH", "AUTHORIZATION", "PASS", "PWD", "PAT", "HEADERS", "BEARER"}
# Two words that together mean a secret wherever they stand: API_KEY_PROD, AWS_ACCESS_KEY_ID.
_PAIRS = {
    *((kind, "KEY") for kind in ("API", "ACCESS", "PRIVATE", "SECRET", "SIGNING", "ENCRYPTION", "MASTER")),
    *((kind, "KEYS") for kind in ("API", "ACCESS", "PRIVATE", "SECRET")),
    ("DATABASE", "URL"), ("DATABASE", "URI"), ("CONNECTION", "STRING"), ("CONN", "STR"), ("WEBHOOK", "URL"),
    ("AUTH", "SOCK"), ("BUS", "ADDRESS"), ("STARTER", "ADDRESS"), ("KEYRING", "CONTROL"),
    ("SSH", "AGENT"), ("GPG", "AGENT"), ("AGENT", "INFO"), ("AGENT", "SOCK"), ("AGENT", "SOCKET"),
}  # fmt: skip
# These say where a secret lies, or how many tokens a model may write: not the secret itself.
_PLACES = {"FILE", "PATH", "DIR", "FOLDER"}
_COUNTS = {"MAX", "MIN", "LIMIT", "COUNT", "NUM", "BUDGET", "OUTPUT", "INPUT", "THINKING", "CONTEXT", "TOTAL", "USAGE"}

_USER_AND_PASSWORD = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/?#\s@:]*:[^/?#\s@]+@")
_HTTP_USER = re.compile(r"https?://[^/?#\s@]+@", re.IGNORECASE)
_KNOWN_SECRETS = re.compile(
    r"sk-[A-Za-z0-9_-]{16,}|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}|xox[abeoprs]-[\w-]{10,}"
    r"|(?:AKIA|ASIA)[A-Z0-9]{16}\b|AIza[\w-]{30,}|hf_[A-Za-z0-9]{20,}|npm_[A-Za-z0-9]{30,}|[rs]k_live_\w{16,}"
    r"|eyJ[\w-]+\.eyJ[\w-]+\.|Bearer +\S{8,}|-----BEGIN [A-Z ]*PRIVATE KEY-----"
)


def child_environment(config: ServerConfig, environ: Mapping[str, str]) -> tuple[dict[str, str], tuple[str, ...]]:
    """The environment of a server's process, and the names that were kept from it because they look secret."""
    passed: dict[str, str] = {}
    withheld: list[str] = []
    for name, value in environ.items():
        if name.startswith(_OWN) or name in config.env:
            continue
        if _is_inherited(config.inherit_env, name, value):
            passed[name] = value
        elif config.inherit_env is not False:
            withheld.append(name)
    return {**passed, **config.env}, tuple(sorted(withheld))


def _is_inherited(rule: bool | tuple[str, ...] | None, name: str, value: str) -> bool:
    if rule is True:
        return True
    if rule is False:
        return name in MINIMAL
    return name in (rule or ()) or not looks_secret(name, value)


def looks_secret(name: str, value: str = "") -> bool:
    """Whether a variable, header or option of this name (and value) is better not handed on or shown."""
    words = tuple(word.upper() for word in _WORDS.findall(name))
    while len(words) > 1 and words[-1].isdigit():  # API_KEY_2
        words = words[:-1]
    return _name_tells(words, value) or _value_tells(words, value)


def _name_tells(words: tuple[str, ...], value: str) -> bool:
    if not words or words[-1] in _PLACES:
        return False
    if words[-1] == "TOKENS":
        return _COUNTS.isdisjoint(words) and not value.isdigit()
    if "TOKEN" in words:
        return words[-1] not in _COUNTS
    return (
        not _ALWAYS.isdisjoint(words)
        or any(word.endswith(_ENDINGS) for word in words)
        or (words[-1] in _LAST and (len(words) > 1 or words[-1] not in {"PWD", "PASS", "PAT", "HEADERS"}))
        or not _PAIRS.isdisjoint(itertools.pairwise(words))
    )


def _value_tells(words: tuple[str, ...], value: str) -> bool:
    if _KNOWN_SECRETS.match(value):
        return True
    # A proxy's password goes to whoever has to use the proxy; without it a server has no network.
    if words and words[-1] == "PROXY":
        return False
    if words and words[-1] in {"URL", "URI"} and _HTTP_USER.match(value):
        return True
    return bool(_USER_AND_PASSWORD.match(value))
