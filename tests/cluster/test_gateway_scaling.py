"""The gateway's HPA owns the number of pods: an upgrade of the release leaves it alone."""

import pytest
import yaml

from charts.kit import VALUES, over
from cluster.kit.argocd_diff import find_differences
from cluster.kit.cluster import Cluster
from cluster.kit.helm import Helm
from cluster.kit.releases import other_than
from cluster.kit.wait import eventually

SCALED = 5


@pytest.fixture
def values() -> dict[str, object]:
    found: dict[str, object] = yaml.safe_load((VALUES / "gateway" / "minimal.yaml").read_text())
    return found


def test_upgrade_keeps_the_count_that_the_hpa_chose(
    cluster: Cluster, namespace: str, each_helm: Helm, values: dict[str, object]
) -> None:
    each_helm.install("gateway", "gateway", namespace, values)
    hpa = cluster.one("HorizontalPodAutoscaler", "gateway", namespace)
    assert hpa["spec"]["scaleTargetRef"]["name"] == "gateway"
    # What the HPA controller writes: the scale subresource of its target.
    cluster.kubectl("scale", "deployment", "gateway", f"--replicas={SCALED}", f"--namespace={namespace}")
    each_helm.install("gateway", "gateway", namespace, over(values, {"limits": {"bodyBytes": 524288}}))
    deployment = cluster.one("Deployment", "gateway", namespace)
    assert deployment["spec"]["replicas"] == SCALED
    assert deployment["metadata"]["generation"] > 2, "the upgrade changed nothing else either"


@pytest.mark.parametrize(
    "autoscaling",
    [{}, {"kind": "KEDA", "targetRequestsInFlight": 5, "keda": {"serverAddress": "http://prometheus:9090"}}],
    ids=["HPA", "KEDA"],
)
def test_gateway_keeps_its_pods_when_it_gets_an_autoscaler(
    cluster: Cluster, namespace: str, each_helm: Helm, values: dict[str, object], autoscaling: dict[str, object]
) -> None:
    def upgrade(helm: Helm = each_helm, **overlay: object) -> None:
        helm.install("gateway", "gateway", namespace, over(values, overlay))

    def replicas() -> int:
        return int(cluster.one("Deployment", "gateway", namespace)["spec"]["replicas"])

    upgrade(autoscaling={"kind": "None"}, replicas=4)
    upgrade(autoscaling=autoscaling)
    assert replicas() == 4
    upgrade(autoscaling=autoscaling, limits={"bodyBytes": 524288})
    assert replicas() == 4
    cluster.kubectl("scale", "deployment", "gateway", f"--replicas={SCALED}", f"--namespace={namespace}")
    upgrade(autoscaling=autoscaling)
    assert replicas() == SCALED
    upgrade(other_than(each_helm), autoscaling=autoscaling)
    assert replicas() == SCALED


def test_argo_cd_has_no_difference_when_the_hpa_has_scaled(
    cluster: Cluster, namespace: str, helm: Helm, values: dict[str, object]
) -> None:
    helm.install("gateway", "gateway", namespace, values)
    objects = helm.manifest("gateway", namespace)
    cluster.kubectl("scale", "deployment", "gateway", f"--replicas={SCALED}", f"--namespace={namespace}")
    eventually(lambda: not find_differences(cluster, objects), "no difference")
    # A chart that renders the field would fight the HPA.
    (deployment,) = [over(item, {"spec": {"replicas": 2}}) for item in objects if item["kind"] == "Deployment"]
    assert find_differences(cluster, [deployment]) == [f"Deployment/{namespace}/gateway: spec.replicas"]


def test_hpa_finds_its_target_and_counts_its_pods(
    cluster: Cluster, namespace: str, helm: Helm, values: dict[str, object]
) -> None:
    helm.install("gateway", "gateway", namespace, values)

    def scale() -> dict[str, str]:
        conditions = (
            cluster.one("HorizontalPodAutoscaler", "gateway", namespace).get("status", {}).get("conditions", [])
        )
        return {item["type"]: item["status"] for item in conditions}

    eventually(lambda: scale().get("AbleToScale") == "True", "the HPA reading its target's scale", shows=scale)
