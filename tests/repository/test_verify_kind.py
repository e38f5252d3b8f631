"""What `make verify-kind` finds that a cluster has left on a computer."""

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def verify() -> ModuleType:
    spec = importlib.util.spec_from_file_location("verify_kind_alone", ROOT / "ci/verify_kind.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look there
    spec.loader.exec_module(module)
    return module


def test_changed_settings_and_new_remains_are_reported(verify: ModuleType) -> None:
    before = verify.Traces({"kernel/panic": "0", "vm/overcommit_memory": "0"}, ("the mount /old",))
    after = verify.Traces({"kernel/panic": "10", "vm/overcommit_memory": "0"}, ("the mount /old", "the mount /new"))
    assert after.describe_changes(before) == ["/proc/sys/kernel/panic is 10, and was 0", "the mount /new"]
    assert before.describe_changes(before) == []


def test_processes_and_files_of_a_cluster_are_found(verify: ModuleType, tmp_path: Path) -> None:
    mark = f"rayhelm-{tmp_path.name}"
    state = tmp_path / "state"
    assert list(verify.find_remains(mark, state)) == []
    (state / "docker").mkdir(parents=True)
    with subprocess.Popen([sys.executable, "-c", "input()", mark], stdin=subprocess.PIPE) as process:
        found = list(verify.find_remains(mark, state))
        process.kill()
    assert found == [f"the process {process.pid} ({sys.executable})", f"files in {state}"]
