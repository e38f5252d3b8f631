"""Relabeling as Prometheus does it, as far as it decides which pods are scraped and with which labels."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

__all__ = ["relabel", "sanitize"]

Labels = dict[str, str]


def sanitize(label: str) -> str:
    """Return the name that Prometheus gives a label of Kubernetes: `rayhelm_dev_tenant` for `rayhelm.dev/tenant`."""
    return re.sub(r"[^a-zA-Z0-9_]", "_", label)


def relabel(labels: Mapping[str, str], rules: Iterable[Mapping[str, Any]]) -> Labels | None:
    """Apply rules, in the words of prometheus.yml or of a ScrapeConfig. Return None for a target that is dropped.

    An action that does not change what lint asks, and a regular expression that Python cannot read, have no effect."""
    found = dict(labels)
    for rule in rules:
        try:
            if not _apply(found, rule):
                return None
        except (re.error, IndexError):
            continue
    return found


def _apply(labels: Labels, rule: Mapping[str, Any]) -> bool:
    """Apply one rule; False if it drops the target."""
    action = str(rule.get("action", "replace")).lower()
    sources = _get(rule, "source_labels", "sourceLabels") or []
    value = str(rule.get("separator", ";")).join(labels.get(name, "") for name in sources)
    pattern = re.compile(str(rule.get("regex", "(.*)")), re.DOTALL)
    match = pattern.fullmatch(value)
    if action in ("keep", "drop"):
        return bool(match) is (action == "keep")
    replacement = re.sub(r"\$\{?(\w+)\}?", r"\\g<\1>", str(rule.get("replacement", "$1")))
    target = str(_get(rule, "target_label", "targetLabel") or "")
    if action == "replace" and match and target:
        labels[target] = match.expand(replacement)
    elif action == "labelmap":
        for name in list(labels):
            if mapped := pattern.fullmatch(name):
                labels[mapped.expand(replacement)] = labels[name]
    elif action in ("labeldrop", "labelkeep"):
        for name in [name for name in labels if bool(pattern.fullmatch(name)) is (action == "labeldrop")]:
            del labels[name]
    return True


def _get(rule: Mapping[str, Any], *names: str) -> Any:
    return next((rule[name] for name in names if name in rule), None)
