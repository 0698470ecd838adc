"""What makes two entries one server: a digest of what they start or reach.

Nothing can be learnt from it: of every value that may be a secret only two bytes of a digest go in, enough to tell
two accounts apart, and too little to try guesses on. Above: `servers`. Below: the importers.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import msgspec

from pegboard.config.expand import Malformed, expand
from pegboard.config.importers.secrets import secret_values
from pegboard.config.model import ServerConfig
from pegboard.doctor.settings.addresses import without_credentials

_SIZE = 8


def digest_of(config: ServerConfig, environ: Mapping[str, str]) -> str:
    """Equal for one server under two names, whether its token is written out or taken from a variable."""
    secrets = sorted(filter(None, secret_values(config)), key=len, reverse=True)

    def shown(text: str) -> str:
        for secret in secrets:
            text = text.replace(secret, _mark(_filled(secret, environ)))
        return _filled(text, environ)

    values = {**config.env, **{name.lower(): value for name, value in config.headers.items()}}
    marks = sorted((name, _mark(_filled(value, environ))) for name, value in values.items())
    if config.url is not None:
        return _digest(["url", _address(shown(config.url)), marks])
    return _digest(["run", shown(config.command or ""), [shown(word) for word in config.args], config.cwd, marks])


def digest_of_raw(raw: Any) -> str:
    """For entries that are known to run, but not to the importers; empty when they name nothing to run or reach."""
    if not isinstance(raw, dict):
        return ""
    for key in ("url", "httpUrl", "serverUrl"):
        if isinstance(address := raw.get(key), str) and address:
            return _digest(["url", _address(without_credentials(address)), []])
    command, args = raw.get("command"), raw.get("args")
    words = [*(command if isinstance(command, list) else [command]), *(args if isinstance(args, list) else [])]
    if not words or not isinstance(words[0], str) or not words[0]:
        return ""
    return _digest(["run", words[0], [_mark(str(word)) for word in words[1:]]])


def _filled(text: str, environ: Mapping[str, str]) -> str:
    try:
        return expand(text, environ).text
    except Malformed:
        return text


def _address(url: str) -> str:
    try:
        parts = urlsplit(url.strip())
    except ValueError:
        return url
    return urlunsplit((parts.scheme.lower(), parts.netloc.lower(), parts.path.rstrip("/"), parts.query, ""))


def _mark(value: str) -> str:
    return hashlib.blake2b(value.encode(errors="surrogatepass"), digest_size=2).hexdigest()


def _digest(parts: list[Any]) -> str:
    return hashlib.blake2b(msgspec.json.encode(parts), digest_size=_SIZE).hexdigest()
