"""The proxy before a model's API, beside nginx and LiteLLM: what it adds to a request, what it holds, what it saves."""
