"""Weights in an OCI image: the API server takes the volume in the pods that KubeRay makes, under Pod Security
`restricted`. Nothing pulls the image here: the nodes are simulated."""

from collections.abc import Iterator

import pytest

from charts.kit import example, over
from cluster.kit.cluster import Cluster
from cluster.kit.helm import Helm
from cluster.kit.wait import eventually
from testbed.nodes import cpu_nodes

REFERENCE = f"registry.example/models/qwen@sha256:{'4f' * 32}"


@pytest.fixture(scope="module", autouse=True)
def _machines(cluster: Cluster) -> Iterator[None]:
    with cluster.machines(cpu_nodes(2)):
        yield


def test_workers_mount_the_image_and_the_head_does_not(cluster: Cluster, namespace: str, helm: Helm) -> None:
    images = {"weights": {"images": {"qwen": {"reference": REFERENCE}}}}
    helm.install("ray-service", "chat", namespace, over(kuberay(cluster), images))
    cluster.becomes_ready("chat", namespace)
    pods = {kind: cluster.all("Pod", namespace, {"ray.io/node-type": kind}) for kind in ("head", "worker")}
    volumes = {
        kind: [volume["image"] for pod in found for volume in pod["spec"]["volumes"] if "image" in volume]
        for kind, found in pods.items()
    }
    assert volumes == {
        "head": [],
        "worker": [{"reference": REFERENCE, "pullPolicy": "IfNotPresent"}] * len(pods["worker"]),
    }
    (mount,) = [
        mount
        for mount in pods["worker"][0]["spec"]["containers"][0]["volumeMounts"]
        if mount["mountPath"] == "/model-images/qwen"
    ]
    assert mount["readOnly"]


def test_another_digest_starts_a_second_ray_cluster(cluster: Cluster, namespace: str, helm: Helm) -> None:
    images = {"weights": {"images": {"qwen": {"reference": REFERENCE}}}}
    helm.install("ray-service", "chat", namespace, over(kuberay(cluster), images))
    cluster.becomes_ready("chat", namespace)
    (first,) = cluster.all("RayCluster", namespace)
    images["weights"]["images"]["qwen"]["reference"] = REFERENCE.replace("4f", "5f")
    helm.install("ray-service", "chat", namespace, over(kuberay(cluster), images))
    assert eventually(
        lambda: [
            item
            for item in cluster.all("RayCluster", namespace)
            if item["metadata"]["name"] != first["metadata"]["name"]
        ],
        "a second RayCluster",
    )


def kuberay(cluster: Cluster) -> dict[str, object]:
    return dict(over(example("stand-in"), {"kuberay": {"version": cluster.place.kuberay}}))
