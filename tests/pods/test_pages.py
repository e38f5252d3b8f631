"""The commands of the pages that install a fleet, on a node that enforces NetworkPolicies, up to an answered request.

`substitutions.yaml` has what cannot run here, each with its reason.
"""

from pathlib import Path

import pytest

from pods.kit.argocd import delivery
from pods.kit.cluster import Cluster
from pods.kit.pages import PageRun, restored, run_page
from testbed.tools import missing

pytestmark = pytest.mark.timeout(1800)


@pytest.mark.parametrize(
    ("page", "files", "model"),
    [
        ("README.md", (), "qwen3-4b"),
        pytest.param("charts/quickstart/README.md", ("values.yaml",), "llama-8b", marks=pytest.mark.short),
        ("docs/get-started/on-a-cluster.md", ("fleet.yaml",), "qwen3-8b"),
    ],
)
def test_commands_of_the_page_lead_to_an_answered_request(
    cluster: Cluster, page: str, files: tuple[str, ...], model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with restored(cluster):
        assert_answered(run_page(cluster, page, files, tmp_path), page, model, capsys)


def test_commands_of_the_argocd_page_lead_to_an_answered_request(
    cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The controllers of Argo CD deliver the repository in waves, with the health checks of the page, and remove it."""
    if missing(group="verify-argocd"):
        pytest.skip("Argo CD is not built: make test-live")
    page, files = "docs/tasks/deliver-with-argocd.md", ("acme/fleet.yaml", "stores/vault.yaml")
    with restored(cluster), delivery(cluster, tmp_path) as argocd:
        run = run_page(cluster, page, files, argocd.tree, argocd.environment)
        assert_answered(run, page, "qwen3-8b", capsys)
        releases = ("external-secrets", "platform", "tenant-apps", "service-qwen3-8b", "gateway")
        rows = [row.split() for row in run.output_of("get applications").splitlines()]
        assert all([f"acme-{release}", "Synced", "Healthy"] in rows for release in releases), rows
        removed = "applications.argoproj.io,rayservices.ray.io,validatingadmissionpolicies"
        ours = "--selector=app.kubernetes.io/part-of=rayhelm"
        assert cluster.kubectl("get", removed, ours, "--all-namespaces", "--output=name") == ""


def assert_answered(run: PageRun, page: str, model: str, capsys: pytest.CaptureFixture[str]) -> None:
    as_written = sum(command.is_as_written for command in run.commands)
    with capsys.disabled():
        print(f"\n{page}: commands run as written: {as_written} of {len(run.commands)}")
    assert run.answer["model"] == model
    assert run.answer["choices"][0]["message"]["role"] == "assistant"
