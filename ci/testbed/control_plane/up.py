"""Starts a control plane, or what is missing of one."""

import shutil
from collections.abc import Callable
from pathlib import Path

from rayhelm.errors import MissingError, UsageError
from rayhelm.processes import free_port, listener
from testbed.control_plane import addons, core
from testbed.control_plane.bed import ORDER, Bed
from testbed.control_plane.down import clear, end_all
from testbed.control_plane.home import Home, Record
from testbed.control_plane.kubeconfig import server_of
from testbed.control_plane.lock import alone
from testbed.control_plane.programs import Programs

__all__ = ["Say", "up"]

Say = Callable[[str], None]

ROOM = 2**30
"""Bytes of disk that a test run's data and logs may take."""


def up(home: Home, *, port: int | None = None, join: Path | None = None, say: Say = print) -> Bed:
    """A control plane that is well. One that already runs is left as it is, or mended.

    `port` is the API server's; any free one when left out. `join` is the kubeconfig of a cluster that is there
    already: then only the add-ons are started.

    Raises MissingError without the programs or the room, UsageError where `port` is taken, and the errors of
    rayhelm.processes where a part does not start."""
    programs = Programs.find(join=join is not None)
    with alone(home):
        _has_room(home)
        if bed := _earlier(home, programs, port, join, say):
            return bed
        try:
            return _fresh(home, programs, port, join, say)
        except BaseException:
            end_all(home)  # the logs stay for whoever reads the message; the next `up` clears them away
            raise


def _fresh(home: Home, programs: Programs, port: int | None, join: Path | None, say: Say) -> Bed:
    taken: set[int] = set()
    if join:
        server = server_of(join)
        home.folder.mkdir(parents=True, mode=0o700)
        shutil.copy(join, home.kubeconfig)
    else:
        server = f"https://127.0.0.1:{_port(port, taken)}"
    home.write(Record(kubernetes=programs.kubernetes, kuberay=programs.kuberay, server=server))
    bed = Bed(home)
    if not join:
        core.start(bed, programs, taken, say)
    addons.start(bed, programs, taken, say)
    home.write(bed.record.model_copy(update={"complete": True}))
    return bed


def _earlier(home: Home, programs: Programs, port: int | None, join: Path | None, say: Say) -> Bed | None:
    """The control plane that is in this folder, mended; None where there is none that can be used."""
    record = home.record()
    if record is None or not record.complete:
        if home.folder.exists():
            say("an earlier start did not come to its end: clearing it away")
            clear(home)
        return None
    server = server_of(join) if join else f"https://127.0.0.1:{port}" if port else record.server
    if (programs.kubernetes, programs.kuberay, server) != (record.kubernetes, record.kuberay, record.server):
        say(f"here was {record.told}: ending it")
        clear(home)
        return None
    return _mended(Bed(home), say)


def _mended(bed: Bed, say: Say) -> Bed:
    for name in (name for name in ORDER if name in bed.record.parts):
        if bed.is_well(name):
            continue
        say(f"{name} did not answer: starting it again")
        bed.end(name)
        _has_nobody(bed.part(name).port)
        bed.start(name)
    return bed


def _port(wanted: int | None, taken: set[int]) -> int:
    if wanted is None:
        return free_port(taken)
    _has_nobody(wanted)
    taken.add(wanted)
    return wanted


def _has_nobody(port: int) -> None:
    if who := listener(port):
        raise UsageError(f"port {port} is taken by {who}: end it, or take another one with --port")


def _has_room(home: Home) -> None:
    free = shutil.disk_usage(home.folder.parent).free
    if free < ROOM:
        raise MissingError(
            f"{home.folder.parent}: {free / 2**20:.0f} MiB of disk are free, and {ROOM / 2**20:.0f} are needed"
        )
