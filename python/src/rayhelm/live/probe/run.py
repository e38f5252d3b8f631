"""Run the Jobs of a pool, and read their results from the status of the pods."""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

from pydantic import ValidationError

from rayhelm.fleet.measurements import NodeMeasurement, PairMeasurement, PoolMeasurement
from rayhelm.live.cluster.kinds import JOBS, PODS
from rayhelm.live.cluster.reader import AbsentError
from rayhelm.live.cluster.writer import ClusterWriter
from rayhelm.live.probe.jobs import PoolTarget, build_node_job, build_pair_job
from rayhelm.live.probe.nodes import FoundNode

__all__ = ["JobFailure", "PoolProbe", "list_pairs", "list_rounds"]

Object = dict[str, Any]
POLL_S = 1.0


class JobFailure(Exception):
    """A Job gave no result; the text says why."""


def list_pairs(nodes: Sequence[str]) -> list[tuple[str, str]]:
    """Return each node with the next one: every node is in at least one pair."""
    return list(pairwise(nodes))


def list_rounds(pairs: Sequence[tuple[str, str]]) -> Iterator[list[tuple[str, str]]]:
    """Yield pairs that can be measured at the same time, because they have no node in common."""
    yield from (part for part in (list(pairs[::2]), list(pairs[1::2])) if part)


class PoolProbe:
    """Measures one pool."""

    def __init__(
        self,
        cluster: ClusterWriter,
        target: PoolTarget,
        timeout_s: float,
        show: Callable[[str], None] = lambda text: None,
    ) -> None:
        """`timeout_s`: seconds for a Job, from its creation to its result."""
        self._cluster, self._target = cluster, target
        self._timeout_s, self._show = timeout_s, show
        self.skipped: dict[str, str] = {}
        """Reason by node or pair that was not measured."""
        self._torch = ""

    def measure(self, nodes: Sequence[FoundNode]) -> PoolMeasurement:
        """Measure all nodes at the same time, then the pairs in rounds. What fails is in `skipped`."""
        self.skipped = {node.name: node.why_not for node in nodes if node.why_not}
        usable = [node for node in nodes if not node.why_not]
        measured = self._measure_nodes(usable)
        pairs: list[PairMeasurement] = []
        for part in list_rounds(list_pairs([node.name for node in usable if node.name not in self.skipped])):
            pairs += self.measure_pairs(part)
        return PoolMeasurement(
            gpu=self._target.gpu_name,
            measured_at=datetime.now(UTC).replace(microsecond=0),
            torch=self._torch,
            nodes=tuple(measured),
            pairs=tuple(pairs),
            skipped=self.skipped,
        )

    def _measure_nodes(self, nodes: Sequence[FoundNode]) -> list[NodeMeasurement]:
        self._show(f"pool {self._target.name}: measuring {len(nodes)} nodes")
        jobs = {node.name: build_node_job(self._target, node.name, node.gpus, round(self._timeout_s)) for node in nodes}
        found = []
        for name, results in self._run(jobs):
            try:
                found.append(NodeMeasurement.model_validate({"node": name, **self._strip(results[0])}))
            except ValidationError as error:
                self.skipped[name] = _describe(error)
        return found

    def measure_pairs(self, pairs: Sequence[tuple[str, str]]) -> list[PairMeasurement]:
        """Measure pairs at the same time."""
        self._show(f"pool {self._target.name}: measuring {len(pairs)} pairs of nodes")
        jobs = {"+".join(pair): build_pair_job(self._target, pair, round(self._timeout_s)) for pair in pairs}
        found = []
        for name, results in self._run(jobs):
            plain = [self._strip(result) for result in results]
            # Both ends measured the same messages: a busy node is known to its own end only.
            busy = "; ".join(dict.fromkeys(str(each["busy"]) for each in plain if each.get("busy")))
            try:
                measured = {**plain[0], "nodes": tuple(name.split("+")), "busy": busy}
                found.append(PairMeasurement.model_validate(measured))
            except ValidationError as error:
                self.skipped[name] = _describe(error)
        return found

    def _strip(self, result: Object) -> Object:
        self._torch = str(result.get("torch", self._torch))
        return {key: value for key, value in result.items() if key not in ("torch", "rank")}

    def _run(self, jobs: dict[str, Object]) -> Iterator[tuple[str, list[Object]]]:
        """Create Jobs, wait for all, and yield their results. The Jobs are deleted in any case."""
        created: list[str] = []
        try:
            for job in jobs.values():
                self._cluster.create(JOBS, job)
                created.append(job["metadata"]["name"])
            until = time.monotonic() + self._timeout_s
            for key, job in jobs.items():
                try:
                    yield key, self._wait(job, until)
                except JobFailure as failure:
                    self.skipped[key] = str(failure)
        finally:
            for name in created:
                self._cluster.delete(JOBS, name, self._target.namespace)

    def _wait(self, job: Object, until: float) -> list[Object]:
        name, wanted = job["metadata"]["name"], job["spec"]["completions"]
        while True:
            pods = self._cluster.list(PODS, self._target.namespace, labels=f"rayhelm.dev/probe-job={name}")
            results = [_read_result(pod) for pod in pods]
            if len(done := [result for result in results if result is not None]) == wanted:
                return done
            self._check(name, pods)
            if time.monotonic() > until:
                raise JobFailure(f"no result within {self._timeout_s:.0f} s: {_explain_wait(pods)}")
            time.sleep(POLL_S)

    def _check(self, name: str, pods: Sequence[Object]) -> None:
        """Raise JobFailure if the Job is gone, or failed without a pod that says why."""
        try:
            status = self._cluster.get(JOBS, name, self._target.namespace).get("status") or {}
        except AbsentError:
            raise JobFailure("its Job was deleted during the measurement") from None
        failed = next((each for each in status.get("conditions") or [] if each["type"] == "Failed"), None)
        if failed and not any(_is_ended(pod) for pod in pods):
            raise JobFailure(f"its Job failed: {failed.get('message', failed.get('reason', ''))}")


