"""Overrides of the fleet file as the charts render and refuse them."""

import re
from pathlib import Path

import pytest

from rayhelm.check.lint.fleet import check_fleet, lint_fleet
from rayhelm.check.lint.locate import locate
from rayhelm.deploy.render.files import build_manifests, render_fleet
from rayhelm.errors import FleetError, Problem

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "docs/tasks/override-chart-values.md"


@pytest.fixture
def fleet(tmp_path: Path) -> Path:
    """The fleet file of the guide."""
    (text,) = re.findall(r"^```yaml\n(.*?)^```$", GUIDE.read_text(), re.MULTILINE | re.DOTALL)
    file = tmp_path / "fleet.yaml"
    file.write_text(text)
    return file


def test_overrides_of_the_guide_pass_lint_and_reach_the_objects(fleet: Path) -> None:
    assert check_fleet(fleet, ask_ray=False).problems == []
    texts = build_manifests(render_fleet(fleet))
    service, gateway = texts["manifests/ray-service/chat.yaml"], texts["manifests/gateway/gateway.yaml"]
    assert re.search(r"memory: \"?12Gi", service)
    assert re.search(r"sizeLimit: \"?16Gi", service)
    assert "timeout server 1800s" in gateway
    tenant = texts["manifests/tenant/apps.yaml"]
    assert "kind: LocalQueue" in tenant
    assert "kind: ExternalSecret" in tenant


@pytest.mark.parametrize(
    ("old", "new", "rule"),
    [
        ("serve: {requestTimeoutSeconds: 1700}", "networkPolicy: {enabled: false}", "network-policy-reason"),
        ("{shmSize: 16Gi}", "{shmSize: 900Gi}", "shm-memory"),
    ],
)
def test_rule_that_an_override_breaks_has_its_line(fleet: Path, old: str, new: str, rule: str) -> None:
    text = fleet.read_text()
    assert old in text
    fleet.write_text(text.replace(old, new))
    with pytest.raises(FleetError) as caught:
        lint_fleet(fleet, ask_ray=False)
    (problem,) = caught.value.problems
    assert problem.rule == rule
    assert new in fleet.read_text().splitlines()[(problem.line or 0) - 1]


def test_rule_about_a_planned_value_is_not_located_at_an_override_beside_it(fleet: Path) -> None:
    release = next(each for each in render_fleet(fleet).releases if each.chart == "ray-service")
    rendered = render_fleet(fleet)
    loaded = rendered.plan.source
    problem = locate(Problem("wrong", "serve.applications.chat.models.chat"), release, rendered, ["chat"])
    assert problem.line == loaded.document.line(("models", "chat"))
    problem = locate(Problem("wrong", "serve.requestTimeoutSeconds"), release, rendered)
    assert problem.line == loaded.document.line(("services", "chat", "values", "serve"))
