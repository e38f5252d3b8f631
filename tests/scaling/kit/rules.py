"""The adapter's rules as the chart platform renders them, and what the adapter makes of them for one client."""

from typing import Any

import yaml

from charts import kit

__all__ = ["GATEWAY", "SERVICES", "adapter_config", "asked", "numbers"]

Object = dict[str, Any]

SERVICES = {"services": {"chat": {"namespace": "search"}, "audio": {"namespace": "models"}}}
GATEWAY = {"gateways": {"gateway": {"namespace": "gateway"}}}


def adapter_config(metrics: Object) -> Object:
    """The adapter's own file."""
    objects = kit.rendered(
        {"metrics": metrics},
        chart="platform",
        base="platform/minimal",
        release="platform",
        namespace="rayhelm-system",
    )
    config = kit.only(objects, "ConfigMap", "platform-metrics")["data"]["config.yaml"]
    found: Object = yaml.safe_load(config)
    return found


def numbers(metrics: Object) -> dict[str, str]:
    """Queries of all rules by the name of their number, as templates of the adapter."""
    config = adapter_config(metrics)
    return {rule["name"]["as"]: rule["metricsQuery"] for rule in config["rules"] + config["externalRules"]}


def asked(query: str, group_by: str = "pod", **labels: str) -> str:
    """What Prometheus is asked for objects with these labels."""
    matchers = ",".join(f'{label}="{value}"' for label, value in labels.items())
    return query.replace("<<.LabelMatchers>>", matchers).replace("<<.GroupBy>>", group_by)
