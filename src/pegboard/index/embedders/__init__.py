"""Texts into vectors: the model that comes with Pegboard, and better ones as extras. See `choose`."""
