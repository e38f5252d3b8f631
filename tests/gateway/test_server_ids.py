"""Keys of consistent hashing stay with the name of an endpoint, wherever the name sorts."""

from collections.abc import Iterable

import pytest

from gateway.kit import model, start_gateway, start_upstreams, tenant
from gateway.kit.upstream import Upstream

CHAT = "/v1/chat/completions"
TEXTS = [f"{number}: you are a helpful assistant" for number in range(400)]
NAMES = ["beta", "gamma", "delta", "epsilon", "zeta"]


@pytest.fixture(scope="module")
def upstreams():
    with start_upstreams("alpha", *NAMES) as found:
        yield {upstream.name: upstream for upstream in found}


def find_endpoints(upstreams: Iterable[Upstream]) -> list[str]:
    """Return the endpoint of each text, in a gateway with these upstreams."""
    values = {
        "tenants": {"acme": tenant("acme", ["llama"])},
        "models": {"llama": model(*upstreams, loadBalancing={"loadPercent": 1000})},
        "health": {"intervalSeconds": 3600},
    }
    with start_gateway(values) as gateway:
        gateway.wait_until_idle()
        with gateway.connect() as connection:
            bodies = ({"model": "llama", "messages": [{"role": "user", "content": text}]} for text in TEXTS)
            return [connection.request(CHAT, body).endpoint for body in bodies]


def test_added_endpoint_whose_name_sorts_first_moves_only_its_own_keys(upstreams):
    before = find_endpoints(upstreams[name] for name in NAMES)
    after = find_endpoints(upstreams.values())
    assert set(after) == set(upstreams)
    moved = [new for old, new in zip(before, after, strict=True) if old != new]
    assert set(moved) == {"alpha"}, "a key moves to the new endpoint or stays"
    assert len(moved) / len(TEXTS) < 1 / len(upstreams) + 0.02
