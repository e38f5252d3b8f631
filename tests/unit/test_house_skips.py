"""A skip must be in ci/allowed-skips: tried on small pytest runs of their own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parent.parent

SKIPPING = {
    "in_test": "import pytest\ndef test_a():\n    pytest.skip('no such thing')\n",
    "by_mark": "import pytest\n@pytest.mark.skip(reason='no such thing')\ndef test_a():\n    pass\n",
    "whole_module": "import pytest\npytest.skip('no such thing', allow_module_level=True)\n",
}


def run_pytest(
    folder: Path, allowed: str, *options: str, strict: str = "1", tests: str = "tests"
) -> subprocess.CompletedProcess[str]:
    (folder / "ci").mkdir()
    (folder / "ci" / "allowed-skips").write_text(allowed)
    (folder / "tests" / "conftest.py").write_text((TESTS / "conftest.py").read_text())
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--rootdir", str(folder), *options, tests]
    environment = os.environ | {"RAYHELM_STRICT_SKIPS": strict}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture(params=SKIPPING)
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_it.py").write_text(SKIPPING[request.param])
    (tmp_path / "tests" / "test_other.py").write_text("def test_b():\n    pass\n")
    return tmp_path


def test_an_unlisted_skip_fails_the_run_and_is_named(folder: Path) -> None:
    ended = run_pytest(folder, "tests/test_it.py* | another reason\n")
    assert ended.returncode == 1, ended.stdout
    assert "| no such thing" in ended.stdout
    assert " passed" in ended.stdout.splitlines()[-1], "pytest's own summary stays the last line"


def test_a_listed_skip_passes(folder: Path) -> None:
    assert run_pytest(folder, "# why\ntests/test_it.py* | no such *\n").returncode == 0


def test_skips_of_other_processes_count_too(folder: Path) -> None:
    assert run_pytest(folder, "", "-n1").returncode == 1


def test_a_run_of_one_folder_alone_is_as_strict(tmp_path: Path) -> None:
    (tmp_path / "tests" / "live").mkdir(parents=True)
    (tmp_path / "tests" / "live" / "test_it.py").write_text(SKIPPING["by_mark"])
    ended = run_pytest(tmp_path, "", tests="tests/live")
    assert ended.returncode == 1
    assert "tests/live/test_it.py::test_a | no such thing" in ended.stdout


def test_without_the_variable_a_skip_is_a_skip(folder: Path) -> None:
    assert run_pytest(folder, "", strict="").returncode == 0
