"""`rayhelm render` for Argo CD: files, refusals, and what is written when nothing changed."""

import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from rayhelm.deploy.charts.helm import charts_dir
from rayhelm.deploy.render.files import build_files, render_plan
from rayhelm.deploy.values.argocd import ArgocdValues
from rayhelm.deploy.values.platform import PlatformValues
from rayhelm.deploy.values.ray_service import RayServiceValues
from rayhelm.deploy.values.tenant import TenantValues
from rayhelm.errors import FleetError
from rayhelm.facts.versions import get_kuberay_namespace, versions
from rayhelm.fleet.document import parse_document
from rayhelm.fleet.load import parse_fleet
from rayhelm.planner.planner import plan_fleet
from shared.command import run

FLEETS = charts_dir().parent / "values"
GITOPS = {"repository": {"url": "https://git.example.com/ai/fleets.git", "path": "acme"}, "charts": {"path": "charts"}}
Values = dict[str, Any]


def fleet_of(name: str, gitops: Values | None) -> Values:
    fleet: Values = yaml.safe_load((FLEETS / name / "fleet.yaml").read_text())
    return {**fleet, **({"gitops": gitops} if gitops else {})}


def render(fleet: Values) -> dict[str, str]:
    loaded = parse_fleet(parse_document(yaml.safe_dump(fleet, sort_keys=False), "fleet.yaml"))
    return build_files(render_plan(plan_fleet(loaded)))


def argocd_values(fleet: Values) -> ArgocdValues:
    return ArgocdValues.model_validate(yaml.safe_load(render(fleet)["argocd/argocd.yaml"]))


@pytest.mark.parametrize("name", sorted(path.parent.name for path in FLEETS.glob("*/fleet.yaml")))
def test_every_release_has_an_application_with_an_existing_file(name: str) -> None:
    clusters = fleet_of(name, None).get("clusters", {"main": {}})
    gitops = GITOPS | ({"clusters": {each: {"name": each} for each in clusters}} if len(clusters) > 1 else {})
    files = render(fleet_of(name, gitops))
    values = ArgocdValues.model_validate(yaml.safe_load(files["argocd/argocd.yaml"]))
    rendered = {file for file in files if file.count("/") >= 1 and not file.startswith("argocd/")}
    assert {release.file for release in values.releases.values()} == rendered


def test_fleet_without_the_section_has_no_files_for_argo_cd() -> None:
    assert not [file for file in render(fleet_of("single-gpu", None)) if file.startswith("argocd/")]


def test_operators_of_a_fleet_have_the_version_of_its_cluster() -> None:
    fleet = fleet_of("single-gpu", GITOPS)
    fleet["clusters"]["main"]["kuberay"] = "1.6.2"
    assert argocd_values(fleet).operators["kuberay"].version == "1.6.2"


@pytest.mark.parametrize("namespace", ["", "ray"])
def test_releases_allow_the_namespace_in_which_argocd_installs_kuberay(namespace: str) -> None:
    fleet = fleet_of("multi-node", GITOPS)
    fleet["clusters"]["main"] |= {"kuberayOperator": {"namespace": namespace}} if namespace else {}
    rendered = render_plan(plan_fleet(parse_fleet(parse_document(yaml.safe_dump(fleet), "fleet.yaml"))))
    assert rendered.argocd
    wanted = namespace or get_kuberay_namespace()
    assert rendered.argocd.operators["kuberay"].namespace == wanted
    seen = set()
    for release in rendered.releases:
        seen.add(release.chart)
        match release.values:
            case RayServiceValues() as values:
                assert values.network_policy.operator.namespace == wanted
            case TenantValues() as values:
                operators = [each for each in values.network_policy.allowed.namespaces if each.endswith(":8265")]
                assert operators == [f"{wanted}:8265"]
            case PlatformValues() as values:
                assert values.metrics.scraping.kuberay_namespace == wanted
    assert seen >= {"ray-service", "tenant", "platform"}
    assert f"`{wanted}` (`app.kubernetes.io/component=kuberay-operator`)" in build_files(rendered)["network.md"]


@pytest.mark.parametrize("name", sorted(versions().charts))
def test_operator_is_rendered_as_pinned(name: str) -> None:
    operator = argocd_values(fleet_of("single-gpu", GITOPS | {"operators": [name]})).operators[name]
    pinned = versions().charts[name]
    assert (operator.url, operator.chart) == (pinned.repository, pinned.chart)
    assert operator.version
    assert operator.wave < -20


def test_root_installs_the_chart_with_the_rendered_values() -> None:
    root = yaml.safe_load(render(fleet_of("single-gpu", GITOPS))["argocd/root.yaml"])
    chart, values = root["spec"]["sources"]
    assert chart["path"] == "charts/argocd"
    assert chart["helm"]["valueFiles"] == ["$values/acme/argocd/argocd.yaml"]
    assert values["ref"] == "values"
    assert "finalizers" not in root["metadata"]


@pytest.mark.parametrize(
    ("gitops", "message"),
    [
        ({**GITOPS, "charts": {}}, "neither a registry nor a folder"),
        ({**GITOPS, "charts": {"url": "registry.example.com/rayhelm"}}, "there is no `version`"),
        ({**GITOPS, "charts": {"path": "../charts"}}, "is not a folder below the root"),
        ({**GITOPS, "repository": {"url": "https://git.example.com/a.git", "path": "/acme"}}, "is not a folder below"),
        ({**GITOPS, "clusters": {"edge": {"name": "edge"}}}, "there is no cluster `edge`"),
        ({**GITOPS, "clusters": {"main": {}}}, "neither `server` nor `name`"),
        ({**GITOPS, "clusters": {"main": {"name": "a", "server": "https://b"}}}, "both `server` and `name`"),
    ],
)
def test_application_that_points_nowhere_is_refused_with_a_line(gitops: Values, message: str) -> None:
    with pytest.raises(FleetError, match=message) as caught:
        render(fleet_of("single-gpu", gitops))
    (problem,) = caught.value.problems
    assert problem.line
    assert problem.fix


