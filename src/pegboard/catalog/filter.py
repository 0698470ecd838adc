"""Which of a server's tools are used: `include`, `exclude` and the global `deny`, as globs.

A glob matches a tool's bare name, its public name, or `<server key>__<tool>` as one would write it by hand.
Above: `catalog` applies this per server. Below: `naming`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache

import msgspec

from pegboard.catalog.naming import SEPARATOR, server_prefix
from pegboard.catalog.nearest import nearest
from pegboard.config.model import ServerConfig

_SPECIAL = frozenset("*?[")
_NEAR_LIMIT = 3
_EXPLAINED = 20


class Named(msgspec.Struct, frozen=True, gc=False):
    """A tool under every name a rule may know it by."""

    bare: str
    public: str
    raw: str
    """`<server key>__<tool>` with nothing altered; equal to `public` for most tools."""


def named(server_key: str, bare: str, public: str) -> Named:
    """The names of one tool."""
    return Named(bare, public, server_key + SEPARATOR + bare)


class Globs(msgspec.Struct, frozen=True):
    """Some globs, compiled once: plain names by lookup, patterns as one expression."""

    exact: frozenset[str] = frozenset()
    pattern: re.Pattern[str] | None = None

    def __bool__(self) -> bool:
        return bool(self.exact) or self.pattern is not None

    def match(self, tool: Named) -> bool:
        """Whether any of them matches any of the tool's names, in full and with regard to case."""
        if self.exact and (tool.bare in self.exact or tool.public in self.exact or tool.raw in self.exact):
            return True
        found = self.pattern.match if self.pattern is not None else None
        return found is not None and bool(found(tool.bare) or found(tool.public) or found(tool.raw))


@lru_cache(maxsize=64)
def compile_globs(rules: tuple[str, ...]) -> Globs:
    """The rules as one matcher."""
    patterns = [rule for rule in rules if _SPECIAL.intersection(rule)]
    exact = frozenset(rule for rule in rules if not _SPECIAL.intersection(rule))
    if not patterns:
        return Globs(exact)
    import fnmatch

    return Globs(exact, re.compile("|".join(fnmatch.translate(pattern) for pattern in patterns)))


class Filter(msgspec.Struct, frozen=True):
    """The rules that bear on one server's tools."""

    include: Globs
    exclude: Globs
    deny: Globs

    def __bool__(self) -> bool:
        return bool(self.include or self.exclude or self.deny)

    def verdict(self, tool: Named) -> str | None:
        """Why the tool is out; None when it is in."""
        if self.deny.match(tool):
            return "denied by `deny` under [tools]"
        if self.include:
            return None if self.include.match(tool) else "not in the server's `include`"
        if self.exclude.match(tool):
            return "in the server's `exclude`"
        return None


def filter_of(config: ServerConfig, deny: tuple[str, ...]) -> Filter:
    """The filter of one server."""
    return Filter(compile_globs(config.include), compile_globs(config.exclude), compile_globs(deny))


def unmatched(server: str, config: ServerConfig, tools: Sequence[Named]) -> tuple[str, ...]:
    """A warning for every include and exclude rule, and every alias, that is for none of the server's tools."""
    warnings: list[str] = []
    bare = {tool.bare for tool in tools}
    for name in config.aliases:
        if name not in bare:
            subject = f"aliases of server {server} are for {name!r}, which is none of its {_count(len(tools))}"
            warnings.append(_with_near(subject, near_misses(name, tools)))
    for kind, rules in (("include", config.include), ("exclude", config.exclude)):
        for rule in rules:
            if not _matches_any(rule, tools):
                near = near_misses(rule, tools) if len(warnings) < _EXPLAINED else ()
                subject = f"{kind} rule {rule!r} of server {server} matches none of its {_count(len(tools))}"
                warnings.append(_with_near(subject, near))
    return tuple(warnings)


def matched(rules: Iterable[str], tools: Collection[Named]) -> frozenset[str]:
    """The rules that match at least one of these tools."""
    return frozenset(rule for rule in rules if tools and _matches_any(rule, tools))


def unmatched_deny(
    rules: Iterable[str], known: Sequence[Named], unlisted: Collection[str], *, more_to_come: bool
) -> tuple[str, ...]:
    """A warning for each of these deny rules, none of which matched a tool of any server.

    A rule that may be meant for a server whose tools are not known is left in peace: one that names such a
    server (`unlisted` has their prefixes), and one that names no server while there are `more_to_come`.
    """
    warnings: list[str] = []
    for rule in rules:
        key, separator, _ = rule.partition(SEPARATOR)
        names_a_server = bool(separator) and not _SPECIAL.intersection(key)
        if server_prefix(key) in unlisted if names_a_server else more_to_come:
            continue
        near = near_misses(rule, known) if len(warnings) < _EXPLAINED else ()
        warnings.append(_with_near(f"deny rule {rule!r} matches none of the {_count(len(known))} known", near))
    return tuple(warnings)


def near_misses(rule: str, tools: Sequence[Named]) -> tuple[str, ...]:
    """The rule under a server's present name, or the bare names of the tools that it was probably meant for."""
    rest = rule.partition(SEPARATOR)[2]
    names = list(dict.fromkeys(tool.bare for tool in tools))
    found = dict.fromkeys(_near(rest, names)) if rest else {}
    found |= dict.fromkeys(_near(rule, names))
    return tuple(found or dict.fromkeys(_renamed(rule, tools)))[:_NEAR_LIMIT]


def _renamed(rule: str, tools: Sequence[Named]) -> Iterable[str]:
    """The rule as it would read if its server had been renamed, where it would match something then."""
    key, separator, rest = rule.partition(SEPARATOR)
    if not separator or _SPECIAL.intersection(key):
        return
    prefixes = dict.fromkeys(tool.public.partition(SEPARATOR)[0] for tool in tools)
    for prefix in prefixes if len(prefixes) == 1 else nearest(key, prefixes, _NEAR_LIMIT):
        meant = prefix + SEPARATOR + rest
        if _matches_any(meant, tools):
            yield meant


def _near(glob: str, names: Iterable[str]) -> Iterable[str]:
    letters = re.sub(r"\[[^]]*\]|[*?]", "", glob)
    if not letters:
        return
    by_part: dict[str, list[str]] = {}
    for name in names:
        by_part.setdefault(_compared_part(name, glob, len(letters)), []).append(name)
    for part in nearest(letters, by_part, _NEAR_LIMIT):
        yield from by_part[part]


def _compared_part(name: str, glob: str, size: int) -> str:
    """`lit*` is like the beginning of a name, `*lit` like its end, anything else like the whole."""
    open_start, open_end = glob.startswith("*"), glob.endswith("*")
    if open_start == open_end:
        return name
    return name[-size:] if open_start else name[:size]


def _matches_any(rule: str, tools: Iterable[Named]) -> bool:
    globs = compile_globs((rule,))
    return any(globs.match(tool) for tool in tools)


def _count(tools: int) -> str:
    return "1 tool" if tools == 1 else f"{tools:,} tools"


def _with_near(subject: str, near: Sequence[str]) -> str:
    return f"{subject}; near: {', '.join(near)}" if near else subject
