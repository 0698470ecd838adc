"""The command line: one file per command group, imported only when its command runs."""
