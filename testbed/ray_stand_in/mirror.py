"""Follow pods and RayClusters of the API server, so that a query of hundreds of pods needs no request to it.

Each kind is listed once and then watched. After any error (a restart of the API server, an expired resource version,
missing CRDs, an incomplete line), the kind is listed again. Meanwhile the last state stays valid, as Ray would continue
to run."""

import base64
import json
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Generic, TypeVar

import pykube  # type: ignore[import-untyped]

from rayhelm.errors import MissingError, RayhelmError
from testbed.ray_stand_in.objects import Cluster, Pod, Unreachable, cluster_of, pod_of

__all__ = ["Followed", "Mirror"]

T = TypeVar("T")
RAY_PODS = "ray.io/node-type in (head, worker)"
_WATCH = 240
"""Seconds after which the API server ends a watch, and the kind is listed again."""
_PAUSE = 0.5
"""Seconds between the end of a watch, or a failure, and the next list."""
_LOST = (OSError, ValueError, KeyError, pykube.exceptions.PyKubeError)
"""Errors of a failed request: the errors of requests are OSErrors, and an incomplete object lacks keys."""


class Followed(Generic[T]):
    """Objects of one kind in all namespaces, by UID. `ask(**parameters)` returns the lines of the API server's answer:
    the list in one line, or one event of a watch per line."""

    def __init__(self, what: str, ask: Callable[..., Iterator[bytes]], parse: Callable[[Mapping[str, Any]], T]) -> None:
        self._what, self._ask, self._parse = what, ask, parse
        self._known: dict[str, T] = {}
        self.seen = False

    @property
    def all(self) -> Sequence[T]:
        return tuple(self._known.values())

    def follow(self, goes_on: Callable[[], bool], pause: Callable[[], object]) -> None:
        """List and watch until `goes_on` returns false after a watch; `pause` waits before the next list."""
        lost = False
        while goes_on():
            try:
                version = self._list()
                if lost:
                    _log(f"{self._what}: the API server is back")
                lost = False
                self._watch(version)
            except _LOST as error:
                if not lost:
                    _log(f"{self._what}: trying again until the API server answers: {error}")
                lost = True
            pause()

    def _list(self) -> str:
        listed = json.loads(b"".join(self._ask()))
        self._known = {item["metadata"]["uid"]: self._parse(item) for item in listed["items"]}
        self.seen = True
        return str(listed["metadata"]["resourceVersion"])

    def _watch(self, version: str) -> None:
        for line in self._ask(watch="true", resourceVersion=version, timeoutSeconds=str(_WATCH)):
            event = json.loads(line)
            if event["type"] == "ERROR":
                return
            self._take(event["type"], event["object"])

    def _take(self, kind: str, found: Mapping[str, Any]) -> None:
        uid = found["metadata"]["uid"]
        if kind == "DELETED":
            # A new dictionary, because other threads may iterate over the current one.
            self._known = {key: item for key, item in self._known.items() if key != uid}
        elif uid in self._known:
            self._known[uid] = self._parse(found)
        else:
            self._known = {**self._known, uid: self._parse(found)}


class Mirror:
    """Pods and RayClusters of a kubeconfig's API server. Needs the permissions of cluster-role.yaml."""

    def __init__(self, kubeconfig: Path) -> None:
        self._kubeconfig = kubeconfig
        self._secrets = _create_client(kubeconfig, timeout=5)
        self._pods = Followed("pods", _create_asker(kubeconfig, "v1", "pods", RAY_PODS), pod_of)
        self._clusters = Followed("RayClusters", _create_asker(kubeconfig, "ray.io/v1", "rayclusters"), cluster_of)
        self._ended = threading.Event()

    def start(self) -> None:
        """Start the watches in their own threads."""
        for kind in (self._pods, self._clusters):
            arguments = (lambda: not self._ended.is_set(), lambda: self._ended.wait(_PAUSE))
            threading.Thread(target=kind.follow, args=arguments, daemon=True).start()

    def stop(self) -> None:
        self._ended.set()

    def ready(self) -> bool:
        """Return whether every kind was listed once."""
        return self._pods.seen and self._clusters.seen

    def clusters(self) -> Sequence[Cluster]:
        return self._clusters.all

    def pods(self) -> Sequence[Pod]:
        return self._pods.all

    def secret(self, namespace: str, name: str, key: str) -> str | None:
        try:
            answer = self._secrets.get(version="v1", namespace=namespace, url=f"secrets/{name}")
            if answer.status_code == 404:
                return None
            answer.raise_for_status()
            value = (answer.json().get("data") or {}).get(key)
        except OSError as error:
            raise Unreachable(str(error)) from error
        return None if value is None else base64.b64decode(value).decode()


def _create_asker(kubeconfig: Path, version: str, kind: str, selector: str = "") -> Callable[..., Iterator[bytes]]:
    # One client per thread. Its timeout is longer than a watch without events.
    client = _create_client(kubeconfig, timeout=_WATCH + 30)

    def ask(**parameters: str) -> Iterator[bytes]:
        given = {**parameters, **({"labelSelector": selector} if selector else {})}
        with client.get(version=version, url=kind, params=given, stream=True) as answer:
            answer.raise_for_status()
            yield from answer.iter_lines(chunk_size=None)

    return ask


def _create_client(kubeconfig: Path, timeout: float) -> Any:
    if not kubeconfig.is_file():
        raise MissingError(f"kubeconfig {kubeconfig} does not exist", "make control-plane")
    try:
        client = pykube.HTTPClient(pykube.KubeConfig.from_file(str(kubeconfig)), timeout=timeout)
    except Exception as error:
        # pykube raises many kinds of errors for a broken file.
        raise RayhelmError(f"{kubeconfig} is not a kubeconfig: {error!r}") from error
    # The proxy of the environment is this program itself.
    client.session.trust_env = False
    return client


def _log(what: str) -> None:
    print(what, file=sys.stderr, flush=True)
