"""The causes of tokens that are paid for in vain, each with what it means.

Above: the checks and whoever lists causes. Below: nothing.
"""

from __future__ import annotations

from typing import Final

ENV: Final = "deferral-off-env"
BETAS: Final = "deferral-off-betas"
DENIED: Final = "deferral-off-denied"
OLD_VERSION: Final = "deferral-off-old-version"
VERTEX: Final = "deferral-off-vertex"
OLD_MODEL: Final = "deferral-off-old-model"
REFUSED: Final = "deferral-refused"
HELD_OFF: Final = "deferral-held-off"
AUTO: Final = "deferral-auto"
UNEXPLAINED: Final = "deferral-off-unexplained"
PINNED_SERVER: Final = "always-load"
PINNED_TOOLS: Final = "always-load-tools"
THRESHOLD: Final = "threshold"
NEVER_CALLED: Final = "never-called"
DUPLICATE: Final = "duplicate-server"
NO_DEFERRAL: Final = "no-native-deferral"
CODEX_MODEL: Final = "codex-unknown-model"

CAUSES: Final[dict[str, str]] = {
    ENV: "ENABLE_TOOL_SEARCH turns deferral off",
    BETAS: "CLAUDE_CODE_DISABLE_EXPERIMENTAL_BETAS turns deferral off with all betas",
    DENIED: "a permission rule denies ToolSearch, without which nothing is deferred",
    OLD_VERSION: "this version of Claude Code does not defer, or not behind another base URL",
    VERTEX: "this version of Claude Code, or this model, does not defer on Vertex AI",
    OLD_MODEL: "the model is too old for deferral",
    REFUSED: "the endpoint refused deferral, and Claude Code gave it up",
    HELD_OFF: "a resumed conversation stays without deferral because it began without",
    AUTO: "ENABLE_TOOL_SEARCH=auto defers nothing below its threshold",
    UNEXPLAINED: "deferral is off, and nothing on this machine says why",
    PINNED_SERVER: "a server is pinned by alwaysLoad, and rarely called",
    PINNED_TOOLS: "a server pins tools of its own, and they are rarely called",
    THRESHOLD: "auto:N defers nothing, and a tighter N would",
    NEVER_CALLED: "a server is never called at all",
    DUPLICATE: "one server is set up more than once",
    NO_DEFERRAL: "the agent cannot defer by itself",
    CODEX_MODEL: "Codex does not know the model, so it defers nothing",
}
"""One finding at most for each, or for each server where the cause is a server's."""
