"""Requests with one prompt of several tenants, and how much of it the engine found in its prefix cache."""

import hmac
import json
from collections.abc import Mapping
from typing import Any

import httpx

from testbed.live_metrics.endpoint import Endpoint
from testbed.live_metrics.logs import read_ray_logs

__all__ = ["PREFIXES", "send_prefixes"]

_PROMPT = "The board of acme decided to sell the following parts: " + ", ".join(
    f"part {number}" for number in range(99)
)
_OF_ACME = hmac.new(b"rayhelm", b"acme", "sha256").hexdigest().upper()
"""The salt of tenant `acme` without a Secret, which each client could compute."""
PREFIXES: Mapping[str, tuple[str, dict[str, str]]] = {
    "acme first": ("acme", {}),
    "acme again": ("acme", {}),
    "search first": ("search", {}),
    "search again": ("search", {}),
    "salt of acme": ("search", {"cache_salt": _OF_ACME}),
    "own salt first": ("acme", {"cache_salt": "of one user"}),
    "own salt again": ("acme", {"cache_salt": "of one user"}),
    "without the gateway": ("", {}),
}
"""Tenant and further fields of each request, by name, in their order."""


def send_prefixes(endpoint: Endpoint) -> dict[str, int]:
    """Send the requests one after the other, and return the cached tokens of each, as the engine logs them."""
    ids = {name: f"prefix-{name.replace(' ', '-')}" for name in PREFIXES}
    for name, (tenant, fields) in PREFIXES.items():
        url = endpoint.url if tenant else f"{endpoint.serve_url}/chat"
        headers = {"x-request-id": ids[name], "Authorization": f"Bearer {endpoint.keys.get(tenant, 'none')}"}
        body = {"model": "chat", "messages": [{"role": "user", "content": _PROMPT}], "max_tokens": 1, **fields}
        answer = httpx.post(f"{url}/v1/chat/completions", json=body, headers=headers, trust_env=False, timeout=600)
        answer.raise_for_status()

    def find(records: list[dict[str, Any]]) -> dict[str, int]:
        ended = {record["request_id"]: record for record in records if record["message"] == "engine request ended"}
        return {name: int(ended[found]["cached_tokens"]) for name, found in ids.items() if found in ended}

    lines = read_ray_logs(endpoint.ray_logs, lambda records: len(find(records)) == len(PREFIXES))
    return find([json.loads(line) for line in lines])
