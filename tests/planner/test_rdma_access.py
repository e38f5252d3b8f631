"""The network of the plan and the RDMA device of the pods agree."""

import pytest

from shared.fleets import one, refused

LARGE = "{source: meta-llama/Llama-3.1-405B-Instruct, context: 16384}"
SMALL = "{source: meta-llama/Llama-3.1-8B-Instruct, context: 4096}"


def pool(network: str, resource: str = "") -> str:
    device = f", rdmaResource: {resource}" if resource else ""
    return f"{{gpu: H100-SXM-80GB, nodes: 4, gpusPerNode: 8, network: {network}{device}}}"


def test_rdma_network_is_refused_without_a_device_when_replicas_span_hosts() -> None:
    problem = refused(pool("rdma-400g"), LARGE)
    assert (problem.path, problem.line) == ("pools.pool.network", 2)
    assert "NCCL would use sockets between the hosts of `model`" in problem.message
    assert problem.fix_text.startswith("rdmaResource: rdma/hca_shared_devices_a")


def test_own_rdma_network_is_refused_without_a_device_when_replicas_span_hosts() -> None:
    own = "networks: {fabric: {bandwidth: 200Gbit/s, rdma: true}}\n"
    assert "fabric is RDMA" in refused(pool("fabric"), LARGE, own).message


def test_rdma_device_is_refused_on_a_network_without_rdma_when_replicas_span_hosts() -> None:
    problem = refused(pool("ethernet-100g", "rdma/hca"), LARGE)
    assert problem.path == "pools.pool.rdmaResource"
    assert "network ethernet-100g of the plan is not RDMA" in problem.message


@pytest.mark.parametrize("spec", [pool("rdma-400g", "rdma/hca"), pool("ethernet-100g")])
def test_replica_spans_hosts_when_network_and_device_agree(spec: str) -> None:
    assert one(spec, LARGE).nodes_per_replica > 1


@pytest.mark.parametrize("spec", [pool("rdma-400g"), pool("ethernet-100g", "rdma/hca")])
def test_replica_on_one_host_needs_no_rdma_device(spec: str) -> None:
    assert one(spec, SMALL).nodes_per_replica == 1
