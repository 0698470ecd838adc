"""Finds out whether an endpoint takes deferral, with one tiny request, and remembers the answer.

The request is what Claude Code would send after a search: a deferred tool, and a reference to it. The key comes from
the environment and is kept nowhere. Above: `pegboard doctor verify-endpoint`. Below: HTTP, and files replaced whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec

from pegboard.config.check import wrong_upstream
from pegboard.config.show import MASK
from pegboard.doctor.checks import claude_rules, models
from pegboard.doctor.facts import AgentState, Setting
from pegboard.doctor.plans.verdicts import Verdict, plain_url
from pegboard.errors import PegboardError
from pegboard.store.files import DiskFiles
from pegboard.wire.admission import is_loopback

PATIENCE = 60.0
MODEL = "claude-haiku-4-5"
BETA = "advanced-tool-use-2025-11-20"
_LONGEST = 200
_LARGEST = 64 * 1024
_TELLING = ("defer_loading", "tool_reference", "extra inputs", "unknown field", "unrecognized", "unexpected keyword")
_MODELS = ("ANTHROPIC_DEFAULT_HAIKU_MODEL", "ANTHROPIC_MODEL")


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """What would be sent, and where."""

    url: str
    """The endpoint, as a base URL."""
    model: str
    key_from: str
    """The variable that the key comes from; empty when none is sent."""

    @property
    def address(self) -> str:
        """Where Claude Code posts to behind this base URL."""
        return f"{self.url.rstrip('/')}/v1/messages?beta=true"

    @property
    def body(self) -> dict[str, Any]:
        """A turn in which a search has found the one deferred tool."""
        search = {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}
        return {
            "model": self.model,
            "max_tokens": 1,
            "tools": [
                {"name": "ToolSearch", "description": "Finds tools.", "input_schema": search},
                {"name": "ping", "description": "Answers.", "input_schema": {"type": "object"}, "defer_loading": True},
            ],
            "messages": [
                {"role": "user", "content": "ping"},
                {
                    "role": "assistant",
                    "content": [
                        {"type": "tool_use", "id": "toolu_1", "name": "ToolSearch", "input": {"query": "ping"}}
                    ],
                },
                {
                    "role": "user",
                    "content": [
                        {
                            "type": "tool_result",
                            "tool_use_id": "toolu_1",
                            "content": [{"type": "tool_reference", "tool_name": "ping"}],
                        }
                    ],
                },
            ],
        }


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What came back, and what it says of deferral."""

    status: int
    takes: bool | None
    """None: it says nothing of deferral."""
    said: str = ""
    hint: str = ""


def request_to(url: str, model: str, environ: Mapping[str, str]) -> Request:
    """The request to this endpoint; refuses to send a key where it does not belong."""
    if wrong := wrong_upstream(url):
        # A password in the address is nobody's to read.
        raise PegboardError(f"{plain_url(url)}: {wrong}.", hint="Nothing was sent.")
    if models.too_old((model,)):
        raise PegboardError(
            f"{model} is too old to defer, so what it answers says nothing of the endpoint.",
            hint="Say a newer one with --model. Nothing was sent.",
        )
    key = next((name for name in ("ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_API_KEY") if environ.get(name, "").strip()), "")
    if key and not (environ[key].strip().isascii() and environ[key].strip().isprintable()):
        # Whoever sends such a header quotes it when it fails.
        raise PegboardError(f"The key in {key} has letters that no key has; nothing was sent.", hint="Set it anew.")
    if not key and not is_loopback(urlsplit(url).hostname or ""):
        raise PegboardError(
            "There is no key in the environment to ask with.",
            hint="Set ANTHROPIC_API_KEY or ANTHROPIC_AUTH_TOKEN for this one command. It is not stored.",
        )
    return Request(url=plain_url(url), model=model, key_from=key)


def endpoints_in(states: Iterable[AgentState]) -> dict[str, Setting]:
    """The addresses besides Anthropic's own that Claude Code is set to, and what says so."""
    found = (state.setting(claude_rules.BASE_URL) for state in states if claude_rules.is_elsewhere(state))
    return {plain_url(each.value): each for each in found if each is not None}


def model_in(states: Iterable[AgentState]) -> str:
    """A model that the endpoint should know: a small one that the settings name, or Anthropic's."""
    listed = tuple(states)
    named = (state.setting(name) for name in _MODELS for state in listed if state.agent == "claude-code")
    values = (each.value.strip() for each in named if each is not None)
    return next((value for value in values if value and not models.too_old((value,))), MODEL)