def _read_result(pod: Object) -> Object | None:
    """Return the result of a pod that ended; None while it runs. Raises JobFailure with the reason of a failure."""
    if not _is_ended(pod):
        return None
    statuses = (pod.get("status") or {}).get("containerStatuses") or []
    ended = (statuses[0].get("state") or {}).get("terminated") or {} if statuses else {}
    text = str(ended.get("message") or "")
    try:
        result = json.loads(text)
    except ValueError:
        result = None
    if isinstance(result, dict) and "error" not in result and ended.get("exitCode") == 0:
        return result
    if isinstance(result, dict) and "error" in result:
        raise JobFailure(f"the measurement failed: {result['error']}")
    reason = ended.get("reason") or (pod.get("status") or {}).get("reason") or "no reason given"
    if ended.get("exitCode") == 0:
        raise JobFailure(f"the result is not complete: {text[:80]!r}")
    raise JobFailure(f"its pod ended with {reason}, exit code {ended.get('exitCode')}: {text[-200:]}".rstrip(": "))


def _is_ended(pod: Object) -> bool:
    return (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")


def _explain_wait(pods: Sequence[Object]) -> str:
    """Return what the pods wait for: a busy node, an image, or the program."""
    if not pods:
        return (
            "its Job has no pod: a ResourceQuota, an admission policy, or a PriorityClass that does not exist"
            " (--priority-class) refuses it"
        )
    for pod in pods:
        status = pod.get("status") or {}
        for condition in status.get("conditions") or []:
            if condition["type"] == "PodScheduled" and condition["status"] == "False":
                return (
                    f"the node was too busy, or does not take the pod ({condition.get('message', '')}); measure it"
                    " when it is free, or its network only: --cpu"
                )
        for container in status.get("containerStatuses") or []:
            if waiting := (container.get("state") or {}).get("waiting"):
                return f"its pod waits: {waiting.get('reason', '')} {waiting.get('message', '')}".strip()
    return "the program still runs; give it more time: --timeout MINUTES"


def _describe(error: ValidationError) -> str:
    first = error.errors(include_url=False)[0]
    return f"the result is malformed: {'.'.join(map(str, first['loc']))}: {first['msg']}"
