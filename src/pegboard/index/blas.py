"""numpy for one core: a search is over before another core has woken up.

BLAS reads the variable when numpy is first imported. Above: whoever imports the index. Below: nothing, on purpose.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

CORES = "OPENBLAS_NUM_THREADS"


@contextmanager
def on_one_core() -> Iterator[None]:
    """What is imported inside gets a numpy for one core, unless the user said otherwise."""
    chosen = os.environ.get(CORES)
    os.environ[CORES] = chosen or "1"
    try:
        yield
    finally:
        # Servers that we start inherit the environment, and this is none of their business.
        if chosen is None:
            del os.environ[CORES]
