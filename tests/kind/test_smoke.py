"""A fleet on a new cluster of kind, by the commands of its page: a model answers, is edited in place, and is removed.

The tests run in this order, each on what the one before it left.
"""

import json
import re
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import pytest

from kind.kit.cluster import PAGE, KindCluster
from pods.kit.pages import ASKS, PageRun, restored, run_page
from rayhelm.processes import wait_until

pytestmark = pytest.mark.timeout(3600)

MODEL, NAMESPACE = "qwen3-8b", "lab"
EDIT = f"serve.applications.{MODEL}.models.{MODEL}.maxOngoingRequests"
OURS = "rayservices.ray.io,rayclusters.ray.io,validatingadmissionpolicies,persistentvolumeclaims"


@dataclass
class Installed:
    """The fleet of the page, and how to remove it."""

    run: PageRun
    key: str
    before: list[str]
    """Namespaces before its installation."""
    removal: ExitStack = field(default_factory=ExitStack)

    def ask(self) -> str | None:
        """Run the page's command that asks the model through the gateway; None if it fails."""
        code, said = self.run.run_again(self.run.command_with(ASKS), {"key": self.key})
        return said if code == 0 else None


@pytest.fixture(scope="module")
def installed(cluster: KindCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installed]:
    with ExitStack() as removal:
        before = cluster.list_all("namespaces")
        removal.enter_context(restored(cluster))
        run = run_page(cluster, PAGE, ("fleet.yaml",), tmp_path_factory.mktemp("page"), then='echo "key is $key"')
        key = re.search(r"key is (sk-\w+)", run.outputs[-1])
        assert key
        yield Installed(run, key[1], before, removal)


def test_commands_of_the_page_lead_to_an_answered_request(installed: Installed) -> None:
    assert installed.run.answer["model"] == MODEL
    assert installed.run.answer["choices"][0]["message"]["role"] == "assistant"


def test_helm_test_asks_the_model(installed: Installed) -> None:
    assert re.search(r"Phase:\s+Succeeded", installed.run.output_of("helm test"))


def test_gateway_refuses_a_key_that_it_does_not_know(installed: Installed) -> None:
    with_errors = installed.run.command_with(ASKS).replace("wget -q ", "wget -nv ")
    code, said = installed.run.run_again(with_errors, {"key": "sk-unknown"})
    assert code != 0
    assert "Authentication Failed" in said  # what wget says of 401


def test_edit_in_place_reaches_the_replica_and_keeps_the_ray_cluster(
    cluster: KindCluster, installed: Installed
) -> None:
    before, requests = read_active_cluster(cluster), read_ongoing_requests(cluster)
    assert requests
    wanted = requests + 1
    upgrade = f'helm upgrade {MODEL} "$(rayhelm charts)"/ray-service --namespace {NAMESPACE}'
    code, said = installed.run.run_again(f"{upgrade} --values ray-service/{MODEL}.yaml --set {EDIT}={wanted}", {})
    assert code == 0, said
    wait_until(lambda: read_ongoing_requests(cluster) == wanted or None, what="the edit", timeout=600, poll=5)
    assert read_active_cluster(cluster) == before
    assert len(cluster.list_all("rayclusters.ray.io")) == 1
    said = wait_until(installed.ask, what="a response after the edit", timeout=600, poll=5)
    assert f'"model":"{MODEL}"' in said.replace(" ", "")


def test_removal_leaves_nothing_in_the_cluster(cluster: KindCluster, installed: Installed) -> None:
    installed.removal.close()
    assert cluster.list_all(OURS) == []
    assert cluster.list_all("namespaces") == installed.before
    assert cluster.list_all("pods", "--selector=app.kubernetes.io/part-of=rayhelm") == []


def read_active_cluster(cluster: KindCluster) -> str:
    service = cluster.kubectl.get("rayservice", MODEL, namespace=NAMESPACE)
    return str(service["status"]["activeServiceStatus"]["rayClusterName"])


def read_ongoing_requests(cluster: KindCluster) -> int:
    """Return the limit of the model's deployment, as Ray Serve reports it; 0 while it reports none."""
    selector = "--selector=ray.io/node-type=head"
    head = cluster.kubectl("get", "pods", selector, f"--namespace={NAMESPACE}", "--output=name").strip()
    ask = (
        'wget -q -O- --header "Authorization: Bearer $RAY_AUTH_TOKEN" localhost:8265/api/serve/applications/ || echo {}'
    )
    said = cluster.kubectl("exec", head, f"--namespace={NAMESPACE}", "--container=ray-head", "--", "bash", "-c", ask)
    deployments: dict[str, Any] = json.loads(said).get("applications", {}).get(MODEL, {}).get("deployments", {})
    engines = [each for name, each in deployments.items() if name.startswith("LLMServer")]
    return int(engines[0]["deployment_config"]["max_ongoing_requests"]) if engines else 0
