"""The names a model sees: `<server>__<tool>`, a pure function of our configuration key and the tool's own name.

A name never depends on its siblings, so it never changes when other tools or servers come and go. What cannot
be told apart is refused instead. Above: `filter` and `catalog`. Below: nothing.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from pegboard.config.model import ServerSpec
from pegboard.types import Tool

SEPARATOR = "__"
MAX_PUBLIC = 64
MAX_PREFIX = 32
MAX_TOOL = 256

RESERVED_SERVER = "pegboard"
RESERVED = frozenset(
    {
        "search_tools",
        "call_tool",
        "call_tool_read",
        "call_tool_write",
        "batch_tools",
        "read_result",
        "load_skill",
        "run_code",
        RESERVED_SERVER,
    }
)
"""Names that are Pegboard's own: no bare tool name and no server may answer to them."""

_ILLEGAL_RUN = re.compile(r"[^A-Za-z0-9_-]+")
_LEGAL_LINES = re.compile(r"[A-Za-z0-9_\n-]*")
_UNDERSCORES = re.compile(r"_{2,}")
_TAG_LENGTH = 9  # "-" and eight hex digits

# Lower-cased ASCII whose look-alikes share one letter: I, i, l, 1 and | are one; O, o and 0; - and _.
_LOOKALIKE = str.maketrans(
    "ABCDEFGHIJKLMNOPQRSTUVWXYZ" + "i1|" + "0" + "-",
    "abcdefghljklmnopqrstuvwxyz" + "lll" + "o" + "_",
)


@lru_cache(maxsize=4096)
def server_prefix(key: str) -> str:
    """What stands before the `__`: the configuration key made legal; never holds `__` nor ends in `_`."""
    prefix = _UNDERSCORES.sub("_", _ILLEGAL_RUN.sub("_", key)).rstrip("_")
    if not prefix:
        return "server" + _tag(key)
    if len(prefix) > MAX_PREFIX:
        return prefix[: MAX_PREFIX - _TAG_LENGTH] + _tag(key)
    return prefix


def public_name(server_key: str, tool_name: str) -> str:
    """The name a model sees: legal and short names as they are, others altered and marked with a hash."""
    return public_name_under(server_prefix(server_key), server_key, tool_name)


def public_name_under(prefix: str, server_key: str, tool_name: str) -> str:
    """`public_name` for one who has the server's prefix already; without one, the tool's own name if it is fit."""
    if not prefix:
        if is_own_name(tool_name):
            return tool_name
        prefix = server_prefix(server_key)
    plain = prefix + SEPARATOR + tool_name
    if len(plain) <= MAX_PUBLIC and not _ILLEGAL_RUN.search(plain):
        return plain
    altered = prefix + SEPARATOR + _ILLEGAL_RUN.sub("_", tool_name)
    return altered[: MAX_PUBLIC - _TAG_LENGTH] + _tag(server_key, tool_name)


def is_own_name(tool_name: str) -> bool:
    """Whether a name can stand alone: legal, short, and neither Pegboard's nor like that of some server's tool."""
    fits = 0 < len(tool_name) <= MAX_PUBLIC and not _ILLEGAL_RUN.search(tool_name)
    return fits and SEPARATOR not in tool_name and tool_name not in RESERVED


def all_plain_and_distinct(prefix: str, tool_names: Sequence[str]) -> bool:
    """Whether every name stays as it is and none can be confused with another: true of almost all servers.

    One look at all names together, so that a catalog of many thousands costs little.
    """
    together = "\n".join(tool_names)
    if not _LEGAL_LINES.fullmatch(together):
        return False
    if max(map(len, tool_names), default=0) > MAX_PUBLIC - len(prefix) - len(SEPARATOR):
        return False
    skeletons = confusable(together).split("\n")
    return len(skeletons) == len(tool_names) == len(set(skeletons))


def by_bare_name(tools: Iterable[Tool]) -> dict[str, list[Tool]]:
    """The tools that share each bare name."""
    bearers: dict[str, list[Tool]] = {}
    for tool in tools:
        bearers.setdefault(tool.name, []).append(tool)
    return bearers


def split(public: str) -> tuple[str, str]:
    """The server's prefix and the tool's part; the tool's part is its own name unless that had to be altered."""
    prefix, _, tool = public.partition(SEPARATOR)
    return prefix, tool


def confusable(name: str) -> str:
    """What is left of a name for a hasty reader: names with one skeleton are too alike to stand side by side."""
    if not name.isascii():
        name = _plain_letters(name)
    return name.translate(_LOOKALIKE)


def name_problem(name: object) -> str | None:
    """Why this cannot be a tool's name at all."""
    if not isinstance(name, str):
        return "its name is not a string"
    if not name:
        return "it has no name"
    if len(name) > MAX_TOOL:
        return f"its name has {len(name)} characters, more than {MAX_TOOL}"
    return None


def refused_servers(servers: Mapping[str, ServerSpec]) -> dict[str, str]:
    """Servers whose key cannot be told from another's or from Pegboard's own name, each with the reason.

    Of two that clash the first in sorted order stays, and a configured server stays before a plug-in.
    """
    taken = {confusable(RESERVED_SERVER): ""}
    refused: dict[str, str] = {}
    for key in sorted(servers, key=lambda key: (servers[key].cache_path is not None, key)):
        if not servers[key].config.enabled or servers[key].problem:
            continue
        holder = taken.setdefault(confusable(server_prefix(key)), key)
        if holder != key:
            refused[key] = _clash(key, holder)
    return refused


def _clash(key: str, holder: str) -> str:
    if not holder:
        return f"the name {key!r} is kept for {RESERVED_SERVER.capitalize()} itself; rename the server"
    how = "has the same prefix as" if server_prefix(key) == server_prefix(holder) else "is easily confused with"
    return f"the name {key!r} {how} server {holder!r}; rename or disable one of them"


def _plain_letters(name: str) -> str:
    import unicodedata

    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())
    # Characters nobody can see (zero width, direction marks, controls) make no difference to a reader.
    return "".join(letter for letter in folded if unicodedata.category(letter) not in {"Cf", "Cc", "Mn", "Me"})


def _tag(*parts: str) -> str:
    joined = "".join(f"{len(part)}:{part}" for part in parts)
    return "-" + hashlib.sha256(joined.encode("utf-8", "surrogatepass")).hexdigest()[:8]
