"""What a rehearsal makes on a cluster, written there before it is made: after a crash of whoever made it, all of it is
found and taken away."""

import json
import os
import socket
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime

import psutil

from rayhelm.closed import Closed
from rayhelm.errors import RayhelmError
from rayhelm.kube.kubectl import Kubectl, KubectlError
from rayhelm.rehearsal.load import NAMESPACE
from rayhelm.rehearsal.stage import Stage, namespace
from rayhelm.render.releases import Release

__all__ = ["CLEAN", "Made", "Record", "clear", "keep", "left_behind", "read", "record_of", "write"]

CLEAN = "rayhelm rehearse --clean    # takes all of it away"
NAME = "rehearsal"
_ENTRY = "rehearsal.json"
_KEY = _ENTRY.replace(".", r"\.")
GONE = 600.0
"""Seconds; pods end their requests first."""


class Made(Closed):
    """A release of Helm."""

    chart: str
    name: str
    namespace: str


class Record(Closed):
    """A rehearsal on a cluster."""

    fleet: str
    begun: str
    host: str
    """Who makes it, and where."""
    pid: int
    created: float
    """Start of that process, seconds since 1970: numbers are used again."""
    releases: tuple[Made, ...]
    """In the order of their install; not all need be there yet."""
    namespaces: tuple[str, ...]
    """That nobody had before."""
    kept: bool = False
    """It came to its end, and runs on because somebody wished so."""

    @property
    def runs(self) -> bool:
        """Whether the process that makes it is alive, as far as that can be known here."""
        if self.host != socket.gethostname():
            return False
        with suppress(psutil.Error):
            return abs(psutil.Process(self.pid).create_time() - self.created) < 5
        return False

    def __str__(self) -> str:
        return f"a rehearsal of {self.fleet} from {self.begun}, by process {self.pid} on {self.host}"


def record_of(fleet: str, releases: Sequence[Release], namespaces: Sequence[str]) -> Record:
    """Of this process."""
    made = dict.fromkeys(Made(chart=each.chart, name=each.name, namespace=each.namespace) for each in releases)
    return Record(
        fleet=fleet,
        begun=datetime.now(UTC).isoformat(timespec="seconds"),
        host=socket.gethostname(),
        pid=os.getpid(),
        created=psutil.Process().create_time(),
        releases=tuple(made),
        namespaces=tuple(namespaces),
    )


def read(kubectl: Kubectl) -> Record | None:
    """None where no rehearsal is on the cluster."""
    said = kubectl(
        "get",
        "configmap",
        NAME,
        f"--namespace={NAMESPACE}",
        "--ignore-not-found",
        f"--output=jsonpath={{.data.{_KEY}}}",
    )
    return Record.model_validate_json(said) if said else None


def write(kubectl: Kubectl, record: Record) -> None:
    """Raises RayhelmError where another one was written meanwhile: one cluster bears one rehearsal."""
    kubectl.apply_objects(namespace(NAMESPACE))
    try:
        kubectl("create", "--filename=-", text=json.dumps(_config_map(record)))
    except KubectlError as error:
        if "AlreadyExists" in error.said:
            raise RayhelmError(f"another rehearsal has just begun on this cluster\n    {CLEAN}") from None
        raise


def keep(kubectl: Kubectl, record: Record) -> None:
    """Says that it runs on, and that nobody is at it."""
    kubectl.apply_objects(_config_map(record.model_copy(update={"kept": True})))


def left_behind(kubectl: Kubectl) -> bool:
    """Whether the namespace of rehearsals is there, with a record or without."""
    return bool(kubectl("get", "namespace", NAMESPACE, "--ignore-not-found", "--output=name"))


def clear(stage: Stage, record: Record | None) -> int:
    """Takes away all of it, doors first, ground last, the record at the very end; returns how many releases there were.
    May be begun again after any interruption."""
    removed = 0
    for made in reversed(record.releases if record else ()):
        stage.say(f"{made.chart} {made.name}: uninstall")
        said = stage.helm("uninstall", made.name, f"--namespace={made.namespace}", "--ignore-not-found")
        removed += "uninstalled" in said
    _gone(stage, record.namespaces if record else ())
    _gone(stage, [NAMESPACE])
    return removed


def _gone(stage: Stage, names: Sequence[str]) -> None:
    if not names:
        return
    # A namespace that still has pods is looked at again only after half of the time that they may take.
    for name in names:
        with suppress(KubectlError):
            stage.kubectl("delete", "pods", "--all", f"--namespace={name}", "--grace-period=1", "--timeout=180s")
    stage.kubectl("delete", "namespace", *names, "--ignore-not-found", "--wait=false")
    gone = lambda: not stage.kubectl("get", "namespace", *names, "--ignore-not-found", "--output=name")  # noqa: E731
    stage.wait(gone, f"the end of {', '.join(names)}", names[0], timeout=GONE)


def _config_map(record: Record) -> dict[str, object]:
    meta = {"name": NAME, "namespace": NAMESPACE}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {_ENTRY: record.model_dump_json()}}
