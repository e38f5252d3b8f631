"""The committed result of `make verify-keda` belongs to what is committed beside it."""

import importlib.util
import json
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
RESULT = json.loads((ROOT / "ci/keda/result.json").read_text())


def test_keda_result_belongs_to_the_present_inputs() -> None:
    spec = importlib.util.spec_from_file_location("verify_keda", ROOT / "ci/verify_keda.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert RESULT["inputs"] == module.compute_digest(), "make verify-keda writes it again"


def test_keda_result_has_every_test_as_passed() -> None:
    tests = re.findall(r"^def (test_\w+)", (ROOT / "tests/cluster/test_keda.py").read_text(), re.MULTILINE)
    assert RESULT["tests"] == dict.fromkeys(tests, "passed")
