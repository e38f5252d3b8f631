"""Rules of the chart platform for one service, one model and one gateway."""

import json
from functools import cache
from typing import Any

import yaml

from charts import kit

__all__ = ["VALUES", "rule_files", "rules_of"]

Object = dict[str, Any]

VALUES: Object = {
    "metrics": {"services": {"chat": {"namespace": "search"}}, "gateways": {"gateway": {"namespace": "gateway"}}},
    "prometheusRules": {
        "kind": "ConfigMap",
        "runbookUrl": "https://example.com/runbooks",
        "watchdog": True,
        "models": {
            "llama": {
                "service": "chat",
                "gateway": "gateway",
                "slo": {"ttftSeconds": 0.6, "tpotSeconds": 0.05},
                "plan": {"replicas": 2},
                "replicaDollarsPerHour": 2.5,
            }
        },
        "gpuPrices": {"chat": {"gpu": 2.5}},
        "keysSecrets": {"apps": {"namespace": "gateway", "secretName": "gateway-keys-apps"}},
        "redisNamespaces": ["ray-state"],
    },
}


def rule_files(overlay: Object | None = None) -> dict[str, str]:
    """Rule files by name."""
    return dict(_rule_files(json.dumps(kit.over(VALUES, overlay or {}))))


@cache
def _rule_files(values: str) -> dict[str, str]:
    objects = kit.rendered(
        json.loads(values), chart="platform", base="platform/minimal", release="platform", namespace="rayhelm-system"
    )
    found: dict[str, str] = kit.only(objects, "ConfigMap", "platform-rules")["data"]
    return found


def rules_of(overlay: Object | None = None) -> list[Object]:
    """Every rule, in the order of the files."""
    groups = [group for text in rule_files(overlay).values() for group in yaml.safe_load(text)["groups"]]
    return [rule for group in groups for rule in group["rules"]]
