"""Start a control plane, or its missing parts."""

import shutil
from collections.abc import Callable
from pathlib import Path

from rayhelm.errors import MissingError, RayhelmError, UsageError
from rayhelm.processes import find_free_port, find_listener
from testbed.control_plane import addons, core
from testbed.control_plane.down import alive, clear, end_all
from testbed.control_plane.home import Home, Record
from testbed.control_plane.joined_cluster import JoinedCluster, inspect_cluster
from testbed.control_plane.lock import alone
from testbed.control_plane.programs import Programs
from testbed.control_plane.running import ORDER, ControlPlane

__all__ = ["Say", "up"]

Say = Callable[[str], None]

ROOM = 2**30
"""Bytes of disk for the data and logs of a test run."""


def up(
    home: Home, *, port: int | None = None, join: Path | None = None, anyway: bool = False, say: Say = print
) -> ControlPlane:
    """Return a control plane that is healthy. One that already runs is reused, or repaired.

    `port`: port of the API server; default: a free one. `join`: kubeconfig of an existing cluster, which gets only the
    add-ons. A cluster with other workloads is joined only with `anyway`.

    Raises MissingError without the programs, the disk space or the cluster to join, UsageError if `port` is in use or
    the cluster must not be joined, and the errors of rayhelm.processes if a part does not start."""
    if join and port:
        raise UsageError("--port is the port of a new API server; it cannot be used with --join")
    programs = Programs.find(join=join is not None)
    with alone(home, say):
        _check_disk_space(home)
        # Checked before any process is stopped: a wrong option must not stop a running control plane.
        joined = _inspect_joined(join, home, programs, anyway, say) if join else None
        if plane := _find_earlier(home, programs, port, joined, say):
            return plane
        try:
            return _start_new(home, programs, port, joined, say)
        except BaseException:
            end_all(home)  # the logs stay until the next `up`
            raise


def _inspect_joined(join: Path, home: Home, programs: Programs, anyway: bool, say: Say) -> JoinedCluster:
    record = home.record()
    before = record.joined if record and record.complete else ""
    joined = inspect_cluster(join, home, programs["kubectl"], before=before, anyway=anyway)
    for note in joined.notes:
        say(note)
    return joined


def _start_new(
    home: Home, programs: Programs, port: int | None, joined: JoinedCluster | None, say: Say
) -> ControlPlane:
    taken: set[int] = set()
    if joined:
        home.write_kubeconfig(joined.kubeconfig)
        home.write(
            Record(kubernetes=joined.kubernetes, kuberay=programs.kuberay, server=joined.server, joined=joined.uid)
        )
    else:
        server = f"https://127.0.0.1:{_choose_port(port, taken)}"
        home.write(Record(kubernetes=programs.kubernetes, kuberay=programs.kuberay, server=server))
    plane = ControlPlane(home)
    if not joined:
        core.start_api_server(plane, programs, taken, say)
    addons.install(plane, programs, say)
    if not joined:
        core.start_controllers(plane, programs, taken)
    addons.start(plane, programs, taken, say)
    if not joined:
        core.wait_for_controllers(plane, programs)
    home.write(plane.record.model_copy(update={"complete": True}))
    return plane


def _find_earlier(
    home: Home, programs: Programs, port: int | None, joined: JoinedCluster | None, say: Say
) -> ControlPlane | None:
    """Return the control plane in this folder, repaired if needed; None if there is no usable one."""
    record = home.record()
    if record is None or not record.complete:
        if home.folder.exists() or alive(home):
            say("an earlier start is incomplete: removing it")
            clear(home, say)
        return None
    server = joined.server if joined else f"https://127.0.0.1:{port}" if port else record.server
    wanted = (
        joined.kubernetes if joined else programs.kubernetes,
        programs.kuberay,
        server,
        joined.uid if joined else "",
    )
    others = [part.name for part in record.parts.values() if programs.are_other(part)]
    if others or wanted != (record.kubernetes, record.kuberay, record.server, record.joined):
        if port and server != record.server:
            _check_is_free(port)
        say(f"replacing {record.description}{f', which has another {others[0]}' if others else ''}")
        clear(home, say)
        return None
    return _repair(ControlPlane(home), say)


def _repair(plane: ControlPlane, say: Say) -> ControlPlane:
    for name in (name for name in ORDER if name in plane.record.parts):
        if plane.is_healthy(name):
            continue
        say(f"{name} did not answer: restarting it")
        plane.end(name)
        try:
            _check_is_free(plane.part(name).port)
            plane.start(name)
        except RayhelmError as error:
            raise RayhelmError(
                f"{name} could not be restarted: {error}\n"
                f"to start again: ci/control-plane down --name {plane.home.name}, and then `up`"
            ) from None
    return plane


def _choose_port(wanted: int | None, taken: set[int]) -> int:
    if wanted is None:
        return find_free_port(taken)
    _check_is_free(wanted, "stop it, or use another port with --port")
    taken.add(wanted)
    return wanted


def _check_is_free(port: int, fix: str = "stop it") -> None:
    if who := find_listener(port):
        raise UsageError(f"port {port} is taken by {who}: {fix}")


def _check_disk_space(home: Home) -> None:
    free = shutil.disk_usage(home.folder.parent).free
    if free < ROOM:
        raise MissingError(
            f"{home.folder.parent}: {free / 2**20:.0f} MiB of disk space are free, and {ROOM / 2**20:.0f} are needed"
        )
