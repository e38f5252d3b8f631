"""Skips that are not allowed fail a run, and a run can leave out what an earlier one ran: on small pytest sessions."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from shared.skips import UNLISTED

TESTS = Path(__file__).parent.parent

SKIPPING = {
    "test_call.py": "import pytest\ndef test_a():\n    pytest.skip('no tool by call')\n",
    "test_mark.py": "import pytest\n@pytest.mark.skip(reason='no tool by mark')\ndef test_a():\n    pass\n",
    "test_module.py": "import pytest\npytest.skip('no tool in module', allow_module_level=True)\n",
}
PASSING = {"test_other.py": "import pytest\n@pytest.mark.parametrize('n', ['a b', 'c[d]'])\ndef test_b(n):\n    pass\n"}
ALL_ALLOWED = "# why\ntests/test_*.py* | no tool *\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A checkout with a test for each way to skip, and the conftest.py of this one."""
    (tmp_path / "tests").mkdir()
    (tmp_path / "ci").mkdir()
    for name, text in (SKIPPING | PASSING).items():
        (tmp_path / "tests" / name).write_text(text)
    (tmp_path / "tests" / "conftest.py").write_text((TESTS / "conftest.py").read_text())
    return tmp_path


def run_pytest(
    folder: Path, allowed: str, *options: str, strict: str = "1", without_tools: str = ""
) -> tuple[int, str]:
    """Exit code and output. Plugins that a session finds by itself take seconds to import, so they are named."""
    (folder / "ci" / "allowed-skips").write_text(allowed)
    (folder / "ci" / "allowed-skips-without-tools").write_text(without_tools)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "xdist", "--rootdir", str(folder)]
    environment = os.environ | {
        "RAYHELM_STRICT_SKIPS": strict,
        "PYTHONPATH": str(TESTS),
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    }
    tests = [] if any(not option.startswith("-") for option in options) else ["tests"]
    ended = subprocess.run(
        [*command, *options, *tests], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    return ended.returncode, ended.stdout


def test_each_unlisted_skip_is_named_and_fails_the_run(folder: Path) -> None:
    code, output = run_pytest(folder, "tests/test_call.py* | another reason\n")
    assert code == UNLISTED, output
    for skipped in ("test_call.py::test_a | no tool by call", "test_mark.py::test_a | no tool by mark"):
        assert f"tests/{skipped}" in output
    assert "tests/test_module.py | no tool in module" in output
    assert " passed" in output.splitlines()[-1], "pytest's own summary stays the last line"


def test_unlisted_skip_has_its_exit_code_beside_a_failure(folder: Path) -> None:
    (folder / "tests" / "test_failing.py").write_text("def test_a():\n    assert False\n")
    assert run_pytest(folder, ALL_ALLOWED)[0] == 1
    assert run_pytest(folder, "")[0] == UNLISTED


def test_expected_failures_count_as_skips(folder: Path) -> None:
    test = "import pytest\n@pytest.mark.xfail(reason='no tool yet')\ndef test_a():\n    assert False\n"
    (folder / "tests" / "test_expected.py").write_text(test)
    code, output = run_pytest(folder, ALL_ALLOWED)
    assert (code, "tests/test_expected.py::test_a | expected to fail: no tool yet" in output) == (UNLISTED, True)


def test_skips_of_worker_processes_fail_the_run(folder: Path) -> None:
    assert run_pytest(folder, "", "-n1")[0] == UNLISTED


def test_listed_skips_pass(folder: Path) -> None:
    assert run_pytest(folder, ALL_ALLOWED)[0] == 0


def test_skips_of_one_folder_are_checked_when_it_runs_alone(folder: Path) -> None:
    code, output = run_pytest(folder, "", "tests/test_mark.py")
    assert (code, "tests/test_mark.py::test_a | no tool by mark" in output) == (UNLISTED, True)


def test_unlisted_skips_pass_without_the_variable(folder: Path) -> None:
    assert run_pytest(folder, "", strict="")[0] == 0


def test_skips_without_tools_are_allowed_only_in_a_run_without_tools(folder: Path) -> None:
    assert run_pytest(folder, "", strict="without-tools", without_tools=ALL_ALLOWED)[0] == 0
    code, output = run_pytest(folder, "", strict="1", without_tools=ALL_ALLOWED)
    assert code == UNLISTED, output


@pytest.mark.parametrize("workers", ["-n0", "-n1"])
def test_later_run_runs_what_was_skipped_and_nothing_twice(folder: Path, workers: str) -> None:
    _, first = run_pytest(folder, ALL_ALLOWED, workers, "--record-completed=.cache/completed")
    assert "2 passed, 3 skipped" in first
    (folder / "tests" / "test_call.py").write_text("def test_a():\n    pass\ndef test_new():\n    pass\n")
    code, second = run_pytest(folder, ALL_ALLOWED, workers, "--except-completed=.cache/completed")
    assert code == 0
    assert "2 passed, 2 skipped" in second
