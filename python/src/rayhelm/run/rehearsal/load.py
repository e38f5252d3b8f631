"""Run a load generator in a pod of the cluster, and read its results."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rayhelm.deploy.advice import how_to_get_gateway_image, how_to_get_rehearsal_image
from rayhelm.errors import Fix, MissingError, RayhelmError
from rayhelm.live.cluster.kubectl import Kubectl, KubectlError
from rayhelm.processes import wait_until
from rayhelm.run.rehearsal import load_client
from rayhelm.run.rehearsal.load_client import LoadTarget, RequestResult
from rayhelm.run.standin.cluster import MODELS

__all__ = ["NAMESPACE", "LoadGenerator", "LoadResult", "check_gateway_image", "check_image", "run_load"]

NAMESPACE = "rayhelm-rehearsal"
"""Namespace of the load generators and of the rehearsal's record."""
CLIENTS = 4
"""Clients per model; half of those of a chat model request streams."""
PAUSE = 0.5
"""Seconds between two requests of a client."""
REQUEST_TIMEOUT = 60.0
"""Seconds for an answer; then the request has failed."""
POD_TIMEOUT = 180.0
"""Seconds for a pod to start if its image is on the node."""


@dataclass(frozen=True)
class LoadResult:
    """Results of all requests."""

    answered: tuple[RequestResult, ...] = ()
    failed: tuple[RequestResult, ...] = ()
    first: dict[str, float] = field(default_factory=dict)
    """Seconds from the start of the load generator to each target's first answer."""

    @property
    def slowest(self) -> float:
        """Seconds."""
        return max((result.seconds for result in self.answered), default=0.0)

    def after(self, moment: float) -> "LoadResult":
        """Return the requests that ended later than `moment`, in seconds since the epoch."""
        answered, failed = (
            tuple(result for result in kind if result.started + result.seconds > moment)
            for kind in (self.answered, self.failed)
        )
        return LoadResult(answered, failed, self.first)

    def __add__(self, other: "LoadResult") -> "LoadResult":
        return LoadResult(self.answered + other.answered, self.failed + other.failed, self.first | other.first)


class LoadGenerator:
    """A pod that sends requests."""

    def __init__(self, kubectl: Kubectl, name: str) -> None:
        self._kubectl, self._name = kubectl, name
        self.outcome = LoadResult()
        """Complete after `stop`."""
        self._is_stopped = False

    def read_result(self) -> LoadResult:
        """Return the results until now. Raises RayhelmError if a target never answered."""
        return _parse_log(self._read_log())

    def wait_for_first_answers(self, timeout: float) -> None:
        """Wait until every target has answered once and the load has begun."""

        def has_begun() -> bool | None:
            if self.read_result().answered:
                return True
            if _read_end(self._kubectl, self._name):
                raise RayhelmError(f"the load generator ended before it sent requests\n{self._read_log()[-2000:]}")
            return None

        wait_until(has_begun, what="first answers", timeout=timeout + POD_TIMEOUT, poll=1)

    def _read_log(self) -> str:
        return self._kubectl("logs", self._name, f"--namespace={NAMESPACE}")

    def stop(self) -> LoadResult:
        """Stop the load and wait for the requests in flight. A second call returns the same result."""
        if self._is_stopped:
            return self.outcome
        where = f"--namespace={NAMESPACE}"
        self._kubectl("exec", self._name, where, "--", "kill", "-TERM", "1")
        done = "--for=jsonpath={.status.phase}=Succeeded"
        self._kubectl("wait", f"pod/{self._name}", where, done, f"--timeout={REQUEST_TIMEOUT * 3:.0f}s")
        self.outcome, self._is_stopped = self.read_result(), True
        return self.outcome


@contextmanager
def run_load(
    kubectl: Kubectl,
    image: str,
    targets: Sequence[LoadTarget],
    *,
    timeout: float,
    clients: int = CLIENTS,
    name: str = "load",
) -> Iterator[LoadGenerator]:
    """Send a constant load while the body runs. It begins when every target has answered within `timeout` seconds."""
    plan = {
        "targets": [asdict(target) for target in targets],
        "clients": clients,
        "pause": PAUSE,
        "timeout": REQUEST_TIMEOUT,
        "first_timeout": timeout,
    }
    kubectl.apply_objects(_build_secret(name, plan), _build_pod(name, image))
    try:
        _wait_until_started(kubectl, name, image, how_to_get_rehearsal_image())
        generator = LoadGenerator(kubectl, name)
        generator.wait_for_first_answers(timeout)
        yield generator
        generator.stop()
    finally:
        _delete(kubectl, name)


