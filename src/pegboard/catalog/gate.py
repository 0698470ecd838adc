"""Whether a server can work now: what it requires, held against what was found.

Above: the engine, which passes the reasons on to `catalog.build`. Below: `upstream.probe` finds the facts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from pegboard.config.model import Requires, ServerSpec
from pegboard.upstream.probe import Facts


def reason(requires: Requires, facts: Facts) -> str | None:
    """All that is missing, in words; None when nothing is."""
    missing = [
        f"needs the environment variable {name}, which is not set" for name in requires.env if name not in facts.env
    ]
    missing += [f"needs {name} on PATH" for name in requires.command if name not in facts.commands]
    if requires.url and facts.url_problem:
        missing.append(f"needs {_origin(requires.url)} to accept connections: {facts.url_problem}")
    return "; ".join(missing) or None


def unavailable(specs: Iterable[ServerSpec], facts: Mapping[str, Facts]) -> dict[str, str]:
    """The servers that cannot work now, each with the reason; `facts` is what `Prober.probe_all` gave."""
    reasons: dict[str, str] = {}
    for spec in specs:
        if spec.config.requires is not None and spec.name in facts:
            missing = reason(spec.config.requires, facts[spec.name])
            if missing:
                reasons[spec.name] = missing
    return reasons


def _origin(url: str) -> str:
    """Scheme, host and port: the rest of an address may hold secrets."""
    scheme, separator, rest = url.rpartition("://")
    return scheme + separator + re.split("[/?#]", rest, maxsplit=1)[0].rpartition("@")[2]
