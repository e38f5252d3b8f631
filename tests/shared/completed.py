"""Runs that continue each other: one records the tests that it ran, a later one leaves them out.

A skipped test counts as not run. So a run with more tools runs what an earlier one skipped, and nothing twice.
"""

from pathlib import Path

import pytest

__all__ = ["CompletedLog", "add_options", "deselect_completed"]


def add_options(parser: pytest.Parser) -> None:
    group = parser.getgroup("rayhelm")
    group.addoption("--record-completed", metavar="FILE", help="append the ids of the tests that ran")
    group.addoption("--except-completed", metavar="FILE", help="leave out the tests whose ids are in this file")


class CompletedLog:
    """Writes the ids of the tests that passed or failed, a line each."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.ran: set[str] = set()
        self.skipped: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        (self.skipped if report.skipped else self.ran).add(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a") as file:
            file.writelines(f"{test}\n" for test in sorted(self.ran - self.skipped))


def deselect_completed(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not (path := config.getoption("--except-completed")):
        return
    completed = set(Path(path).read_text().splitlines())
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid in completed])
    items[:] = [item for item in items if item.nodeid not in completed]