def check_image(kubectl: Kubectl, image: str) -> None:
    """Raise MissingError if the nodes do not have the image, or the image lacks a package or the tiny models."""
    _try_image(kubectl, image, ("python", "-c", _CHECK), how_to_get_rehearsal_image())


def check_gateway_image(kubectl: Kubectl, image: str) -> None:
    """Raise MissingError if the nodes do not have the gateway's image, or it does not run HAProxy."""
    _try_image(kubectl, image, ("haproxy", "-v"), how_to_get_gateway_image())


def _try_image(kubectl: Kubectl, image: str, command: Sequence[str], how: Sequence[Fix]) -> None:
    name = "image"
    kubectl.apply_objects(_build_secret(name, {}), _build_pod(name, image, command))
    try:
        _wait_until_started(kubectl, name, image, how)
        end = wait_until(lambda: _read_end(kubectl, name), what=f"pod {name}", timeout=POD_TIMEOUT, poll=0.5)
        if end == "Failed":
            log = kubectl("logs", name, f"--namespace={NAMESPACE}").strip()
            raise MissingError(f"the image {image} cannot be used for a rehearsal: {log}", *how)
    finally:
        _delete(kubectl, name)


def _delete(kubectl: Kubectl, name: str) -> None:
    options = (f"--namespace={NAMESPACE}", "--ignore-not-found", "--grace-period=1")
    kubectl("delete", f"pod/{name}", f"secret/{name}", *options)


def _read_end(kubectl: Kubectl, name: str) -> str | None:
    """Return the phase of a pod that has ended, else None."""
    phase = str(kubectl.get("pod", name, namespace=NAMESPACE)["status"]["phase"])
    return phase if phase in ("Succeeded", "Failed") else None


def _wait_until_started(kubectl: Kubectl, name: str, image: str, how: Sequence[Fix]) -> None:
    """Wait until the pod runs. Raises MissingError at once if its image cannot be pulled."""

    def has_started() -> bool | None:
        status = kubectl.get("pod", name, namespace=NAMESPACE)["status"]
        if status["phase"] in ("Running", "Succeeded", "Failed"):
            return True
        waiting = [entry["state"].get("waiting", {}) for entry in status.get("containerStatuses", ())]
        if any(entry.get("reason", "") in _PULL_ERRORS for entry in waiting):
            message = waiting[0].get("message", "")
            raise MissingError(f"the nodes do not have image {image} and cannot pull it: {message}".rstrip(": "), *how)
        return None

    try:
        wait_until(has_started, what=f"pod {name}", timeout=POD_TIMEOUT, poll=1)
    except KubectlError as error:
        raise RayhelmError(f"pod {name}: {error.said}") from error


_CHECK = f"""
import importlib.util, pathlib, sys
missing = [name for name in ("ray", "vllm", "httpx") if not importlib.util.find_spec(name)]
missing += [] if pathlib.Path("{MODELS}").is_dir() else ["{MODELS}"]
sys.exit("missing: " + ", ".join(missing) if missing else 0)
"""
_RUN = ("python", "/plan/load_client.py", "/plan/plan.json")
_PULL_ERRORS = ("ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName")


def _parse_log(log: str) -> LoadResult:
    answered: list[RequestResult] = []
    failed: list[RequestResult] = []
    first: dict[str, float] = {}
    for line in log.splitlines():
        if not (line.startswith("{") and line.endswith("}")):
            continue  # a message of Python, or an incomplete line
        event: dict[str, Any] = json.loads(line)
        if "unanswered" in event:
            raise RayhelmError(f"{event['unanswered']} did not answer: {event['error']}")
        if "ready" in event:
            first[event["ready"]] = event["after"]
        elif "started" in event:
            result = RequestResult(**event)
            (failed if result.error else answered).append(result)
    if (answered or failed) and not first:
        raise RayhelmError("the log of the load generator is larger than the kubelet keeps: its beginning is lost")
    return LoadResult(tuple(answered), tuple(failed), first)


def _build_secret(name: str, plan: dict[str, Any]) -> dict[str, Any]:
    """Return a Secret, because the plan has API keys. It also has the program: an image may be older than this
    command."""
    meta = {"name": name, "namespace": NAMESPACE}
    data = {"plan.json": json.dumps(plan), "load_client.py": Path(load_client.__file__).read_text()}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "stringData": data}


def _build_pod(name: str, image: str, command: Sequence[str] = _RUN) -> dict[str, Any]:
    container = {
        "name": "load",
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
            "enableServiceLinks": False,
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