def test_override_lets_a_project_install_a_further_kind() -> None:
    extra = {"clusterScoped": False, "project": "platform", "reason": "our secrets"}
    values = {"project": {"extraKinds": {"bitnami.com/SealedSecret": extra}}, "sync": {"retry": {"limit": 10}}}
    found = argocd_values(fleet_of("single-gpu", GITOPS | {"values": values}))
    assert found.project.extra_kinds["bitnami.com/SealedSecret"].reason == "our secrets"
    assert found.sync.retry.limit == 10
    assert found.releases


def test_override_may_add_an_operator() -> None:
    own = {"cluster": "main", "url": "https://charts.example.com", "chart": "store", "version": "1.0.0"}
    values = {"operators": {"store": own | {"release": "store", "namespace": "store"}}}
    found = argocd_values(fleet_of("single-gpu", GITOPS | {"values": values}))
    assert {*found.operators} == {"kuberay", "store"}


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"kind": "ApplicationSet"}, r"`kind` cannot be overridden.*`gitops\.kind`"),
        ({"operators": {"kuberay": {"namespace": "ray"}}}, r"`operators\.kuberay` cannot be overridden"),
        ({"releases": {"platform": None}}, "`releases` cannot be overridden"),
        ({"sync": {"selfheal": False}}, "selfHeal"),
    ],
)
def test_override_of_argocd_that_contradicts_the_plan_is_refused_with_a_line(values: Values, message: str) -> None:
    with pytest.raises(FleetError, match=message) as caught:
        render(fleet_of("single-gpu", GITOPS | {"values": values}))
    assert all(problem.line and problem.fix for problem in caught.value.problems)


def test_fleet_of_several_clusters_names_each_for_argo_cd() -> None:
    with pytest.raises(FleetError, match=r"`gitops\.clusters` has none for"):
        render(fleet_of("three-tiers", GITOPS))


def test_files_do_not_depend_on_the_order_of_sections() -> None:
    fleet = fleet_of("multi-node", GITOPS)
    turned = {**fleet, "gitops": dict(reversed(GITOPS.items())), "services": dict(reversed(fleet["services"].items()))}
    assert render(dict(reversed(turned.items()))) == render(fleet)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "fleet.yaml").write_text(yaml.safe_dump(fleet_of("single-gpu", GITOPS), sort_keys=False))
    return tmp_path


def stamps(folder: Path) -> dict[str, int]:
    return {str(path.relative_to(folder)): path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}


def test_second_render_touches_no_file(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(capsys, monkeypatch, "render", str(folder), "--manifests").code == 0
    for path in folder.rglob("*"):
        os.utime(path, ns=(1, 1))
    before = stamps(folder)
    assert run(capsys, monkeypatch, "render", str(folder), "--manifests").code == 0
    assert stamps(folder) == before


def test_half_rendered_folder_is_completed(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An interrupted render wrote some files, and no list of them."""
    assert run(capsys, monkeypatch, "render", str(folder)).code == 0
    expected = {name: (folder / name).read_bytes() for name in stamps(folder)}
    for name in (".rayhelm-files.json", "argocd/root.yaml", "plan.md"):
        (folder / name).unlink()
    assert run(capsys, monkeypatch, "render", str(folder), "--check").code == 1
    assert run(capsys, monkeypatch, "render", str(folder)).code == 0
    assert {name: (folder / name).read_bytes() for name in stamps(folder)} == expected


def test_fleet_without_the_section_removes_its_files(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(capsys, monkeypatch, "render", str(folder)).code == 0
    (folder / "argocd/mine.yaml").write_text("kind: ConfigMap\n")
    (folder / "fleet.yaml").write_text(yaml.safe_dump(fleet_of("single-gpu", None), sort_keys=False))
    assert run(capsys, monkeypatch, "render", str(folder)).code == 0
    assert [path.name for path in (folder / "argocd").iterdir()] == ["mine.yaml"]


def test_second_fleet_in_a_folder_is_refused_and_nothing_is_written(
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    assert run(capsys, monkeypatch, "render", str(folder)).code == 0
    before = stamps(folder)
    other = tmp_path_factory.mktemp("other") / "fleet.yaml"
    other.write_text(yaml.safe_dump({**fleet_of("single-gpu", GITOPS), "fleet": "second"}, sort_keys=False))
    answer = run(capsys, monkeypatch, "render", str(other), "-o", str(folder))
    assert answer.code == 1
    assert "the folder has the files of fleet `single-gpu`" in answer.err
    assert stamps(folder) == before


def test_lint_checks_the_chart_of_argo_cd(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = run(capsys, monkeypatch, "lint", str(folder), "--no-serve")
    assert answer.code == 0
    assert "argocd/argocd.yaml: chart argocd renders and passes `helm lint --strict`" in answer.out


def test_lint_locates_a_rule_of_the_chart_of_argo_cd(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (folder / "fleet.yaml").read_text()
    (folder / "fleet.yaml").write_text(text.replace("https://git.example.com", "oci://git.example.com"))
    answer = run(capsys, monkeypatch, "lint", str(folder), "--no-serve")
    line = 1 + (folder / "fleet.yaml").read_text().splitlines().index("  repository:")
    assert f"fleet.yaml:{line}: repository.url: oci://git.example.com/ai/fleets.git: Argo CD takes" in answer.err
