"""Which models can load tools natively, by their names: there is no flag to ask for.

Above: the SDK plug-ins and the proxy. Below: nothing.
"""

from __future__ import annotations

import re

# Claude before 4.5 cannot; what is not known by name is taken to be newer than this list.
_OLD_CLAUDE = re.compile(
    r"claude-(?:instant|v?[123](?:[.:@-]|$)|(?:opus|sonnet)-4(?:$|[@:]|-20\d{6}|-[01](?:$|[@:-])))", re.IGNORECASE
)
_NO_CLAUDE = re.compile(
    r"\b(?:gpt|o[134]|gemini|glm|kimi|deepseek|qwen|minimax|llama|mistral|grok)\b|gpt-", re.IGNORECASE
)
_GPT = re.compile(r"(?:^|[^a-z])gpt-(\d+)(?:\.(\d+))?", re.IGNORECASE)


def messages_defers(model: str) -> bool:
    """Whether this model takes `defer_loading` on the Messages API."""
    if "claude" not in model.lower() and _NO_CLAUDE.search(model):
        return False
    return not _OLD_CLAUDE.search(model)


def responses_searches(model: str) -> bool:
    """Whether this model takes `tool_search` on the Responses API: GPT-5.4 and later.

    Of a name that says nothing, such as a deployment's, we think the worse: the bridge works with every model.
    """
    found = _GPT.search(model)
    return found is not None and (int(found[1]), int(found[2] or 0)) >= (5, 4)
