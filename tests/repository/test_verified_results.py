"""The committed results of `make verify-*` belong to what is committed beside them."""

import importlib.util
import json
import re
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(params=["keda", "release"])
def verify(request: pytest.FixtureRequest) -> ModuleType:
    spec = importlib.util.spec_from_file_location(request.param, ROOT / f"ci/verify_{request.param}.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_result_belongs_to_the_present_inputs(verify: ModuleType) -> None:
    assert json.loads(verify.RESULT.read_text())["inputs"] == verify.compute_digest(), "make verify-* writes it again"


def test_result_has_every_test_as_passed(verify: ModuleType) -> None:
    tests = re.findall(r"^def (test_\w+)", verify.TEST.read_text(), re.MULTILINE)
    assert json.loads(verify.RESULT.read_text())["tests"] == dict.fromkeys(tests, "passed")
