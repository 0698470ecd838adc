"""The proxy: stands before a model's API, and defers tools for agents that cannot do it themselves."""
