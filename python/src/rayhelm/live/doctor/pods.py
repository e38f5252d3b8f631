"""Why a pod does not run, in one sentence and one command."""

from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

import yaml

from rayhelm.facts.closed import Closed
from rayhelm.live.doctor.facts import find_condition

__all__ = ["PodProblem", "find_pod_problem", "is_selected"]


class _Reason(Closed):
    cause: str
    fix: str


class PodProblem(NamedTuple):
    """The reason why one pod does not run."""

    evidence: str
    cause: str
    fix: str


def find_pod_problem(pod: dict[str, Any]) -> PodProblem | None:
    """Return why a pod does not run; None if it runs, has ended well, or still starts without an error."""
    for reason, message in _list_reasons(pod):
        if known := _load_reasons().get(reason):
            metadata = pod["metadata"]
            fix = known.fix.replace("$POD", metadata["name"]).replace("$NAMESPACE", metadata.get("namespace", ""))
            return PodProblem(f"{metadata['name']}: {reason}: {message}".rstrip(": "), known.cause, fix)
    return None


def is_selected(selector: dict[str, Any], labels: dict[str, str]) -> bool:
    """Return whether a label selector selects labels."""
    if any(labels.get(key) != value for key, value in (selector.get("matchLabels") or {}).items()):
        return False
    return all(_matches(rule, labels) for rule in selector.get("matchExpressions") or [])


def _matches(rule: dict[str, Any], labels: dict[str, str]) -> bool:
    value, values = labels.get(rule["key"]), rule.get("values") or []
    answers = {
        "In": value in values,
        "NotIn": value not in values,
        "Exists": value is not None,
        "DoesNotExist": value is None,
    }
    return answers.get(rule["operator"], False)


def _list_reasons(pod: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Reasons with their messages, the most specific first."""
    status = pod.get("status", {})
    for container in (*status.get("initContainerStatuses", []), *status.get("containerStatuses", [])):
        state = container.get("state") or {}
        waiting, ended = state.get("waiting"), state.get("terminated")
        last = (container.get("lastState") or {}).get("terminated") or {}
        if waiting and last.get("reason") == "OOMKilled":
            yield "OOMKilled", f"container {container['name']}, {container.get('restartCount', 0)} restarts"
        if waiting:
            yield waiting.get("reason", ""), waiting.get("message", "")
        if ended and ended.get("exitCode"):
            yield ended.get("reason", ""), f"container {container['name']} ended with {ended['exitCode']}"
    if status.get("phase") == "Failed":
        yield status.get("reason", ""), status.get("message", "")
    scheduled = find_condition(pod, "PodScheduled")
    if scheduled.get("status") == "False":
        yield scheduled.get("reason", ""), scheduled.get("message", "")


@cache
def _load_reasons() -> dict[str, _Reason]:
    text = files("rayhelm").joinpath("data/doctor/pod-reasons.yaml").read_bytes()
    return {name: _Reason.model_validate(item) for name, item in yaml.safe_load(text).items()}
