"""Names of network interfaces that a pod can have are accepted."""

import pytest

from charts.each_chart import CHARTS, Values

(RAY_SERVICE,) = (chart for chart in CHARTS if str(chart) == "ray-service")
MULTUS = {"k8s.v1.cni.cncf.io/networks": "fast-network"}


@pytest.mark.parametrize(
    "group",
    [
        {"networkInterface": "eth1"},
        {"env": {"NCCL_SOCKET_IFNAME": "=eth0,net1", "GLOO_SOCKET_IFNAME": "eth0"}},
        {"env": {"NCCL_SOCKET_IFNAME": "^docker0,lo"}},
        {"networkInterface": "fast0", "podAnnotations": MULTUS},
    ],
    ids=["second", "list", "excluded", "multus"],
)
def test_interfaces_of_pods_are_accepted(group: Values) -> None:
    assert RAY_SERVICE.broken({"workerGroups": {"gpu": group}}) != "host-interface"
