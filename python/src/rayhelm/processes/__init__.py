"""Start, wait for, show and stop trees of processes. Every command of rayhelm that starts processes uses this module.

A run is everything that one command starts. Each of its processes has the mark of the run in its environment. Children
inherit the mark even if they get another parent (Ray's raylet, vLLM's engine cores), so `stop_run` stops the whole run
and nothing else. A zombie is an ended process: no function here returns one.
"""

from rayhelm.processes.find import (
    Listener,
    find_listener,
    list_members,
    measure_memory,
    read_command,
)
from rayhelm.processes.ports import find_free_port
from rayhelm.processes.run import MARK, Process, create_run_id, start, stop_run
from rayhelm.processes.wait import ProcessDied, TimedOut, tail, wait_until

__all__ = [
    "MARK",
    "Listener",
    "Process",
    "ProcessDied",
    "TimedOut",
    "create_run_id",
    "find_free_port",
    "find_listener",
    "list_members",
    "measure_memory",
    "read_command",
    "start",
    "stop_run",
    "tail",
    "wait_until",
]
