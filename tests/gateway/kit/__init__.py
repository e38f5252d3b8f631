"""Test kit: the real HAProxy with the configuration of the chart, and upstream servers that record requests.

with start_gateway({"tenants": ..., "models": ...}) as gateway:
    gateway.request("/v1/chat/completions", {"model": "llama"}, key="acme-key")
"""

from gateway.kit.connection import Connection, Response
from gateway.kit.process import GatewayProcess, find_haproxy, hash_key, start_gateway
from gateway.kit.upstream import ReceivedRequest, Reply, Upstream, start_upstreams
from gateway.kit.values import endpoint, minimal_values, model, tenant
from gateway.kit.wait import wait_for

__all__ = [
    "Connection",
    "GatewayProcess",
    "ReceivedRequest",
    "Reply",
    "Response",
    "Upstream",
    "endpoint",
    "find_haproxy",
    "hash_key",
    "minimal_values",
    "model",
    "start_gateway",
    "start_upstreams",
    "tenant",
    "wait_for",
]