def ask(request: Request, environ: Mapping[str, str]) -> Answer:
    """Sends the request; whatever it answers becomes words."""
    import httpx2

    try:
        with (
            httpx2.Client(timeout=PATIENCE, follow_redirects=False) as client,
            client.stream("POST", request.address, headers=_headers(request, environ), json=request.body) as response,
        ):
            body = b""
            for chunk in response.iter_bytes():
                body += chunk
                if len(body) > _LARGEST:
                    break
            return answer_of(response.status_code, body, key=environ.get(request.key_from, "").strip())
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError, ValueError) as error:
        # OSError and ValueError: certificates or a proxy that the environment names, and that make no sense.
        reason = str(error).rstrip(".") or type(error).__name__
        raise PegboardError(
            f"{request.url} could not be asked: {reason}.", hint="Is it running? Nothing was remembered."
        ) from None


def answer_of(status: int, body: bytes, *, key: str = "") -> Answer:
    """What an answer says of deferral; anything that may have another cause says nothing."""
    said = _message(body, key)
    if status == 200:
        if _is_message(body):
            return Answer(status=status, takes=True)
        return Answer(status=status, takes=None, said=said, hint="That is no message of a model: is the address right?")
    if status in (400, 422) and any(word in said.lower() for word in _TELLING):
        return Answer(status=status, takes=False, said=said)
    return Answer(status=status, takes=None, said=said, hint=_hint(status))


def _hint(status: int) -> str:
    if status in (401, 403):
        return "The key was refused; the endpoint may take another one."
    if status == 404:
        return "It knows no /v1/messages, or not this model: say another with --model."
    if status in (400, 422):
        return "It refused the request for another reason, perhaps the model: say another with --model."
    if status == 429 or status >= 500:
        return "Try again later."
    return "Is the address right? It should be what ANTHROPIC_BASE_URL is set to."


def _headers(request: Request, environ: Mapping[str, str]) -> dict[str, str]:
    headers = {"anthropic-version": "2023-06-01", "anthropic-beta": BETA, "accept": "application/json"}
    key = environ.get(request.key_from, "").strip()
    if request.key_from == "ANTHROPIC_AUTH_TOKEN":
        headers["authorization"] = f"Bearer {key}"
    elif request.key_from:
        headers["x-api-key"] = key
    return headers


def _is_message(body: bytes) -> bool:
    try:
        found = msgspec.json.decode(body)
    except (ValueError, msgspec.DecodeError):
        return False
    return isinstance(found, dict) and found.get("type") == "message"


def _message(body: bytes, key: str) -> str:
    """The words of an error, whatever its shape; only their beginning, and without the key that some repeat."""
    try:
        found: Any = msgspec.json.decode(body)
    except (ValueError, msgspec.DecodeError):
        found = body.decode(errors="replace")
    while isinstance(found, dict):
        found = next((found[key] for key in ("error", "message", "detail") if key in found), "")
    text = found if isinstance(found, str) else msgspec.json.encode(found).decode()
    words = " ".join(text.split())
    return (words.replace(key, MASK) if key else words)[:_LONGEST]


class Endpoints:
    """What is remembered of endpoints, in one file of the state folder."""

    def __init__(self, state_dir: Path) -> None:
        self._file = state_dir / "doctor" / "endpoints.json"
        self._files = DiskFiles()

    def verdicts(self) -> dict[str, Verdict]:
        """All of them, by address; a file that cannot be read says nothing, which is the safe side."""
        try:
            found = msgspec.json.decode(self._files.read(self._file), type=list[Verdict])
        except (OSError, ValueError, msgspec.DecodeError):
            return {}
        return {each.url: each for each in found}

    def remember(self, verdict: Verdict) -> None:
        """Keeps the answer, in place of an older one."""
        known = {**self.verdicts(), verdict.url: verdict}
        encoded = msgspec.json.format(msgspec.json.encode(list(known.values())), indent=1) + b"\n"
        try:
            self._files.write(self._file, encoded)
        except OSError as error:
            raise PegboardError(
                f"{self._file} cannot be written: {error.strerror or error}.",
                hint="The endpoint has answered, but nobody will know: make room there, and ask it again.",
            ) from None
