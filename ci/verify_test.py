"""Run one file of tests that CI skips, and write its committed result."""

import json
import platform
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping, Sequence
from pathlib import Path

__all__ = ["ROOT", "run_tests", "write_result"]

ROOT = Path(__file__).resolve().parent.parent


def write_result(test: Path, result: Path, inputs: str, programs: Sequence[str]) -> int:
    """Write the result if no test failed or was skipped. Returns the exit code; `inputs` is the checksum of what the
    result depends on."""
    from testbed.tools import find

    before = time.monotonic()
    code, outcomes = run_tests(test)
    if code:
        return code
    written = {
        "inputs": inputs,
        "versions": {each: find.found(each).version for each in programs},
        "seconds": round(time.monotonic() - before),
        "computer": f"{platform.machine()}, Python {platform.python_version()}",
        "tests": outcomes,
    }
    result.parent.mkdir(exist_ok=True)
    result.write_text(json.dumps(written, indent=2) + "\n")
    print(f"written: {result.relative_to(ROOT)}")
    return 0


def run_tests(
    test: Path, prefix: Sequence[str] = (), environment: Mapping[str, str] | None = None
) -> tuple[int, dict[str, str]]:
    """Run a file of tests, with `prefix` before the command. Returns 0 and the outcome of each test if all passed, else
    another code."""
    with tempfile.TemporaryDirectory() as name:
        report = Path(name) / "report.xml"
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:randomly", f"--junit-xml={report}", str(test)]
        ended = subprocess.run([*prefix, *command], cwd=ROOT, env=environment, check=False)
        cases = list(ElementTree.parse(report).iter("testcase")) if report.exists() else []
    outcomes = {str(case.get("name")): "passed" if len(case) == 0 else case[0].tag for case in cases}
    if ended.returncode or not outcomes or set(outcomes.values()) != {"passed"}:
        print(f"not written: {outcomes or 'no test ran'}", file=sys.stderr)
        return ended.returncode or 1, outcomes
    return 0, outcomes
