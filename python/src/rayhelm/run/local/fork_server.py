"""Fork server for `rayhelm up --share-imports`: imports vLLM once and forks for each process that needs it.

An engine on Ray Serve LLM is seven processes that each import vLLM and torch, about nine CPU seconds per process. Ray
and vLLM start their workers with `sys.executable`. `ray_head.py` sets it to `fork_client.py`, which asks this server
for a fork in place of starting an interpreter.

Ray is never imported before the fork: its core reads the job and the raylet of the worker from the environment when it
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
"""Below the kernel's limit for one message (253)."""


def main(path: str, python: str) -> None:
    _import_all()
    # This server also forks for the children of a fork: workers of Ray's agents, processes of multiprocessing.
    import multiprocessing.spawn

    sys.executable = python
    multiprocessing.spawn.set_executable(python)
    gc.collect()
    gc.freeze()
    request, descriptors = _serve(Path(path))
    _become(request, descriptors)
    _run(request["argv"])


def _import_all() -> None:
    """Import the large packages while `import ray` fails, so that none of them loads Ray."""
    sys.modules["ray"] = None  # type: ignore[assignment]
    for module in MODULES:
        importlib.import_module(module)
    for name in [name for name in sys.modules if name == "ray" or name.startswith("ray.")]:
        del sys.modules[name]


def _serve(path: Path) -> tuple[dict[str, Any], list[int]]:
    """Fork for each request. Returns only in the children, with the request."""
    server = socket.socket(socket.AF_UNIX)
    unready = path.with_suffix(".new")
    unready.unlink(missing_ok=True)
    server.bind(str(unready))
    server.listen(64)
    unready.chmod(0o600)
    unready.rename(path)  # a socket with this name accepts connections
    poll = selectors.DefaultSelector()
    poll.register(server, selectors.EVENT_READ)
    while True:
        for key, _ in poll.select():
            if key.fileobj is server:
                client, _ = server.accept()
                request = _receive(client)
                if request is None:
                    client.close()
                    continue
                pid = os.fork()
                if pid == 0:
                    # Close them before `_become` reuses their numbers for the client's descriptors.
                    poll.close()
                    server.close()
                    client.close()
                    return request
                _adopt(poll, client, pid, request[1])
            elif key.data[0] == "exited":
                _report_exit(poll, key)
            elif not _is_connected(key.fileobj):
                # A client that was killed stands for its child.
                poll.unregister(key.fileobj)
                os.kill(key.data[1], signal.SIGKILL)


def _receive(client: socket.socket) -> tuple[dict[str, Any], list[int]] | None:
    """Read a request and its descriptors; None if the client has disconnected."""
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
    poll.register(watch, selectors.EVENT_READ, ("exited", pid, client))
    poll.register(client, selectors.EVENT_READ, ("client", pid))
    client.sendall(f"{pid}\n".encode())


def _report_exit(poll: selectors.BaseSelector, key: selectors.SelectorKey) -> None:
    _, pid, client = key.data
    _, status = os.waitpid(pid, 0)
    poll.unregister(key.fileobj)
    os.close(key.fd)
    try:
        poll.unregister(client)
        client.sendall(f"{status}\n".encode())
    except (KeyError, OSError):
        pass  # the client has disconnected
    client.close()


def _is_connected(client: Any) -> bool:
    try:
        return bool(client.recv(1))
    except OSError:
        return False


def _become(request: dict[str, Any], descriptors: list[int]) -> None:
    """Take the client's environment, folder and descriptors, with the client's descriptor numbers."""
    import fcntl

    wanted: list[int] = request["descriptors"]
    first = max([*wanted, *descriptors, 2]) + 1
    moved = [fcntl.fcntl(descriptor, fcntl.F_DUPFD, first) for descriptor in descriptors]
    os.closerange(3, first)
    for source, target in zip(moved, wanted, strict=True):
        os.dup2(source, target)
        os.close(source)
    if "--multiprocessing-fork" in request["argv"]:
        # vLLM sets the title of its engine cores. setproctitle finds the place for it only while the environment is
        # where the kernel put it. Not for Ray's workers: Ray sets titles in another way, which this would break.
        importlib.import_module("setproctitle").getproctitle()
    _join(request["group"])
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    # Forks would draw equal random numbers otherwise.
    random.seed()
    sys.modules["numpy"].random.seed()
    sys.modules["torch"].seed()


def _join(group: int) -> None:
    """Leave the process group of the fork server: Ray kills the whole group of a worker that ends.

    An engine core joins its replica's group. A worker leads its own group: its client is in Ray's session.
    """
    try:
        os.setpgid(0, group)
    except OSError:
        os.setpgid(0, 0)


def _run(argv: list[str]) -> None:
    """Do what `python ARGV` does."""
    while argv[0].startswith("-") and argv[0] not in ("-c", "-m"):
        argv = argv[1:]
    if Path(argv[0]).name == "setup_worker.py":
        argv = _run_setup_worker(argv)
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


def _run_setup_worker(argv: list[str]) -> list[str]:
    """Do what Ray's setup_worker.py does, without the shell and the interpreter that it starts.

    Sets the variables of the runtime environment and returns the worker's own arguments.
    """
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
