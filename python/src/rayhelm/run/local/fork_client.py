"""Replace `python`: request a fork that runs the given script from the fork server, and end when it ends.

    python -ISB fork_client.py SOCKET PYTHON [arguments of python ...]

It runs without `site` and without the package, because it replaces every Python of the run: it starts in 10 ms.
"""

import array
import os
import signal
import socket
import sys
from typing import NoReturn

FORKED = ("default_worker.py", "setup_worker.py", "--multiprocessing-fork")
"""Programs that import vLLM: Ray's workers, and processes that multiprocessing spawns."""


def main(path: str, python: str, *argv: str) -> NoReturn:
    if not any(word.endswith(FORKED) for word in argv):
        os.execv(python, [python, *argv])
    server = socket.socket(socket.AF_UNIX)
    try:
        server.connect(path)
    except OSError:  # not ready yet, or stopped: start Python instead
        os.execv(python, [python, *argv])
    answers = server.makefile("rb")
    _ask(server, list(argv))
    _wait_like(int(answers.readline() or 0), answers)


def _ask(server: socket.socket, argv: list[str]) -> None:
    import json

    descriptors = array.array("i", [number for number in _open_descriptors() if number != server.fileno()])
    request = {
        "argv": argv,
        "folder": os.getcwd(),  # noqa: PTH109 (pathlib takes longer to import than all of this to run)
        "group": os.getpgrp(),
        "environment": dict(os.environ),
        "descriptors": descriptors.tolist(),
    }
    body = json.dumps(request).encode()
    server.sendmsg([len(body).to_bytes(8, "big")], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, descriptors)])
    server.sendall(body)
    for number in descriptors:
        if number > 2:
            os.close(number)


def _open_descriptors() -> list[int]:
    numbers = []
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208
        try:
            os.fstat(int(name))
        except OSError:  # the descriptor that listed them
            continue
        numbers.append(int(name))
    return sorted(numbers)


def _wait_like(child: int, answers) -> NoReturn:  # type: ignore[no-untyped-def]
    if not child:
        os._exit(1)
    for caught in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(caught, lambda received, _: os.kill(child, received))
    status = int(answers.readline() or signal.SIGKILL)
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        if number != signal.SIGKILL:
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    os._exit(os.WEXITSTATUS(status))


if __name__ == "__main__":
    main(*sys.argv[1:])
