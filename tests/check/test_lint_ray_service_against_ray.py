"""What lint knows of Ray Serve without importing it, compared with Ray."""

import importlib
from pathlib import Path

import pytest

from rayhelm.facts.serve_schema import load_serve_schema

pytestmark = pytest.mark.serve


def test_keys_of_the_package_are_those_of_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "ci")
    module = importlib.import_module("serve_schema")
    assert module.describe_serve_config() == load_serve_schema(), "run ci/serve_schema.py"
