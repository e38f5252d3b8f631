"""Load on a cluster from within: starts a pod with `caller`, and reads what it saw."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rayhelm.advice import how_to_get_gateway_image, how_to_get_rehearsal_image
from rayhelm.errors import MissingError, RayhelmError
from rayhelm.kube.kubectl import Kubectl, KubectlError
from rayhelm.processes import wait_until
from rayhelm.rehearsal import load_client
from rayhelm.rehearsal.load_client import LoadTarget, RequestResult
from rayhelm.standin.cluster import MODELS

__all__ = ["NAMESPACE", "LoadGenerator", "LoadResult", "check_gateway_image", "check_image", "run_load"]

NAMESPACE = "rayhelm-rehearsal"
"""Where the callers live, and what a rehearsal remembers of itself."""
CLIENTS = 4
"""For each model; half of them ask for streams."""
PAUSE = 0.5
"""Seconds between two requests of one caller."""
PATIENCE = 60.0
"""Seconds for an answer, then it counts as failed."""
STARTS = 180.0
"""Seconds for a pod whose image is on the node."""


@dataclass(frozen=True)
class LoadResult:
    """What the callers saw."""

    answered: tuple[RequestResult, ...] = ()
    failed: tuple[RequestResult, ...] = ()
    first: dict[str, float] = field(default_factory=dict)
    """Seconds until a target's first answer, from the start of the callers."""

    @property
    def slowest(self) -> float:
        """Seconds."""
        return max((seen.seconds for seen in self.answered), default=0.0)

    def after(self, moment: float) -> "LoadResult":
        """Requests that ended later than `moment`, seconds since the epoch."""
        answered, failed = (
            tuple(seen for seen in kind if seen.started + seen.seconds > moment)
            for kind in (self.answered, self.failed)
        )
        return LoadResult(answered, failed, self.first)

    def __add__(self, other: "LoadResult") -> "LoadResult":
        return LoadResult(self.answered + other.answered, self.failed + other.failed, self.first | other.first)


class LoadGenerator:
    """A pod that calls."""

    def __init__(self, kubectl: Kubectl, name: str) -> None:
        self._kubectl, self._name = kubectl, name
        self.outcome = LoadResult()
        """Complete after the end."""
        self._over = False

    def read_result(self) -> LoadResult:
        """What was seen until now. Raises RayhelmError where a target never answered."""
        return _outcome(self._said())

    def wait_for_first_answers(self, patience: float) -> None:
        """Waits until every target has answered once, and the load has begun."""

        def answered() -> bool | None:
            if self.read_result().answered:
                return True
            if _ended(self._kubectl, self._name):
                raise RayhelmError(f"the callers ended before they called\n{self._said()[-2000:]}")
            return None

        wait_until(answered, what="first answers", timeout=patience + STARTS, poll=1)

    def _said(self) -> str:
        return self._kubectl("logs", self._name, f"--namespace={NAMESPACE}")

    def stop(self) -> LoadResult:
        """Requests that are under way are waited for. Once more is as good as once."""
        if self._over:
            return self.outcome
        where = f"--namespace={NAMESPACE}"
        self._kubectl("exec", self._name, where, "--", "kill", "-TERM", "1")
        done = "--for=jsonpath={.status.phase}=Succeeded"
        self._kubectl("wait", f"pod/{self._name}", where, done, f"--timeout={PATIENCE * 3:.0f}s")
        self.outcome, self._over = self.read_result(), True
        return self.outcome


@contextmanager
def run_load(
    kubectl: Kubectl,
    image: str,
    targets: Sequence[LoadTarget],
    *,
    patience: float,
    callers: int = CLIENTS,
    name: str = "callers",
) -> Iterator[LoadGenerator]:
    """Steady load while the body runs; begins when every target has answered once, within `patience` seconds."""
    told = {"targets": [asdict(target) for target in targets], "callers": callers, "pause": PAUSE}
    plan = {**told, "patience": PATIENCE, "until_first": patience}
    kubectl.apply_objects(_secret(name, plan), _pod(name, image))
    try:
        wait_until_started(kubectl, name, image)
        running = LoadGenerator(kubectl, name)
        running.wait_for_first_answers(patience)
        yield running
        running.stop()
    finally:
        gone = ("--ignore-not-found", "--grace-period=1")
        kubectl("delete", f"pod/{name}", f"secret/{name}", f"--namespace={NAMESPACE}", *gone)


def check_image(kubectl: Kubectl, image: str) -> None:
    """Whether the nodes have the image, and all that it needs is in it: told before anything larger is made of it."""
    _tried(kubectl, image, ("python", "-c", _LOOK), how_to_get_rehearsal_image())


