"""Other people's tool search, each asked by a script of its own in an environment of its own."""
