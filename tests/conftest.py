"""What holds for all tests: no example of a property has to be done in a given time, and the report shows tables."""

import pytest
from hypothesis import settings

from tests.often import often

SHOWN = "shown: "
"""What a test records as a property of this name stands in the report of the run, whichever process the test ran in."""

settings.register_profile("pegboard", deadline=None, max_examples=often(100))
settings.load_profile("pegboard")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Shows what tests have recorded for it."""
    for outcome in ("passed", "failed"):
        for report in terminalreporter.getreports(outcome):
            for name, value in report.user_properties:
                if name.startswith(SHOWN):
                    terminalreporter.section(name.removeprefix(SHOWN))
                    terminalreporter.write_line(str(value))
