"""Blocks of addresses in values: what the API server would refuse in a NetworkPolicy, Helm refuses already."""

from ipaddress import ip_interface, ip_network

import pytest
from pydantic import TypeAdapter, ValidationError

from charts.each_chart import CHARTS, Chart
from rayhelm.deploy.values.common.base import Cidr

READ = TypeAdapter(Cidr)
GOOD = [
    "0.0.0.0/0",
    "10.0.0.1/32",
    "192.168.0.0/16",
    "255.255.255.255/9",
    "::/0",
    "fd00::/8",
    "::1/128",
    "::ffff:1.2.3.4/96",
]
BAD = [
    *("300.1.1.1/24", "256.0.0.0/8", "10.0.0.0/33", "10.0.0.0/99", "10.0.0/8", "10.0.0.0.0/8", "010.0.0.0/8"),
    *(
        "10.0.0.0",
        "10.0.0.0/",
        "10.0.0.0/08",
        "::/129",
        "fd00::",
        "fg00::/8",
        "10.0.0.0/8 ",
        "example.com/32",
        "/8",
        "",
    ),
]


@pytest.mark.parametrize("text", GOOD)
def test_block_follows_python_semantics(text: str) -> None:
    assert ip_interface(READ.validate_python(text))


@pytest.mark.parametrize("text", BAD)
def test_what_is_none_is_refused(text: str) -> None:
    with pytest.raises(ValidationError):
        READ.validate_python(text)


def test_every_octet_and_every_prefix_is_one() -> None:
    for number in range(256):
        READ.validate_python(f"{number}.{number}.{number}.{number}/32")
    for prefix in range(33):
        assert READ.validate_python(str(ip_network(f"0.0.0.0/{prefix}")))
    for prefix in range(129):
        assert READ.validate_python(str(ip_network(f"::/{prefix}")))


@pytest.mark.parametrize("chart", [chart for chart in CHARTS if chart.name not in ("argocd", "platform")], ids=str)
def test_helm_refuses_one_by_the_schema(chart: Chart) -> None:
    assert chart.broken({"networkPolicy": {"dns": {"cidrs": ["10.20.0.0/16"]}}}) == ""
    assert chart.broken({"networkPolicy": {"dns": {"cidrs": ["300.1.1.1/24"]}}}) == "schema"
