"""Skipped tests: with RAYHELM_STRICT_SKIPS a skip that is not in ci/allowed-skips fails the run."""

import os
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

import pytest

__all__ = ["UNLISTED", "SkipWatch"]

WITHOUT_TOOLS = "without-tools"
UNLISTED = 10
"""Exit code of pytest, also if tests failed: ci/run-tests runs no test again then."""


class Skip(NamedTuple):
    test: str
    reason: str

    def is_allowed(self, lines: list[str]) -> bool:
        patterns = [tuple(part.strip() for part in line.split("|", 1)) for line in lines]
        return any(fnmatchcase(self.test, test) and fnmatchcase(self.reason, reason) for test, reason in patterns)


class SkipWatch:
    """Collects every skip and expected failure, and fails the session for one that is not allowed.

    `strict` is the value of RAYHELM_STRICT_SKIPS: `1`, or `without-tools` for a run before `make tools`.
    """

    def __init__(self, root: Path, strict: str) -> None:
        names = ["allowed-skips", "allowed-skips-without-tools"] if strict == WITHOUT_TOOLS else ["allowed-skips"]
        self.files = [root / "ci" / name for name in names]
        self.skips: list[Skip] = []

    @classmethod
    def from_environment(cls, root: Path) -> "SkipWatch | None":
        strict = os.environ.get("RAYHELM_STRICT_SKIPS", "")
        return cls(root, strict) if strict else None

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._note(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self._note(report)

    def _note(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        if not report.skipped:
            return
        if isinstance(report.longrepr, tuple):
            self.skips.append(Skip(report.nodeid, report.longrepr[2].removeprefix("Skipped: ")))
        else:
            self.skips.append(Skip(report.nodeid, f"expected to fail: {getattr(report, 'wasxfail', '')}".strip(": ")))

    @property
    def unlisted(self) -> list[Skip]:
        lines = [
            line
            for file in self.files
            for line in file.read_text().splitlines()
            if line.strip() and not line.startswith("#")
        ]
        return [skip for skip in self.skips if not skip.is_allowed(lines)]

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        ends = (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED, pytest.ExitCode.TESTS_FAILED)
        if self.unlisted and session.exitstatus in ends:
            session.exitstatus = UNLISTED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if not self.unlisted:
            return
        terminalreporter.section(
            f"skipped, and not in {' or '.join(f'ci/{file.name}' for file in self.files)}", red=True
        )
        for skip in self.unlisted:
            terminalreporter.line(f"{skip.test} | {skip.reason}")
