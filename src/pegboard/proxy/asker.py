"""What the headers of a request tell of who asks: whose conversation it is, and whether its body may be changed at all.

Above: `planner`. Below: nothing. Pure; what it gives of credentials is only ever put into a digest.
"""

from __future__ import annotations

from collections.abc import Mapping

_CREDENTIALS = ("authorization", "x-api-key", "api-key", "x-goog-api-key")
_OF_THE_BODY = ("content-digest", "digest", "content-md5", "signature-input", "x-amz-content-sha256")
"""Headers that say what the body is, to the byte."""


def who(headers: Mapping[str, str]) -> str:
    """What tells users of one proxy apart."""
    return "\n".join(headers.get(name, "") for name in _CREDENTIALS)


def is_signed(headers: Mapping[str, str]) -> bool:
    """Whether the upstream would refuse any other body than this."""
    return headers.get("authorization", "").startswith("AWS4-") or any(name in headers for name in _OF_THE_BODY)
