"""What a conversation has loaded, as a few bytes for whoever keeps them: a checkpoint, a session, a cookie.

Above: `chat`, and the plug-ins, whose frameworks keep state of their own. Below: `surface.activation`.
"""

from __future__ import annotations

from pegboard.surface.activation import Activation, restored


def merged(one: bytes, other: bytes) -> bytes:
    """Both together, for two calls that went on at once from the same state: the last use of each tool counts."""
    if not one or not other or one == other:
        return one or other
    return activation_of(one).merged(activation_of(other)).to_bytes()


def activation_of(state: bytes, cap: int | None = None) -> Activation:
    """The conversation's activation, under this cap or its own; what cannot be read is none."""
    return restored(state or None, cap)


def names_of(state: bytes) -> tuple[str, ...]:
    """The tools it has loaded, most recently used first."""
    return activation_of(state).names
