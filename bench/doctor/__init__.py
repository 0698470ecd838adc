"""How fast sessions are read, and in how much memory, beside a loop of `json.loads` over the same lines."""
