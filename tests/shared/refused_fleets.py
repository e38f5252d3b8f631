"""The fleet files that tests have refused, all of them in one file: the rows of `test_first_fixes.py`.

`pytest --record-refused tests/fleet tests/planner tests/deploy`, without xdist, renews the file.
"""

import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from rayhelm.deploy.compose.fleet_values import compose_values
from rayhelm.errors import FleetError
from rayhelm.fleet.document import parse_document
from rayhelm.fleet.load import parse_fleet
from rayhelm.fleet.yaml_nodes import Builder
from rayhelm.planner.planner import plan_fleet
from shared.apply_fix import check_fixes, find_problems

__all__ = ["RefusalLog", "read_fleet", "read_refused"]

FILE = Path(__file__).parent.parent / "deploy" / "data" / "refused-fleets.yaml"
_LONGEST = 20_000
"""Characters. Larger files are made by a loop, to reach a limit."""
_TEMPORARY = "pytest-of-"
"""Part of the paths that pytest makes."""
_NO_ROWS = ("test_random_", "test_first_fixes_")
"""Tests of files with several random mistakes, and of this file."""
_READ_FIXES = {find_problems.__code__, check_fixes.__code__}
"""Functions that read files with a fix, which are no rows of a test."""


def read_fleet(text: str) -> None:
    """Plan a fleet, and make the values of all charts if it has the addresses that they need. Raises FleetError."""
    loaded = parse_fleet(parse_document(text, "fleet.yaml"))
    plan = plan_fleet(loaded)
    if any(cluster.api_server.cidrs for cluster in loaded.fleet.clusters.values()):
        with loaded.document.joined():
            compose_values(plan)


def read_refused() -> Mapping[str, str]:
    """Return the files by the test that refused them, with a number for each further one of a test."""
    return dict(yaml.load(FILE.read_text(), getattr(yaml, "CSafeLoader", yaml.SafeLoader)))


class RefusalLog:
    """Writes each fleet file that a test reads and the planner, or the values of the charts, refuse."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        """Test by text."""

    def pytest_sessionstart(self) -> None:
        compose, log = Builder.compose, self.texts

        def record(builder: Builder, text: str) -> list[yaml.Node]:
            test = _name_test()
            if test and not test.startswith(_NO_ROWS) and _is_kept(text) and not _READ_FIXES & set(_list_frames()):
                log.setdefault(text, test)
            return compose(builder, text)

        Builder.compose = record  # type: ignore[method-assign]

    def pytest_sessionfinish(self) -> None:
        rows: dict[str, str] = {}
        for text, test in sorted(self.texts.items(), key=lambda each: each[::-1]):
            if _is_fleet(text) and find_problems(text, read_fleet):
                used = sum(name.partition(" ")[0] == test for name in rows)
                rows[f"{test} {used + 1}" if used else test] = text
        FILE.parent.mkdir(exist_ok=True)
        FILE.write_text(f"# {__doc__.splitlines()[0]}\n" + yaml.dump(rows, Dumper=_Blocks, width=10_000))


def _is_fleet(text: str) -> bool:
    """Whether it is YAML that can be a fleet. Files without keys have no fix that a program applies."""
    try:
        data = parse_document(text, "fleet.yaml").data
    except FleetError:
        return False
    return "fleet" in data and bool({"pools", "models"} & data.keys())


def _is_kept(text: str) -> bool:
    return len(text) <= _LONGEST and _TEMPORARY not in text


def _list_frames() -> Iterator[Any]:
    frame = sys._getframe(1)
    while above := frame.f_back:
        yield above.f_code
        frame = above


def _name_test() -> str:
    """Return the function of the running test."""
    return os.environ.get("PYTEST_CURRENT_TEST", "").partition("[")[0].partition(" ")[0].rpartition("::")[2]


class _Blocks(yaml.SafeDumper):
    """Writes text of several lines as it is."""


def _write_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Blocks.add_representer(str, _write_text)
