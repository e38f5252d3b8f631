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
from rayhelm.rehearsal.cluster_session import ClusterSession, build_namespace
from rayhelm.rehearsal.load import NAMESPACE
from rayhelm.render.releases import Release

__all__ = [
    "CLEAN_COMMAND",
    "InstalledRelease",
    "RehearsalRecord",
    "create_record",
    "is_left_behind",
    "mark_kept",
    "read",
    "remove_all",
    "write",
]

CLEAN_COMMAND = "rayhelm rehearse --clean    # takes all of it away"
NAME = "rehearsal"
_ENTRY = "rehearsal.json"
_KEY = _ENTRY.replace(".", r"\.")
GONE = 600.0
"""Seconds; pods end their requests first."""


class InstalledRelease(Closed):
    """A release of Helm."""

    chart: str
    name: str
    namespace: str


class RehearsalRecord(Closed):
    """A rehearsal on a cluster."""

    fleet: str
    started: str
    host: str
    """Who makes it, and where."""
    pid: int
    created: float
    """Start of that process, seconds since 1970: numbers are used again."""
    releases: tuple[InstalledRelease, ...]
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
        return f"a rehearsal of {self.fleet} from {self.started}, by process {self.pid} on {self.host}"


def create_record(fleet: str, releases: Sequence[Release], namespaces: Sequence[str]) -> RehearsalRecord:
    """Of this process."""
    made = dict.fromkeys(
        InstalledRelease(chart=each.chart, name=each.name, namespace=each.namespace) for each in releases
    )
    return RehearsalRecord(
        fleet=fleet,
        started=datetime.now(UTC).isoformat(timespec="seconds"),
        host=socket.gethostname(),
        pid=os.getpid(),
        created=psutil.Process().create_time(),
        releases=tuple(made),
        namespaces=tuple(namespaces),
    )


def read(kubectl: Kubectl) -> RehearsalRecord | None:
    """None where no rehearsal is on the cluster."""
    said = kubectl(
        "get",
        "configmap",
        NAME,
        f"--namespace={NAMESPACE}",
        "--ignore-not-found",
        f"--output=jsonpath={{.data.{_KEY}}}",
    )
    return RehearsalRecord.model_validate_json(said) if said else None


def write(kubectl: Kubectl, record: RehearsalRecord) -> None:
    """Raises RayhelmError where another one was written meanwhile: one cluster bears one rehearsal."""
    kubectl.apply_objects(build_namespace(NAMESPACE))
    try:
        kubectl("create", "--filename=-", text=json.dumps(_config_map(record)))
    except KubectlError as error:
        if "AlreadyExists" in error.said:
            raise RayhelmError(f"another rehearsal has just begun on this cluster\n    {CLEAN_COMMAND}") from None
        raise


def mark_kept(kubectl: Kubectl, record: RehearsalRecord) -> None:
    """Says that it runs on, and that nobody is at it."""
    kubectl.apply_objects(_config_map(record.model_copy(update={"kept": True})))


def is_left_behind(kubectl: Kubectl) -> bool:
    """Whether the namespace of rehearsals is there, with a record or without."""
    return bool(kubectl("get", "namespace", NAMESPACE, "--ignore-not-found", "--output=name"))


def remove_all(session: ClusterSession, record: RehearsalRecord | None) -> int:
    """Takes away all of it, doors first, ground last, the record at the very end; returns how many releases there were.
    May be begun again after any interruption."""
    removed = 0
    for made in reversed(record.releases if record else ()):
        session.report_progress(f"{made.chart} {made.name}: uninstall")
        said = session.run_helm("uninstall", made.name, f"--namespace={made.namespace}", "--ignore-not-found")
        removed += "uninstalled" in said
    _gone(session, record.namespaces if record else ())
    _gone(session, [NAMESPACE])
    return removed


def _gone(session: ClusterSession, names: Sequence[str]) -> None:
    if not names:
        return
    # A namespace that still has pods is looked at again only after half of the time that they may take.
    for name in names:
        with suppress(KubectlError):
            session.kubectl("delete", "pods", "--all", f"--namespace={name}", "--grace-period=1", "--timeout=180s")
    session.kubectl("delete", "namespace", *names, "--ignore-not-found", "--wait=false")
    gone = lambda: not session.kubectl("get", "namespace", *names, "--ignore-not-found", "--output=name")  # noqa: E731
    session.wait(gone, f"the end of {', '.join(names)}", names[0], timeout=GONE)


def _config_map(record: RehearsalRecord) -> dict[str, object]:
    meta = {"name": NAME, "namespace": NAMESPACE}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {_ENTRY: record.model_dump_json()}}
