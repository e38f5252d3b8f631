"""What holds for every test: those that serve run last, and nothing is skipped in silence."""

import os
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

import pytest

ALLOWED = Path(__file__).parent.parent / "ci" / "allowed-skips"


class Skip(NamedTuple):
    test: str
    reason: str

    def is_allowed(self, lines: list[str]) -> bool:
        patterns = [tuple(part.strip() for part in line.split("|", 1)) for line in lines]
        return any(fnmatchcase(self.test, test) and fnmatchcase(self.reason, reason) for test, reason in patterns)


def allowed_lines() -> list[str]:
    return [line for line in ALLOWED.read_text().splitlines() if line.strip() and not line.startswith("#")]


class SkipWatch:
    """Collects every skip; with RAYHELM_STRICT_SKIPS one that is not in ci/allowed-skips fails the run."""

    def __init__(self) -> None:
        self.skips: list[Skip] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._note(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self._note(report)

    def _note(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        if report.skipped and isinstance(report.longrepr, tuple):
            self.skips.append(Skip(report.nodeid, report.longrepr[2].removeprefix("Skipped: ")))

    @property
    def unlisted(self) -> list[Skip]:
        lines = allowed_lines()
        return [skip for skip in self.skips if not skip.is_allowed(lines)]

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self.unlisted and session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if not self.unlisted:
            return
        terminalreporter.section("skipped, and not in ci/allowed-skips", red=True)
        for skip in self.unlisted:
            terminalreporter.line(f"{skip.test} | {skip.reason}")


def pytest_configure(config: pytest.Config) -> None:
    if os.environ.get("RAYHELM_STRICT_SKIPS") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(SkipWatch())


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: item.get_closest_marker("serve") is not None)
