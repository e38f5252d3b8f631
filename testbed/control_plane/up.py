"""Starts a control plane, or what is missing of one."""

import shutil
from collections.abc import Callable
from pathlib import Path

from rayhelm.errors import MissingError, RayhelmError, UsageError
from rayhelm.processes import find_listener
from testbed.control_plane import addons, core
from testbed.control_plane.bed import ORDER, Bed
from testbed.control_plane.down import alive, clear, end_all
from testbed.control_plane.guests import Guest, visit
from testbed.control_plane.home import Home, Record
from testbed.control_plane.lock import alone
from testbed.control_plane.ports import free_port
from testbed.control_plane.programs import Programs

__all__ = ["Say", "up"]

Say = Callable[[str], None]

ROOM = 2**30
"""Bytes of disk that a test run's data and logs may take."""


def up(home: Home, *, port: int | None = None, join: Path | None = None, anyway: bool = False, say: Say = print) -> Bed:
    """A control plane that is well. One that already runs is left as it is, or fixed.

    `port` is the API server's; any free one when left out. `join` is the kubeconfig of a cluster that is there
    already: then only the add-ons are started; one that others use is joined only with `anyway`.

    Raises MissingError without the programs, the room or the cluster to join, UsageError where `port` is taken or the
    cluster must not be joined, and the errors of rayhelm.processes where a part does not start."""
    if join and port:
        raise UsageError("--port is of an API server that is started here, and --join names one that runs already")
    programs = Programs.find(join=join is not None)
    with alone(home, say):
        _has_room(home)
        # Asked before anything is ended: a wrong word must not cost the control plane that runs.
        guest = _visited(join, home, programs, anyway, say) if join else None
        if bed := _earlier(home, programs, port, guest, say):
            return bed
        try:
            return _fresh(home, programs, port, guest, say)
        except BaseException:
            end_all(home)  # the logs stay for whoever reads the message; the next `up` clears them away
            raise


def _visited(join: Path, home: Home, programs: Programs, anyway: bool, say: Say) -> Guest:
    record = home.record()
    before = record.joined if record and record.complete else ""
    guest = visit(join, home, programs["kubectl"], before=before, anyway=anyway)
    for note in guest.notes:
        say(note)
    return guest


def _fresh(home: Home, programs: Programs, port: int | None, guest: Guest | None, say: Say) -> Bed:
    taken: set[int] = set()
    if guest:
        home.write_kubeconfig(guest.kubeconfig)
        home.write(Record(kubernetes=guest.kubernetes, kuberay=programs.kuberay, server=guest.server, joined=guest.uid))
    else:
        server = f"https://127.0.0.1:{_port(port, taken)}"
        home.write(Record(kubernetes=programs.kubernetes, kuberay=programs.kuberay, server=server))
    bed = Bed(home)
    if not guest:
        core.start(bed, programs, taken, say)
    addons.start(bed, programs, taken, say)
    home.write(bed.record.model_copy(update={"complete": True}))
    return bed


def _earlier(home: Home, programs: Programs, port: int | None, guest: Guest | None, say: Say) -> Bed | None:
    """The control plane that is in this folder, fixed; None where there is none that can be used."""
    record = home.record()
    if record is None or not record.complete:
        if home.folder.exists() or alive(home):
            say("an earlier start did not come to its end: clearing it away")
            clear(home, say)
        return None
    server = guest.server if guest else f"https://127.0.0.1:{port}" if port else record.server
    wanted = (guest.kubernetes if guest else programs.kubernetes, programs.kuberay, server, guest.uid if guest else "")
    others = [part.name for part in record.parts.values() if programs.are_other(part)]
    if others or wanted != (record.kubernetes, record.kuberay, record.server, record.joined):
        if port and server != record.server:
            _has_nobody(port)
        say(f"here was {record.told}{f', of another {others[0]}' if others else ''}: ending it")
        clear(home, say)
        return None
    return _fixed(Bed(home), say)


def _fixed(bed: Bed, say: Say) -> Bed:
    for name in (name for name in ORDER if name in bed.record.parts):
        if bed.is_well(name):
            continue
        say(f"{name} did not answer: starting it again")
        bed.end(name)
        try:
            _has_nobody(bed.part(name).port)
            bed.start(name)
        except RayhelmError as error:
            raise RayhelmError(
                f"{name} could not be started again: {error}\n"
                f"to begin anew: ci/control-plane down --name {bed.home.name}, and then `up`"
            ) from None
    return bed


def _port(wanted: int | None, taken: set[int]) -> int:
    if wanted is None:
        return free_port(taken)
    _has_nobody(wanted, "end it, or take another one with --port")
    taken.add(wanted)
    return wanted


def _has_nobody(port: int, fix: str = "end it") -> None:
    if who := find_listener(port):
        raise UsageError(f"port {port} is taken by {who}: {fix}")


def _has_room(home: Home) -> None:
    free = shutil.disk_usage(home.folder.parent).free
    if free < ROOM:
        raise MissingError(
            f"{home.folder.parent}: {free / 2**20:.0f} MiB of disk are free, and {ROOM / 2**20:.0f} are needed"
        )
