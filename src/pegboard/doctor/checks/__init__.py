"""One module for each kind of finding: facts in, findings out. Pure."""
