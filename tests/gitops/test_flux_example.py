"""The example for Flux: objects against Flux's CRDs, and its health expressions for statuses of the real operator."""

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from cel_expr_python import cel

from charts.oracles import validator_of
from gitops.lua import list_cases
from rayhelm.errors import MissingError
from testbed.tools import program
from testbed.tools.crds import crd_files

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "examples/flux"
FLEET = ROOT / "values/single-gpu"
CRDS = {
    "HelmRelease": ("flux-helm", "helm.toolkit.fluxcd.io_helmreleases.yaml", "v2"),
    "GitRepository": ("flux-source", "source.toolkit.fluxcd.io_gitrepositories.yaml", "v1"),
}
SERVICES = [case for case in list_cases() if case.kind == "ray.io/RayService"]


def load(name: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((FOLDER / name).read_text())
    return found


RELEASES = [path.name for path in sorted(FOLDER.glob("*.yaml")) if load(path.name).get("kind") == "HelmRelease"]


@pytest.mark.parametrize("name", [*RELEASES, "repository.yaml"])
def test_object_matches_the_crd(name: str) -> None:
    item = load(name)
    bundle, file, version = CRDS[item["kind"]]
    try:
        (path,) = [path for path in crd_files(bundle) if path.name == file]
    except MissingError as error:
        pytest.skip(str(error))
    validator = validator_of(path, version)
    assert [error.message for error in validator.iter_errors(item)] == []
    assert list(validator.iter_errors({**item, "spec": {**item["spec"], "prune": True}}))


def test_each_release_of_the_fleet_has_a_helm_release() -> None:
    files = {path.stem for path in FLEET.glob("*/*.yaml") if path.parent.name != "manifests"}
    assert {name.removesuffix(".yaml") for name in RELEASES} == files


def test_values_files_exist() -> None:
    for entry in load("kustomization.yaml")["configMapGenerator"]:
        (file,) = (text.partition("=")[2] for text in entry["files"])
        assert (FLEET / "flux" / file).resolve().is_file()


def test_kustomization_gives_each_release_its_values(tmp_path: Path) -> None:
    """In the layout of the README, built as Flux does: with files from the whole repository."""
    shutil.copytree(FLEET, tmp_path / "single-gpu")
    shutil.copytree(FOLDER, tmp_path / "single-gpu/flux")
    command = [program("kubectl"), "kustomize", "--load-restrictor=LoadRestrictionsNone", tmp_path / "single-gpu/flux"]
    built = list(yaml.safe_load_all(subprocess.run(command, capture_output=True, text=True, check=True).stdout))
    values = {item["metadata"]["name"]: item["data"] for item in built if item["kind"] == "ConfigMap"}
    releases = [item for item in built if item["kind"] == "HelmRelease"]
    assert len(releases) == len(RELEASES)
    levels = {item["metadata"]["name"]: item["metadata"]["labels"] for item in built if item["kind"] == "Namespace"}
    wanted = {release["spec"]["targetNamespace"] for release in releases}
    assert levels == {name: {"pod-security.kubernetes.io/enforce": "restricted"} for name in wanted}
    for release in releases:
        (source,) = release["spec"]["valuesFrom"]
        (file,) = FLEET.glob(f"*/{release['metadata']['name']}.yaml")
        assert values[source["name"]] == {source["valuesKey"]: file.read_text()}


def test_releases_depend_on_earlier_ones() -> None:
    earlier: set[str] = set()
    for name in ("platform", "llama-8b", "gateway"):
        needed = {each["name"] for each in load(f"{name}.yaml")["spec"].get("dependsOn", [])}
        assert needed <= earlier
        earlier.add(name)


def assess(item: dict[str, Any]) -> str:
    """Return the verdict of kustomize-controller, as `Evaluate` of fluxcd/pkg/runtime/cel 0.117 finds it."""
    seen = item.get("status", {}).get("observedGeneration")
    if seen is not None and seen != item["metadata"].get("generation", seen):
        return "inProgress"
    (exprs,) = load("flux-kustomization.yaml")["spec"]["healthCheckExprs"]
    environment = cel.NewEnv(variables={"status": cel.Type.DYN, "metadata": cel.Type.DYN}, extensions=[])
    data = {"status": item.get("status", {}), "metadata": item["metadata"]}
    for name in ("inProgress", "failed", "current"):
        answer = environment.compile(exprs[name]).eval(data=data)
        assert answer.type() != cel.Type.ERROR, f"{name}: an error hides the expressions after it"
        if answer.plain_value():
            return name
    return "inProgress"


@pytest.mark.parametrize("case", SERVICES, ids=str)
def test_expressions_agree_with_the_lua_check(case: Any) -> None:
    expected = {"Healthy": "current", "Degraded": "failed", "Progressing": "inProgress", "Suspended": "inProgress"}
    if case.input_path.endswith("upgrade-failed.yaml"):
        expected["Degraded"] = "inProgress"  # the expressions do not look into the new RayCluster
    if case.input_path.endswith("validation-failed.yaml"):
        expected["Degraded"] = "inProgress"  # an update: KubeRay does not observe the generation, so Flux asks nothing
    assert assess(case.load()) == expected[case.status]


def load_service(name: str) -> dict[str, Any]:
    (case,) = (case for case in SERVICES if case.input_path.endswith(f"/{name}.yaml"))
    return case.load()


def test_new_service_with_a_refused_spec_has_failed() -> None:
    """KubeRay writes no observedGeneration then."""
    item = load_service("validation-failed")
    del item["status"]["observedGeneration"]
    assert assess(item) == "failed"


@pytest.mark.parametrize("status", [{}, {"conditions": []}, {"activeServiceStatus": {}}, {"pendingServiceStatus": {}}])
def test_new_service_is_in_progress(status: dict[str, Any]) -> None:
    """KubeRay 1.6.2 writes its first status without observedGeneration and with few fields."""
    assert assess({"metadata": {"generation": 1}, "status": status}) == "inProgress"