def check_gateway_image(kubectl: Kubectl, image: str) -> None:
    """The same of the gateway's image."""
    _tried(kubectl, image, ("haproxy", "-v"), how_to_get_gateway_image())


def _tried(kubectl: Kubectl, image: str, command: Sequence[str], how: str) -> None:
    name = "image"
    kubectl.apply_objects(_secret(name, {}), _pod(name, image, command))
    try:
        wait_until_started(kubectl, name, image, how)
        if wait_until(lambda: _ended(kubectl, name), what=f"pod {name}", timeout=STARTS, poll=0.5) == "Failed":
            said = kubectl("logs", name, f"--namespace={NAMESPACE}").strip()
            raise MissingError(f"the image {image} is not one for rehearsals: {said}", how)
    finally:
        gone = ("--ignore-not-found", "--grace-period=1")
        kubectl("delete", f"pod/{name}", f"secret/{name}", f"--namespace={NAMESPACE}", *gone)


def _ended(kubectl: Kubectl, name: str) -> str | None:
    phase = str(kubectl.get("pod", name, namespace=NAMESPACE)["status"]["phase"])
    return phase if phase in ("Succeeded", "Failed") else None


def wait_until_started(kubectl: Kubectl, name: str, image: str, how: str = "") -> None:
    """Waits until the pod runs; fails at once where its image cannot be had."""

    def runs() -> bool | None:
        status = kubectl.get("pod", name, namespace=NAMESPACE)["status"]
        if status["phase"] in ("Running", "Succeeded", "Failed"):
            return True
        waiting = [entry["state"].get("waiting", {}) for entry in status.get("containerStatuses", ())]
        if any(entry.get("reason", "") in _NO_IMAGE for entry in waiting):
            raise MissingError(
                f"the nodes have no image {image}, and cannot pull it: {waiting[0].get('message', '')}".rstrip(": "),
                how or how_to_get_rehearsal_image(),
            )
        return None

    try:
        wait_until(runs, what=f"pod {name}", timeout=STARTS, poll=1)
    except KubectlError as error:
        raise RayhelmError(f"the callers' pod: {error.said}") from error


_LOOK = f"""
import importlib.util, pathlib, sys
lacks = [name for name in ("ray", "vllm", "httpx") if not importlib.util.find_spec(name)]
sys.exit(" and ".join(lacks or ["{MODELS}"]) + " is not in it" if lacks or not pathlib.Path("{MODELS}").is_dir() else 0)
"""
_CALL = ("python", "/plan/load_client.py", "/plan/plan.json")
_NO_IMAGE = ("ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName")


def _outcome(said: str) -> LoadResult:
    answered: list[RequestResult] = []
    failed: list[RequestResult] = []
    first: dict[str, float] = {}
    for line in said.splitlines():
        if not (line.startswith("{") and line.endswith("}")):
            continue  # of Python itself, or only half written
        what: dict[str, Any] = json.loads(line)
        if "silent" in what:
            raise RayhelmError(f"{what['silent']} did not answer: {what['wrong']}")
        if "first" in what:
            first[what["first"]] = what["after"]
        elif "started" in what:
            seen = RequestResult(**what)
            (failed if seen.error else answered).append(seen)
    if (answered or failed) and not first:
        raise RayhelmError("the callers saw more than the log of their pod keeps: what began it is gone")
    return LoadResult(tuple(answered), tuple(failed), first)


def _secret(name: str, plan: dict[str, Any]) -> dict[str, Any]:
    """With keys in it."""
    meta = {"name": name, "namespace": NAMESPACE}
    # The program goes along: an image may be older than this command.
    data = {"plan.json": json.dumps(plan), "load_client.py": Path(load_client.__file__).read_text()}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "stringData": data}


def _pod(name: str, image: str, command: Sequence[str] = _CALL) -> dict[str, Any]:
    container = {
        "name": "caller",
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": list(command),
        "resources": {"requests": {"cpu": "50m", "memory": "128Mi"}, "limits": {"memory": "256Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [{"name": "plan", "mountPath": "/plan", "readOnly": True}],
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": {"app.kubernetes.io/name": name}},
        "spec": {
            "restartPolicy": "Never",
            "automountServiceAccountToken": False,
            "terminationGracePeriodSeconds": 5,
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": 1000,
                "runAsGroup": 1000,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [container],
            "volumes": [{"name": "plan", "secret": {"secretName": name}}],
        },
    }
