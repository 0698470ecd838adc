"""Plug-ins for agent frameworks: each in the idiom of its framework, all with the same board behind them.

They translate, and decide nothing. Each needs its framework, which is an extra; none is imported by anything else.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def needs(extra: str) -> Iterator[None]:
    """Around the import of a framework: where it is missing, says how to get it."""
    try:
        yield
    except ImportError as error:
        raise ImportError(
            f"This plug-in needs a package that is missing ({error}). Install it: pip install 'pegboard[{extra}]'",
            name=error.name,
        ) from error
