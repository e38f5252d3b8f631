"""Requests at risk and time of a change, from the plan and from measured failures."""

from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files

import yaml

from rayhelm.check.diff.report import ModelReport, ReleaseEffect
from rayhelm.facts.closed import Closed

__all__ = ["MeasuredFailure", "describe_requests", "estimate_seconds", "load_measured_failures"]

BATCH = 0.2
"""Part of the replicas of a deployment that Ray Serve restarts at a time; at least one (`_rollout_size` of
ray/serve/_private/deployment_state.py, Ray 2.60)."""


class MeasuredFailure(Closed):
    """A row of the measured failures."""

    event: str
    workers: int
    answered: int
    failed: int
    slowest_seconds: float

    def __str__(self) -> str:
        total = self.answered + self.failed
        return f"measured ({self.event}; {self.workers} workers): {self.failed} of {total:,} requests failed"


@cache
def load_measured_failures() -> dict[str, MeasuredFailure]:
    data = yaml.safe_load(files("rayhelm").joinpath("data/kuberay/failures.yaml").read_bytes())
    return {name: MeasuredFailure.model_validate(row) for name, row in data.items()}


def describe_requests(
    effect: ReleaseEffect,
    models: Sequence[ModelReport],
    replicas: Mapping[str, int],
    shared_names: Mapping[str, str] | None = None,
) -> tuple[str, bool]:
    """Return the requests at risk as text, and whether new requests can fail. `replicas`: before the change, by model.
    `shared_names`: names that clients send, by model, of models whose name others continue to serve."""
    rows = load_measured_failures()
    removed = [each for each in models if each.change == "removed"]
    if effect in ("uninstall", "suspended") or removed:
        lost = [each for each in models if each.change in ("removed", "loaded")] or models
        names = {shared_names[each.model]: None for each in lost if shared_names and each.model in shared_names}
        others = " and ".join(f"`{name}`" for name in names)
        shared = f"requests in flight on these replicas fail; the others of {others} take new ones"
        lost = [each for each in lost if each.model not in (shared_names or {})]
        if names and not lost:
            return shared, False
        failed = f"every request of {_join(lost)} fails{_sum_traffic(lost)}"
        return (f"{failed}; {shared}" if names else failed), bool(lost)
    restarted = [each for each in models if each.change == "restarted"]
    alone = [each for each in restarted if replicas.get(each.model, 1) <= 1]
    if alone:
        wait = max((each.load_seconds or 0 for each in alone), default=0)
        longest = f" up to {wait:.0f} s" if wait else ""
        return (
            f"while one replica of {_join(alone)} runs, requests wait{longest} for its restart{_sum_traffic(alone)},"
            " and some may get 503;"
            f" {rows['single model changed']}, the slowest took {rows['single model changed'].slowest_seconds:g} s",
            True,
        )
    if restarted:
        return f"none expected: Serve restarts replicas one after the other; {rows['model changed']}", False
    if effect == "new cluster":
        return f"none expected; {rows['cluster changed']}", False
    return "", False


def estimate_seconds(
    effect: ReleaseEffect, models: Sequence[ModelReport], replicas: Mapping[str, int], deletion_delay: float
) -> tuple[float | None, str]:
    """Return the time until the change is complete, and what it is based on."""
    loaded = [each for each in models if each.change in ("loaded", "added", "restarted")]
    if not loaded:
        return (0, "no model is loaded") if effect in ("nothing", "objects only", "replicas") else (None, "")
    if any(each.load_seconds is None for each in loaded):
        return None, "the load time of a model is not known without its fleet file"
    basis = "load times of the plan (an assumption); the start of pods and the pull of images come on top"
    seconds = max((each.load_seconds or 0) * _count_batches(each, replicas) for each in loaded)
    if effect == "new cluster":
        return seconds + deletion_delay, f"{basis}; {deletion_delay:g} s until the old cluster is deleted are included"
    return seconds, basis


def _count_batches(model: ModelReport, replicas: Mapping[str, int]) -> int:
    if model.change != "restarted":
        return 1
    count = max(replicas.get(model.model, 1), 1)
    size = max(int(BATCH * count), 1)
    return -(-count // size)


def _join(models: Sequence[ModelReport]) -> str:
    return ", ".join(each.model for each in models) or "the service"


def _sum_traffic(models: Sequence[ModelReport]) -> str:
    known = [each.requests_per_second for each in models if each.requests_per_second]
    return f" (planned: {sum(known):g} requests/s)" if known else ""
