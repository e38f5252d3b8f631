"""`.ci/run` and `ci/run-tests` with replacements for make, pytest, apt-get and ci/node: order, failures, last lines."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

ROOT = Path(__file__).resolve().parent.parent.parent

MAKE = """#!/usr/bin/env bash
echo "make $1 strict=$RAYHELM_STRICT_SKIPS tools=$(ls -m .tools)" >>calls
cp ../reports/"$1"/*.xml .cache/ 2>/dev/null
# The builds for the live tests last until they are stopped, if a test asks for that.
[ "$1" != live-images ] || [ -z "${BUILDS_LAST:-}" ] || { echo "$$" >builds && exec sleep 600; }
[ "$1" != test-skipped ] || [ -z "${BUILDS_LAST:-}" ] || until [ -s builds ]; do sleep 0.05; done
[ "$1" != "${FAILS:-}" ]
"""
APT_GET = """#!/usr/bin/env bash
echo "$*" >>calls
exit "${APT_GET:-0}"
"""
REPORTS = {
    "test": {"tests": "ppppppppss", "tests-alone": "ps"},
    "test-skipped": {"tests-skipped": "--------pp", "tests-skipped-alone": "-s"},
    "test-live-short": {"tests-live": "pfs"},
}
"""What each make target writes: an outcome a test (passed, failed, skipped, not run)."""


def write_report(path: Path, outcomes: str) -> None:
    """A JUnit report. Reports of one suite have the same tests."""
    suite = path.stem.replace("-skipped", "").replace("-again", "")
    tags = {"p": "", "f": "<failure/>", "s": "<skipped/>"}
    cases = [
        f'<testcase classname="{suite}" name="{number}">{tags[outcome]}</testcase>'
        for number, outcome in enumerate(outcomes)
        if outcome in tags
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"<testsuites><testsuite>{''.join(cases)}</testsuite></testsuites>")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """What .ci/run needs of one."""
    checkout = tmp_path / "checkout"
    for name in (".ci/run", "ci/stage", "ci/count-tests", "ci/run-tests", "ci/host.bash"):
        (checkout / name).parent.mkdir(exist_ok=True, parents=True)
        shutil.copy2(ROOT / name, checkout / name)
    for name in ("bin", "uv", "go"):
        (checkout / ".tools" / name).mkdir(parents=True)
    (checkout / ".cache").mkdir()
    for name, mark in (("one", "serve"), ("two", "slow")):
        (checkout / "tests").mkdir(exist_ok=True)
        (checkout / "testbed/tests").mkdir(parents=True, exist_ok=True)
        (checkout / "tests" / f"test_{name}.py").write_text(f"pytestmark = pytest.mark.{mark}\n")
    for target, reports in REPORTS.items():
        for name, outcomes in reports.items():
            write_report(tmp_path / "reports" / target / f"{name}.xml", outcomes)
    for name, text in {"make": MAKE, "apt-get": APT_GET, "id": "#!/bin/sh\necho 0\n"}.items():
        write_program(tmp_path / "bin" / name, text)
    return checkout


def write_program(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


def run_script(checkout: Path, *command: str, **environment: str) -> tuple[int, list[str], list[str]]:
    """Exit code, lines of output, and what was called."""
    path = f"{checkout.parent / 'bin'}:{os.environ['PATH']}"
    ended = subprocess.run(
        [checkout / command[0], *command[1:]],
        env=os.environ | {"PATH": path} | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    calls = checkout / "calls"
    return ended.returncode, ended.stdout.splitlines(), calls.read_text().splitlines() if calls.exists() else []


def ci_run(checkout: Path, lacks: str = "", **environment: str) -> tuple[int, list[str], list[str]]:
    """`.ci/run` where ci/node misses the packages `lacks`."""
    write_program(checkout / "ci" / "node", f"#!/bin/sh\nprintf '%s' '{lacks}'\n")
    return run_script(checkout, ".ci/run", **environment)


def makes(calls: list[str]) -> list[str]:
    """The stages; live-images runs beside them."""
    found = [call.removeprefix("make ") for call in calls if call.startswith("make ")]
    return [call for call in found if not call.startswith("live-images")]


def test_ci_runs_the_tests_without_tools_then_the_rest_with_them(checkout: Path) -> None:
    code, _, calls = ci_run(checkout)
    assert code == 0
    assert makes(calls) == [
        "test strict=without-tools tools=bin, uv",
        "tools strict=1 tools=bin, go, uv",
        "test-skipped strict=1 tools=bin, go, uv",
        "test-live-short strict=1 tools=bin, go, uv",
    ]


@pytest.mark.parametrize("fails", ["", "live-images"])
def test_ci_builds_for_the_live_tests_before_it_starts_them(checkout: Path, fails: str) -> None:
    code, output, calls = ci_run(checkout, FAILS=fails)
    assert code == 0
    order = [call.split()[1] for call in calls if call.startswith("make ")]
    assert order.index("tools") < order.index("live-images") < order.index("test-live-short")
    assert ("make live-images failed; what is missing is built now" in output) == bool(fails)


def test_ci_stops_the_builds_for_the_live_tests_when_a_test_fails(checkout: Path) -> None:
    code, output, _ = ci_run(checkout, FAILS="test-skipped", BUILDS_LAST="1")
    assert code == 1
    assert output[-1] == "11 passed, 0 failed, 1 skipped"
    assert not psutil.pid_exists(int((checkout / "builds").read_text()))


def test_ci_restores_built_tools_when_the_first_run_fails(checkout: Path) -> None:
    ci_run(checkout, FAILS="test")
    assert sorted(path.name for path in (checkout / ".tools").iterdir()) == ["bin", "go", "uv"]


def test_ci_counts_a_test_once_that_was_skipped_and_ran_later(checkout: Path) -> None:
    _, output, _ = ci_run(checkout)
    assert output[-1] == "12 passed, 1 failed, 2 skipped"


def test_ci_prints_the_time_and_result_of_each_stage(checkout: Path) -> None:
    _, output, _ = ci_run(checkout, FAILS="test-live-short")
    table = [line for line in output if re.search(r"\d+ min \d\d s", line)]
    assert [re.sub(r" +\d+ min \d\d s *", ": ", line) for line in table] == [
        "make test (without tools): passed",
        "make tools: passed",
        "make test-skipped: passed",
        "make test-live-short: failed",
        "total: ",
    ]


@pytest.mark.parametrize(
    ("target", "last"),
    [
        ("tools", "9 passed, 0 failed, 3 skipped"),
        ("test-skipped", "11 passed, 0 failed, 1 skipped"),
        ("test-live-short", "12 passed, 1 failed, 2 skipped"),
    ],
)
def test_ci_fails_and_starts_no_later_stage_when_a_stage_fails(checkout: Path, target: str, last: str) -> None:
    code, output, calls = ci_run(checkout, FAILS=target)
    assert code != 0
    assert makes(calls)[-1].split()[0] == target
    assert output[-1] == last


def test_ci_runs_the_skipped_tests_too_when_the_first_run_fails(checkout: Path) -> None:
    code, output, calls = ci_run(checkout, FAILS="test")
    assert code != 0
    assert makes(calls)[-1].split()[0] == "test-skipped"
    assert output[-1] == "11 passed, 0 failed, 1 skipped"


def test_ci_does_not_count_reports_of_an_earlier_run(checkout: Path) -> None:
    shutil.copy2(checkout.parent / "reports/test-live-short/tests-live.xml", checkout / ".cache")
    _, output, _ = ci_run(checkout, FAILS="tools")
    assert "tests-live: did not start" in output
    assert output[-1] == "9 passed, 0 failed, 3 skipped"


def test_ci_installs_missing_packages_of_a_node_before_the_live_tests(checkout: Path) -> None:
    _, _, calls = ci_run(checkout, lacks="nftables\nipset\n")
    installed = calls.index("install -qq -y nftables ipset")
    assert installed < next(number for number, call in enumerate(calls) if call.startswith("make live-images"))


def test_ci_names_packages_that_cannot_be_installed_and_goes_on(checkout: Path) -> None:
    code, output, calls = ci_run(checkout, lacks="nftables\n", APT_GET="100")
    assert code == 0
    assert "apt-get could not install nftables: what needs them says what is missing" in output
    assert makes(calls)[-1].startswith("test-live-short")


# -- ci/run-tests ------------------------------------------------------------------------------------------------------

PYTEST = """#!/usr/bin/env bash
printf '%s\\n' "$*" >>calls
while [ "$1" != --junitxml ]; do shift; done
case $2 in
    *-alone.xml) exit "${ALONE:-0}" ;;
    *-cluster.xml) exit "${CLUSTER:-0}" ;;
    *) exit "${PARALLEL:-0}" ;;
esac
"""


@pytest.mark.parametrize(
    ("codes", "code"),
    [("000", 0), ("100", 1), ("010", 1), ("001", 1), ("500", 0), ("050", 0), ("005", 0)],
)
def test_run_tests_runs_all_parts_and_fails_when_one_does(checkout: Path, codes: str, code: int) -> None:
    write_program(checkout / ".venv" / "bin" / "pytest", PYTEST)
    of_parts = dict(zip(("PARALLEL", "ALONE", "CLUSTER"), codes, strict=True))
    found, _, calls = run_script(checkout, "ci/run-tests", "tests", "-x", KUBECONFIG="", **of_parts)
    assert found == code
    first, second, third = calls
    assert re.match(r"tests testbed/tests -m not \(serve or cluster\) -n \d+ --dist worksteal -x ", first)
    assert second.startswith("tests/test_one.py -m serve -x ")
    assert " -n " not in second
    assert re.match(
        r"tests/cluster -m cluster and not serve -n [1-4] --dist loadfile --no-loadscope-reorder -x ", third
    )


def test_run_tests_uses_a_named_cluster_from_one_process(checkout: Path) -> None:
    write_program(checkout / ".venv" / "bin" / "pytest", PYTEST)
    _, _, calls = run_script(checkout, "ci/run-tests", "tests", KUBECONFIG="there")
    assert "-m cluster and not serve -n 0 " in calls[-1]


FAILING_PYTEST = """#!/usr/bin/env bash
printf '%s\\n' "$*" >>calls
while [ "$1" != --junitxml ]; do shift; done
[ -e ../written/"${2##*/}" ] || exit 0
cp ../written/"${2##*/}" .cache/
! grep -q failure "$2"
"""


@pytest.mark.parametrize(
    ("first", "second", "code", "last"),
    [
        ("pf", "-p", 0, "2 passed, 0 failed, 0 skipped"),
        ("ff", "pf", 1, "1 passed, 1 failed, 0 skipped"),
        ("ff", "ps", 1, "1 passed, 1 failed, 0 skipped"),
        ("ffffff", "", 1, "0 passed, 6 failed, 0 skipped"),
    ],
)
def test_few_tests_that_fail_run_once_more(checkout: Path, first: str, second: str, code: int, last: str) -> None:
    write_program(checkout / ".venv" / "bin" / "pytest", FAILING_PYTEST)
    for name, outcomes in {"tests-alone": first, "tests-alone-again": second}.items():
        write_report(checkout.parent / "written" / f"{name}.xml", outcomes)
    found, output, calls = run_script(checkout, "ci/run-tests", "tests", KUBECONFIG="")
    assert (found, output[-1]) == (code, last)
    again = [call for call in calls if "--last-failed" in call]
    assert len(again) == bool(second)
    assert all(call.startswith("tests/test_one.py -m serve ") for call in again)
    assert [line for line in output if "second time" in line] == [
        f"passed the second time: tests-alone::{number}" for number, each in enumerate(second) if each == "p"
    ]


@pytest.mark.parametrize(("options", "code"), [(["-x"], 1), (["--maxfail=2"], 1), ([], 10)])
def test_no_test_runs_again_after_a_stop_or_a_skip_that_is_not_allowed(
    checkout: Path, options: list[str], code: int
) -> None:
    fails = FAILING_PYTEST.replace("! grep", f"grep -q failure $2 && exit {code}; ! grep")
    write_program(checkout / ".venv" / "bin" / "pytest", fails)
    write_report(checkout.parent / "written" / "tests-alone.xml", "pf")
    found, _, calls = run_script(checkout, "ci/run-tests", "tests", *options, KUBECONFIG="")
    assert found == code
    assert not [call for call in calls if "--last-failed" in call]


@pytest.mark.parametrize(("options", "code"), [(["-x"], 5), (["--except-completed", "earlier"], 0)])
def test_run_tests_fails_without_any_test_unless_an_earlier_run_ran_them(
    checkout: Path, options: list[str], code: int
) -> None:
    write_program(checkout / ".venv" / "bin" / "pytest", PYTEST)
    assert run_script(checkout, "ci/run-tests", "tests", *options, PARALLEL="5", ALONE="5", CLUSTER="5")[0] == code


def test_run_tests_forgets_what_an_earlier_run_completed(checkout: Path) -> None:
    write_program(checkout / ".venv" / "bin" / "pytest", PYTEST)
    (checkout / ".cache" / "tests.completed").write_text("tests/old.py::test_a\n")
    run_script(checkout, "ci/run-tests", "tests")
    assert (checkout / ".cache" / "tests.completed").read_text() == ""


# -- what ci/run-tests finds -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mark", "message"), [("serve", "write pytest.mark.serve into the file"), ("cluster", "move it to tests/cluster")]
)
def test_collection_refuses_a_mark_that_run_tests_would_not_find(tmp_path: Path, mark: str, message: str) -> None:
    lines = f"import pytest\npytestmark = getattr(pytest.mark, {mark!r})\ndef test_one(): pass\n"
    (tmp_path / "test_one.py").write_text(lines)
    shutil.copy(ROOT / "tests" / "conftest.py", tmp_path)
    (tmp_path / "pytest.ini").write_text(f"[pytest]\nmarkers = {mark}\n")
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", str(tmp_path)],
        env={name: value for name, value in os.environ.items() if not name.startswith("RAYHELM_")}
        | {"PYTHONPATH": str(ROOT / "tests")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 4, ended.stdout + ended.stderr
    assert message in ended.stderr
