"""Two models of one service: two applications with a path each, on one Ray cluster."""

from collections.abc import Iterator

import pytest

from pods.kit.cluster import Cluster
from pods.kit.service import Service, given, serving, values
from rayhelm.run.rehearsal.load import run_load

MODELS = {"talks": ("chat", "LlamaForCausalLM"), "finds": ("embed", "BertModel")}

pytestmark = pytest.mark.timeout(1800)


@pytest.fixture(scope="module")
def service(cluster: Cluster) -> Iterator[Service]:
    with serving(cluster, "both", values(cluster, {}, MODELS)) as found:
        found.session.wait_until_ready(found.release)
        yield found


def test_each_answers_under_its_own_path(service: Service) -> None:
    targets = [service.target(name, task) for name, (task, _) in MODELS.items()]
    with run_load(
        service.session.kubectl, given(service.cluster), targets, timeout=120, clients=2, name="both"
    ) as seen:
        service.session.wait(
            lambda: all(
                len([each for each in seen.read_result().answered if each.target == name]) > 5 for name in MODELS
            ),
            "answers of both",
            service.release.namespace,
        )
    assert seen.outcome.failed == ()


def test_helm_asks_both(service: Service) -> None:
    service.session.run_helm("test", service.release.name, f"--namespace={service.release.namespace}", "--timeout=5m")
    (asks,) = service.session.kubectl.get(
        "pods", "--selector=rayhelm.dev/role=test", namespace=service.release.namespace
    )["items"]
    assert {container["command"][-1] for container in asks["spec"]["containers"]} == {
        f"http://{service.host}:8000/talks/v1/completions",
        f"http://{service.host}:8000/finds/v1/embeddings",
    }
