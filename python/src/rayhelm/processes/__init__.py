"""Starts, waits for, shows and ends trees of processes: the one place that does.

A run is everything that one command starts. Each of its processes carries the run's mark in its environment, which
children inherit however often they are re-parented (Ray's raylet, vLLM's engine cores): that is how a run is found
again and ended, whole, and nothing else with it.
"""

from rayhelm.processes.find import Listener, free_port, listener, members, memory_held
from rayhelm.processes.run import MARK, Process, end, new_run, start
from rayhelm.processes.wait import Died, TimedOut, tail, wait_until

__all__ = [
    "MARK",
    "Died",
    "Listener",
    "Process",
    "TimedOut",
    "end",
    "free_port",
    "listener",
    "members",
    "memory_held",
    "new_run",
    "start",
    "tail",
    "wait_until",
]
