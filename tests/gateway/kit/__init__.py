"""Drives the real HAProxy with the chart's own configuration, in front of real servers that say what they were asked.

with gateway({"tenants": ..., "models": ...}) as door:
    door.ask("/v1/chat/completions", {"model": "llama"}, key="acme-key")
"""

from gateway.kit.door import Door, gateway, haproxy, hashed
from gateway.kit.raw import Answer, Line
from gateway.kit.site import Asked, Reply, Site, sites
from gateway.kit.values import endpoint, model, smallest, tenant
from gateway.kit.wait import eventually

__all__ = [
    "Answer",
    "Asked",
    "Door",
    "Line",
    "Reply",
    "Site",
    "endpoint",
    "eventually",
    "gateway",
    "haproxy",
    "hashed",
    "model",
    "sites",
    "smallest",
    "tenant",
]
