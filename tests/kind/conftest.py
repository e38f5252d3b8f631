"""Tests on the cluster of `make verify-kind`, which names it in RAYHELM_KIND and RAYHELM_KIND_KUBECONFIG."""

import os
from pathlib import Path

import pytest

from kind.kit.cluster import KindCluster
from testbed.node.images import small_one
from testbed.node.operator import install_operator


@pytest.fixture(scope="module")
def cluster() -> KindCluster:
    """With the KubeRay operator in a pod."""
    if not (name := os.environ.get("RAYHELM_KIND")):
        pytest.skip("no cluster of kind: make verify-kind")
    made = KindCluster(name, Path(os.environ["RAYHELM_KIND_KUBECONFIG"]))
    made.give(small_one("kuberay-operator"), "node")
    install_operator(made.kubectl)
    return made
