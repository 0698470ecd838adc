"""The error tree. Every error Pegboard raises on purpose is one of these; nothing of ours is imported here.

PegboardError                what happened, to what; `hint` says what to do
├── ConfigError              one or more problems in configuration files, each with file, line and key
├── ServerNotFound           no such server; carries the nearest names
├── ToolNotFound             no such tool; carries the nearest names
├── SkillNotFound            no such skill; carries the nearest names
├── SkillUnreadable          a file of a skill cannot be read, or lies outside of its folder
├── ArgumentsError           the arguments do not fit the tool's schema; carries the schema
├── MissingExtra             an optional dependency is not installed
├── EmbedderError            an embedder cannot be loaded, or did not answer
├── IndexDamaged             an index file is not what was written
├── StoreError               what should outlive the process cannot be read or written
├── CallRefused              a rule forbids this call, or nobody approved it
├── HandleUnknown            a result's handle is not known, expired, or somebody else's
├── EvaluationError          evaluation data cannot be used; names file and line
└── ServerError              something about one server, which it names
    ├── ServerUnavailable    disabled, not usable now, or resting after repeated failures
    ├── StartFailed          the command is missing, or the server died or was mute before it was ready
    ├── AuthRequired         the server wants credentials that it does not have
    ├── ConnectionLost       the server went away during a call
    ├── CallTimeout          no answer in time
    ├── LimitExceeded        the server sent more than the limit allows
    ├── ProtocolViolation    the server answered something that is not MCP
    └── RemoteError          the server answered the request with a JSON-RPC error
"""

from __future__ import annotations

from typing import Any


class PegboardError(Exception):
    """The root: `str(error)` is what happened, `error.hint` what to do about it."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class ConfigError(PegboardError):
    """Problems found in configuration; each line of the message names file, line and key."""

    def __init__(self, message: str, *, problems: tuple[str, ...] = (), hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.problems = problems or (message,)


class ServerNotFound(PegboardError):
    """No server has this name."""

    def __init__(self, name: str, nearest: tuple[str, ...] = ()) -> None:
        near = f"Did you mean {', '.join(nearest)}?" if nearest else "`pegboard servers` lists them."
        super().__init__(f"There is no server named {name!r}.", hint=near)
        self.name = name
        self.nearest = nearest


class ToolNotFound(PegboardError):
    """No tool has this name."""

    def __init__(self, name: str, nearest: tuple[str, ...] = (), reason: str = "") -> None:
        near = f"Did you mean {', '.join(nearest)}?" if nearest else "`pegboard tools` lists them."
        super().__init__(reason or f"There is no tool named {name!r}.", hint=near)
        self.name = name
        self.nearest = nearest
        self.reason = reason
        """Why a tool that is known is not to be had; empty when nobody knows it."""


class SkillNotFound(PegboardError):
    """No skill has this name."""

    def __init__(self, name: str, nearest: tuple[str, ...] = (), known: tuple[str, ...] = ()) -> None:
        there_are = f"There are {', '.join(known)}." if known else "There are none now."
        near = f"Did you mean {', '.join(nearest)}?" if nearest else there_are
        super().__init__(f"There is no skill named {name!r}.", hint=near)
        self.name = name
        self.nearest = nearest


class SkillUnreadable(PegboardError):
    """A file of a skill cannot be read, or is not one of its own; the message says why."""


class ArgumentsError(PegboardError):
    """The arguments do not fit; `schema` is what the tool accepts."""

    def __init__(self, message: str, schema: dict[str, Any], *, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.schema = schema


class MissingExtra(PegboardError):
    """An optional part is not installed."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} needs an optional dependency.", hint=f"pip install 'pegboard[{extra}]'")
        self.extra = extra


class EmbedderError(PegboardError):
    """Texts could not be embedded; searches go on by words alone."""


class IndexDamaged(PegboardError):
    """An index file is of another format, cut short or altered; it is built anew."""


class StoreError(PegboardError):
    """The store cannot be read or written; calls and searches go on without it."""


class CallRefused(PegboardError):
    """A rule forbids this call, or nobody approved it; the hint says what would allow it."""


class HandleUnknown(PegboardError):
    """No pages are kept under this handle for this caller."""


class EvaluationError(PegboardError):
    """Evaluation data cannot be used as it is."""


class ServerError(PegboardError):
    """Something about one server; the message always begins with its name."""

    def __init__(self, server: str, message: str, *, hint: str = "") -> None:
        super().__init__(f"{server}: {message}", hint=hint)
        self.server = server
        self.cause = message


class ServerUnavailable(ServerError):
    """The server is disabled, cannot work now, or rests after repeated failures."""


class StartFailed(ServerError):
    """The server could not be started, or was not ready in time."""


class AuthRequired(ServerError):
    """The server asks for credentials."""


class ConnectionLost(ServerError):
    """The server went away while a request was under way."""


class CallTimeout(ServerError):
    """The server did not answer in time."""


class LimitExceeded(ServerError):
    """The server sent more than the limit allows."""


class ProtocolViolation(ServerError):
    """The server sent something that is not MCP."""


class RemoteError(ServerError):
    """The server answered with a JSON-RPC error."""

    def __init__(self, server: str, code: int, message: str, data: Any = None) -> None:
        super().__init__(server, f"{message} (JSON-RPC error {code})")
        self.code = code
        self.remote_message = message
        self.data = data
