"""The fleet file of each page in docs/workloads and docs/clusters plans and renders."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from rayhelm.deploy.render.files import build_files, render_fleet
from rayhelm.facts import load_catalog
from rayhelm.live.discovery.machine import Machine, read_machine
from testbed.nodes.labels import labels_of

DOCS = Path(__file__).parents[2] / "docs"
PAGES = sorted(
    page.relative_to(DOCS).as_posix() for each in ("workloads", "clusters") for page in DOCS.glob(f"{each}/*.md")
)
WITH_FEATURE_DISCOVERY = {"clusters/openshift.md", "clusters/bare-metal.md", "clusters/home-lab.md"}


def fleet_of(page: str) -> str:
    (block,) = re.findall(r"^```yaml\n(fleet: .*?)^```$", (DOCS / page).read_text(), re.MULTILINE | re.DOTALL)
    return str(block)


@pytest.mark.parametrize("page", PAGES)
def test_fleet_of_the_page_renders_and_reaches_its_objectives(page: str, tmp_path: Path) -> None:
    text = fleet_of(page)
    (tmp_path / "fleet.yaml").write_text(text)
    rendered = render_fleet(tmp_path / "fleet.yaml")
    declared = yaml.safe_load(text)
    assert rendered.plan.models.keys() == declared["models"].keys()
    for model in rendered.plan.models.values():
        assert not model.tight
        assert not [warning for warning in model.warnings if "out of reach" in warning]
    services = {f"ray-service/{service}.yaml" for service in declared["services"]}
    assert services <= build_files(rendered).keys()


@pytest.mark.parametrize("page", [page for page in PAGES if page.startswith("clusters/")])
def test_labels_of_the_pools_name_their_gpus(page: str) -> None:
    facts = load_catalog()
    for pool in yaml.safe_load(fleet_of(page))["pools"].values():
        hosts = pool.get("hosts") or [{"gpu": pool["gpu"], "gpus": pool.get("gpusPerNode", 1)}]
        for host in hosts:
            kind, count = facts.gpu(host["gpu"]), host.get("gpus", 1)
            labels = pool.get("nodeSelector", {}) | (labels_of(kind, count) if page in WITH_FEATURE_DISCOVERY else {})
            found = read_machine(node(labels, count), facts)
            assert isinstance(found, Machine), found
            assert found.gpu.id == kind.id


def node(labels: dict[str, str], gpus: int) -> dict[str, Any]:
    resources = {"cpu": "64", "memory": "256Gi", "nvidia.com/gpu": str(gpus)}
    return {"metadata": {"name": "one", "labels": labels}, "status": {"allocatable": resources}}


@pytest.mark.parametrize("page", PAGES)
def test_page_is_short_and_listed(page: str) -> None:
    assert len((DOCS / page).read_text().splitlines()) <= 40
    assert f"]({page})" in (DOCS / "README.md").read_text()
