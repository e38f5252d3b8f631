"""`.ci/run` between stand-ins of make, apt-get and ci/node: what it runs in which order, what fails it, how it ends."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent

MAKE = """#!/usr/bin/env bash
echo "made $1" >>made
case "$1" in
    test) cp ../tests.xml .cache/tests.xml ;;
    test-live-short) cp ../tests-live.xml .cache/tests-live.xml ;;
esac
[ "$1" != "${FAILS:-}" ]
"""
APT_GET = """#!/usr/bin/env bash
echo "$*" >>made
exit "${APT_GET:-0}"
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """What .ci/run needs of one."""
    (checkout := tmp_path / "checkout").mkdir()
    for name in (".ci/run", "ci/stage"):
        (checkout / name).parent.mkdir(exist_ok=True)
        shutil.copy2(ROOT / name, checkout / name)
    (checkout / ".cache").mkdir()
    for name, ran, skipped, failed in (("tests", 100, 2, 0), ("tests-live", 3, 1, 1)):
        suite = f'<testsuite tests="{ran}" skipped="{skipped}" failures="{failed}" errors="0"/>'
        (tmp_path / f"{name}.xml").write_text(f"<testsuites>{suite}</testsuites>")
    programs = {"make": MAKE, "apt-get": APT_GET, "id": "#!/bin/sh\necho 0\n"}
    for path, text in ((tmp_path / "bin" / name, text) for name, text in programs.items()):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)
    return checkout


def ci_run(checkout: Path, lacks: str = "", **environment: str) -> tuple[int, list[str], list[str]]:
    """Its exit code, its last lines, and what it called; `lacks` are packages that ci/node misses."""
    (checkout / "ci" / "node").write_text(f"#!/bin/sh\nprintf '%s' '{lacks}'\n")
    (checkout / "ci" / "node").chmod(0o755)
    path = f"{checkout.parent / 'bin'}:{os.environ['PATH']}"
    ended = subprocess.run(
        [checkout / ".ci" / "run"], env=os.environ | {"PATH": path} | environment, capture_output=True, text=True
    )
    return ended.returncode, ended.stdout.splitlines(), (checkout / "made").read_text().splitlines()


def test_the_live_tests_come_when_all_else_has_ended_and_the_last_line_counts_both(checkout: Path) -> None:
    code, said, made = ci_run(checkout)
    assert code == 0
    assert [line for line in made if line.startswith("made")] == ["made tools", "made test", "made test-live-short"]
    assert said[-1] == "99 passed, 1 failed, 3 skipped"


def test_a_failure_of_the_live_tests_fails_the_run(checkout: Path) -> None:
    code, said, _ = ci_run(checkout, FAILS="test-live-short")
    assert code != 0
    assert said[-1] == "99 passed, 1 failed, 3 skipped"


def test_where_the_tests_fail_the_live_ones_do_not_start(checkout: Path) -> None:
    code, said, made = ci_run(checkout, FAILS="test")
    assert code != 0
    assert "made test-live-short" not in made
    assert said[-2:] == ["the live tests did not start", "98 passed, 0 failed, 2 skipped"]


def test_where_nothing_starts_the_last_line_says_so_and_reports_of_another_run_are_not_counted(checkout: Path) -> None:
    shutil.copy2(checkout.parent / "tests.xml", checkout / ".cache")
    code, said, _ = ci_run(checkout, FAILS="tools")
    assert code != 0
    assert said[-3:] == ["the tests did not start", "the live tests did not start", "0 passed, 0 failed, 0 skipped"]


def test_packages_that_a_node_lacks_are_installed_before_the_live_tests(checkout: Path) -> None:
    _, _, made = ci_run(checkout, lacks="nftables\nipset\n")
    assert made.index("install -qq -y nftables ipset") == made.index("made test-live-short") - 1


def test_packages_that_cannot_be_installed_are_told_and_the_run_goes_on(checkout: Path) -> None:
    code, said, made = ci_run(checkout, lacks="nftables\n", APT_GET="100")
    assert code == 0
    assert "apt-get could not install nftables: the live tests will say what they miss" in said
    assert made[-1] == "made test-live-short"
