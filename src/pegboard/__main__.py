"""`python -m pegboard`."""

from pegboard.cli.main import run

run()
