"""The record of a rehearsal on the cluster: what it creates, written before it is created.

After a crash, `rayhelm rehearse --clean` finds everything by this record and removes it.
"""

import json
import os
import socket
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime

import psutil

from rayhelm.deploy.render.releases import Release
from rayhelm.errors import Fix, RayhelmError
from rayhelm.facts.closed import Closed
from rayhelm.live.cluster.kubectl import Kubectl, KubectlError
from rayhelm.run.rehearsal.cluster_session import ClusterSession, build_namespace
from rayhelm.run.rehearsal.load import NAMESPACE

__all__ = [
    "CLEAN",
    "InstalledRelease",
    "RehearsalRecord",
    "create_record",
    "is_left_behind",
    "mark_kept",
    "read",
    "remove_all",
    "write",
]

CLEAN = Fix(command="rayhelm rehearse --clean", why="removes everything that the rehearsal created")
NAME = "rehearsal"
_ENTRY = "rehearsal.json"
_KEY = _ENTRY.replace(".", r"\.")
REMOVAL_TIMEOUT = 600.0
"""Seconds; pods finish their requests first."""


class InstalledRelease(Closed):
    """A Helm release."""

    chart: str
    name: str
    namespace: str


class RehearsalRecord(Closed):
    """A rehearsal on a cluster."""

    fleet: str
    started: str
    host: str
    """Computer of the rehearsal's process."""
    pid: int
    created: float
    """Start of that process, in seconds since 1970: pids are reused."""
    releases: tuple[InstalledRelease, ...]
    """In the order of their installation; some may not exist yet."""
    namespaces: tuple[str, ...]
    """Namespaces that the rehearsal creates."""
    kept: bool = False
    """The rehearsal is complete and keeps running because of `--keep`."""

    @property
    def is_running(self) -> bool:
        """Whether its process is alive on this computer."""
        if self.host != socket.gethostname():
            return False
        with suppress(psutil.Error):
            return abs(psutil.Process(self.pid).create_time() - self.created) < 5
        return False

    def __str__(self) -> str:
        return f"a rehearsal of {self.fleet} from {self.started}, by process {self.pid} on {self.host}"


def create_record(fleet: str, releases: Sequence[Release], namespaces: Sequence[str]) -> RehearsalRecord:
    """Create a record of this process."""
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
    """Return the record; None if there is no rehearsal on the cluster."""
    text = kubectl(
        "get",
        "configmap",
        NAME,
        f"--namespace={NAMESPACE}",
        "--ignore-not-found",
        f"--output=jsonpath={{.data.{_KEY}}}",
    )
    return RehearsalRecord.model_validate_json(text) if text else None


def write(kubectl: Kubectl, record: RehearsalRecord) -> None:
    """Write the record. Raises RayhelmError if there is one already: a cluster has at most one rehearsal."""
    kubectl.apply_objects(build_namespace(NAMESPACE))
    try:
        kubectl("create", "--filename=-", text=json.dumps(_build_config_map(record)))
    except KubectlError as error:
        if "AlreadyExists" in error.said:
            raise RayhelmError(f"another rehearsal has just started on this cluster\n    {CLEAN}") from None
        raise


def mark_kept(kubectl: Kubectl, record: RehearsalRecord) -> None:
    """Record that the rehearsal is complete and keeps running."""
    kubectl.apply_objects(_build_config_map(record.model_copy(update={"kept": True})))


def is_left_behind(kubectl: Kubectl) -> bool:
    """Return whether the namespace of rehearsals exists, with or without a record."""
    return bool(kubectl("get", "namespace", NAMESPACE, "--ignore-not-found", "--output=name"))


def remove_all(session: ClusterSession, record: RehearsalRecord | None) -> int:
    """Remove everything, in reverse order of installation and the record last. Returns the number of releases.

    Can be repeated after an interruption.
    """
    removed = 0
    for made in reversed(record.releases if record else ()):
        session.report_progress(f"{made.chart} {made.name}: uninstall")
        output = session.run_helm("uninstall", made.name, f"--namespace={made.namespace}", "--ignore-not-found")
        removed += "uninstalled" in output
    _remove_namespaces(session, record.namespaces if record else ())
    _remove_namespaces(session, [NAMESPACE])
    return removed


def _remove_namespaces(session: ClusterSession, names: Sequence[str]) -> None:
    if not names:
        return
    # Kubernetes checks a namespace with pods again only after half of their grace period.
    for name in names:
        with suppress(KubectlError):
            session.kubectl("delete", "pods", "--all", f"--namespace={name}", "--grace-period=1", "--timeout=180s")
    session.kubectl("delete", "namespace", *names, "--ignore-not-found", "--wait=false")
    is_removed = lambda: not session.kubectl("get", "namespace", *names, "--ignore-not-found", "--output=name")  # noqa: E731
    session.wait(is_removed, f"the removal of {', '.join(names)}", names[0], timeout=REMOVAL_TIMEOUT)


def _build_config_map(record: RehearsalRecord) -> dict[str, object]:
    meta = {"name": NAME, "namespace": NAMESPACE}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {_ENTRY: record.model_dump_json()}}
