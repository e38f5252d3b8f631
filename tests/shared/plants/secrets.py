"""Faults that the check `secrets` finds."""

import base64
from typing import Any

from rayhelm.live.cluster.kinds import SECRETS
from shared.plant import Plant


def _keys(text: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "gateway-keys-lab", "namespace": "gateway"},
        "data": {"keys": base64.b64encode(text.encode()).decode()},
    }


PLANTS = (
    Plant(
        "The Secret with a tenant's keys does not exist",
        "it does not exist",
        "Secret gateway/gateway-keys-lab",
        delete=((SECRETS, "gateway", "gateway-keys-lab"),),
        is_only_recorded=True,
    ),
    Plant(
        "A file of keys has no valid line",
        "key keys has 1 lines, and none is `SHA256 NAME",
        "Secret gateway/gateway-keys-lab",
        create=(_keys("sk-the-key-itself ci\n"),),
    ),
)
