"""Pegboard: hang ten thousand tools, hand your agent the three it needs.

`Pegboard` is the way in for agents' code; `docs/architecture.md` shows the road of the data.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pegboard.board import Chat, Pegboard, Result

__all__ = ["Chat", "Pegboard", "Result", "__version__"]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    # Imported when it is asked for: the command line must not pay for it.
    if name in ("Chat", "Pegboard", "Result"):
        from pegboard import board

        return getattr(board, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
