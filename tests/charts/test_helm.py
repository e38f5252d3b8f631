"""Finding and running helm."""

import json

import pytest

from charts.kit import HELMS, example
from rayhelm.deploy.charts import helm
from rayhelm.errors import FleetError, MissingError


@pytest.fixture(autouse=True)
def _forget():
    helm.find_helm.cache_clear()
    yield
    helm.find_helm.cache_clear()


def script(path, version):
    path.write_text(f"#!/bin/sh\necho {version}\n")
    path.chmod(0o755)
    return path


def test_named_cluster_is_selected(monkeypatch):
    monkeypatch.setenv("HELM", str(HELMS["3"]))
    assert helm.find_helm() == HELMS["3"]


@pytest.mark.parametrize("version", ["v3.18.4+gabc", "nothing"])
def test_one_that_is_named_and_too_old_is_refused(monkeypatch, tmp_path, version):
    monkeypatch.setenv("HELM", str(script(tmp_path / "helm", version)))
    with pytest.raises(MissingError, match="make setup") as caught:
        helm.find_helm()
    assert caught.value.exit_code == 3


def test_one_in_the_path_serves_where_there_is_no_checkout(monkeypatch, tmp_path):
    monkeypatch.delenv("HELM", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(helm, "find_pinned_tool", lambda name: None)
    with pytest.raises(MissingError, match="or newer was not found"):
        helm.find_helm()
    found = script(tmp_path / "helm", "v3.19.0+g3d8990f")
    assert helm.find_helm() == found


def test_schema_errors_are_reported_without_a_rule():
    values = example("minimal") | {"workerGroup": {}}
    with pytest.raises(FleetError) as caught:
        helm.template("ray-service", "chat", "models", values)
    (problem,) = caught.value.problems
    assert "'workerGroup' not allowed" in problem.message
    assert problem.rule == ""


def test_violated_rule_names_its_file(tmp_path):
    file = tmp_path / "values.yaml"
    file.write_text("auth: {mode: disabled}\n")
    with pytest.raises(FleetError) as caught:
        helm.template("ray-service", "chat", "models", [file])
    assert caught.value.problems[0].file == str(file)


@pytest.mark.parametrize("version", HELMS)
@pytest.mark.parametrize("size", [4096, 8192])
def test_values_of_any_size_are_read(version, size):
    """Helm 4.2 ignores a JSON file of a multiple of 4096 bytes that does not end in a newline."""
    values = {"nameOverride": "a" * 48, "auth": {"reason": ""}}
    values["auth"]["reason"] = "x" * (size - len(json.dumps(values)))
    with pytest.raises(FleetError) as caught:
        helm.template("ray-service", "chat", "models", values, helm=HELMS[version])
    assert caught.value.problems[0].rule == "name-length"
