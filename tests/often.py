"""How many examples of a property are tried: all in `make test-all`, a fifth where somebody waits for it."""

import os

ALL = os.environ.get("PEGBOARD_TESTS") == "all"
FEW = 10


def often(examples: int) -> int:
    """So many in `make test-all`."""
    return examples if ALL else min(examples, max(examples // 5, FEW))
