"""Addresses of Redis in the fleet file."""

import pytest

from rayhelm.fleet.redis import Redis
from shared.small_fleet import SMALL, read, the_problem


def redis_of(text: str) -> Redis:
    redis = read(f"{SMALL}clusters: {{main: {{redis: {{{text}}}}}}}\n").clusters["main"].redis
    assert redis
    return redis


@pytest.mark.parametrize(
    ("text", "host", "port", "namespace", "blocks"),
    [
        ("address: redis.state:6380", "redis.state", 6380, "state", ()),
        ("address: 'rediss://redis.state.svc.cluster.local:6379'", "redis.state.svc.cluster.local", 6379, "state", ()),
        ("address: redis:6379, namespace: state", "redis", 6379, "state", ()),
        ("address: 'cache.example.com:6379', cidrs: [10.1.0.0/24]", "cache.example.com", 6379, "", ("10.1.0.0/24",)),
        ("address: 10.1.2.3:6379", "10.1.2.3", 6379, "", ("10.1.2.3/32",)),
        ("address: 10.1.2.3:6379, namespace: state", "10.1.2.3", 6379, "state", ()),
        ("address: '[fd00::1]:6379'", "fd00::1", 6379, "", ("fd00::1/128",)),
    ],
)
def test_redis_location_is_read_from_its_address(
    text: str, host: str, port: int, namespace: str, blocks: tuple[str, ...]
) -> None:
    redis = redis_of(text)
    assert (redis.host, redis.port, redis.peer_namespace, redis.blocks) == (host, port, namespace, blocks)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("address: redis.state", "not the address of a Redis"),
        ("address: 'redis.state:0'", "not the address of a Redis"),
        ("address: 'redis.state:65536'", "not the address of a Redis"),
        ("address: 'redis.state:abc'", "not the address of a Redis"),
        ("address: 'http://redis.state:6379'", "not the address of a Redis"),
        ("address: 'fd00::1:6379'", "not the address of a Redis"),
        ("address: '[fd00:::1]:6379'", "not the address of a Redis"),
        ("address: '10.0.0.300:6379'", "not the address of a Redis"),
        ("address: 're_dis.state:6379'", "not the address of a Redis"),
        ("address: redis:6379", "the NetworkPolicy cannot allow egress"),
        ("address: cache.example.com:6379", "the NetworkPolicy cannot allow egress"),
        ("address: redis.state:6379, namespace: state, cidrs: [10.0.0.1/32]", "`namespace` is for"),
        ("address: cache.example.com:6379, cidrs: [10.0.0.1/8]", "not a CIDR"),
    ],
)
def test_redis_without_location_is_refused(text: str, says: str) -> None:
    problem = the_problem(f"{SMALL}clusters: {{main: {{redis: {{{text}}}}}}}\n")
    assert says in problem.message
    assert str(problem.fix)
    assert problem.path.startswith("clusters.main.redis")
