"""A process that has imported vLLM once, and forks where Ray and vLLM would start a Python that imports it again.

An engine on Ray Serve LLM is seven processes that each import vLLM and torch, some nine seconds of computing apiece:
most of what a start on a small computer takes. Ray starts its workers with `sys.executable`, and so do vLLM's engine
cores; `ray_head.py` lets that be `zygote_client.py`, which asks here for a fork in place of starting an interpreter.

Ray itself is never imported before the fork: its core reads the worker's job and raylet out of the environment when it
is loaded. For CPU stand-ins only: a CUDA context does not survive a fork.
"""

import array
import gc
import importlib
import json
import os
import random
import runpy
import selectors
import signal
import socket
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

MODULES = (
    "vllm.v1.engine.async_llm",
    "vllm.v1.engine.core",
    "vllm.v1.worker.cpu_worker",
    "vllm.v1.executor.multiproc_executor",
    "vllm.entrypoints.openai.api_server",
    "fastapi",
    "uvicorn",
)
DESCRIPTORS = 250
"""Most that the kernel hands over in one message (253)."""


def main(path: str, python: str) -> None:
    _import_all()
    # Children of the children come back here: Ray's agents' workers, and what multiprocessing spawns.
    import multiprocessing.spawn

    sys.executable = python
    multiprocessing.spawn.set_executable(python)
    gc.collect()
    gc.freeze()
    request, descriptors = _serve(Path(path))
    _become(request, descriptors)
    _run(request["argv"])


def _import_all() -> None:
    """Everything heavy, while Ray cannot be found."""
    sys.modules["ray"] = None  # type: ignore[assignment]
    for module in MODULES:
        importlib.import_module(module)
    for name in [name for name in sys.modules if name == "ray" or name.startswith("ray.")]:
        del sys.modules[name]


def _serve(path: Path) -> tuple[dict[str, Any], list[int]]:
    """Forks for everyone who asks. Returns only in the children, with what each was asked to be."""
    server = socket.socket(socket.AF_UNIX)
    waiting = path.with_suffix(".new")
    waiting.unlink(missing_ok=True)
    server.bind(str(waiting))
    server.listen(64)
    waiting.chmod(0o600)
    waiting.rename(path)  # Whoever sees the socket can use it.
    poll = selectors.DefaultSelector()
    poll.register(server, selectors.EVENT_READ)
    while True:
        for key, _ in poll.select():
            if key.fileobj is server:
                client, _ = server.accept()
                asked = _receive(client)
                if asked is None:
                    client.close()
                    continue
                pid = os.fork()
                if pid == 0:
                    # Now, not when Python gets to it: these numbers will be the client's.
                    poll.close()
                    server.close()
                    client.close()
                    return asked
                _adopt(poll, client, pid, asked[1])
            elif key.data[0] == "died":
                _tell_death(poll, key)
            elif not _still_there(key.fileobj):
                # Whoever kills the client means the child.
                poll.unregister(key.fileobj)
                os.kill(key.data[1], signal.SIGKILL)


def _receive(client: socket.socket) -> tuple[dict[str, Any], list[int]] | None:
    """The request and the descriptors that come with it; None when the client has gone."""
    descriptors = array.array("i")
    size, control, _, _ = client.recvmsg(8, socket.CMSG_SPACE(DESCRIPTORS * descriptors.itemsize))
    for _, kind, data in control:
        if kind == socket.SCM_RIGHTS:
            descriptors.frombytes(data[: len(data) - len(data) % descriptors.itemsize])
    body = b"".join(_read(client, int.from_bytes(size, "big")))
    return (json.loads(body), descriptors.tolist()) if body else None


def _read(client: socket.socket, size: int) -> Iterator[bytes]:
    while size > 0:
        part = client.recv(size)
        if not part:
            return
        size -= len(part)
        yield part


def _adopt(poll: selectors.BaseSelector, client: socket.socket, pid: int, descriptors: list[int]) -> None:
    for descriptor in descriptors:
        os.close(descriptor)
    watch = os.pidfd_open(pid)
    poll.register(watch, selectors.EVENT_READ, ("died", pid, client))
    poll.register(client, selectors.EVENT_READ, ("client", pid))
    client.sendall(f"{pid}\n".encode())


def _tell_death(poll: selectors.BaseSelector, key: selectors.SelectorKey) -> None:
    _, pid, client = key.data
    _, status = os.waitpid(pid, 0)
    poll.unregister(key.fileobj)
    os.close(key.fd)
    try:
        poll.unregister(client)
        client.sendall(f"{status}\n".encode())
    except (KeyError, OSError):
        pass  # It has gone already.
    client.close()


def _still_there(client: Any) -> bool:
    try:
        return bool(client.recv(1))
    except OSError:
        return False


def _become(request: dict[str, Any], descriptors: list[int]) -> None:
    """Takes the client's environment, folder and descriptors, under the client's numbers."""
    import fcntl

    wanted: list[int] = request["descriptors"]
    first = max([*wanted, *descriptors, 2]) + 1
    moved = [fcntl.fcntl(descriptor, fcntl.F_DUPFD, first) for descriptor in descriptors]
    os.closerange(3, first)
    for source, target in zip(moved, wanted, strict=True):
        os.dup2(source, target)
        os.close(source)
    if "--multiprocessing-fork" in request["argv"]:
        # Finds the title's place while the environment is where the kernel put it: vLLM names its engine cores. (Ray
        # has a way of its own, which this would spoil.)
        importlib.import_module("setproctitle").getproctitle()
    _join(request["group"])
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    # Otherwise siblings would draw the same numbers.
    random.seed()
    sys.modules["numpy"].random.seed()
    sys.modules["torch"].seed()


def _join(group: int) -> None:
    """Ray kills the whole process group of a worker that ends: a fork must never stay in the zygote's. An engine core
    joins its replica's group; a worker, whose client lives in Ray's session, leads its own."""
    try:
        os.setpgid(0, group)
    except OSError:
        os.setpgid(0, 0)


def _run(argv: list[str]) -> None:
    """What `python ARGV` would do."""
    while argv[0].startswith("-") and argv[0] not in ("-c", "-m"):
        argv = argv[1:]
    if Path(argv[0]).name == "setup_worker.py":
        argv = _set_up(argv)
    main_module = types.ModuleType("__main__")
    sys.modules["__main__"] = main_module
    if argv[0] == "-c":
        sys.argv = ["-c", *argv[2:]]
        exec(argv[1], main_module.__dict__)
    elif argv[0] == "-m":
        sys.argv = argv[1:]
        runpy.run_module(argv[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = argv
        sys.path.insert(0, str(Path(argv[0]).parent))
        runpy.run_path(argv[0], run_name="__main__")


def _set_up(argv: list[str]) -> list[str]:
    """Ray's setup_worker.py, without the shell and the interpreter that it would start: sets the environment of the
    runtime environment and answers the worker's own arguments."""
    from ray._private.runtime_env.context import RuntimeEnvContext
    from ray._private.utils import update_envs
    from ray._private.workers.setup_worker import parser

    known, rest = parser.parse_known_args(argv[1:])
    context = RuntimeEnvContext.deserialize(known.serialized_runtime_env_context or "{}")
    if context.command_prefix or context.override_worker_entrypoint:
        _exec_python(argv)
    update_envs(context.env_vars)
    return list(rest)


def _exec_python(argv: list[str]) -> NoReturn:
    python = str(Path(sys.prefix, "bin", "python"))
    os.execv(python, [python, *argv])


if __name__ == "__main__":
    main(*sys.argv[1:])
