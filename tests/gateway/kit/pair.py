"""Two gateways that know each other, each with its upstream, and TLS between them."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

from charts.kit import over
from gateway.kit.certificates import Certificate, create_client_context, issue, write_ca
from gateway.kit.process import GatewayProcess, hash_key, replace_file, start_gateway
from gateway.kit.upstream import Upstream, start_upstreams
from gateway.kit.values import Values, minimal_values
from gateway.kit.wait import wait_for
from shared.ports import reserve_port


@dataclass
class Side:
    """One cluster: its gateway and its upstream."""

    gateway: GatewayProcess
    upstream: Upstream

    def is_up(self, server: str, model: str = "llama") -> bool:
        """Return whether a server of the model's backend is available."""
        text = self.gateway.request_metrics_port("/metrics")[1]
        wanted = f'haproxy_server_status{{proxy="{model}:stable",server="{server}",state="UP"}} 1'
        return wanted in text

    def wait_until(self, server: str, *, up: bool, model: str = "llama") -> None:
        wait_for(lambda: self.is_up(server, model) == up, f"{server} is {'up' if up else 'down'}")

    def write_remote_key(self, remote: str, key: str) -> None:
        """Replace the key that this gateway sends."""
        replace_file(self.gateway.folder / f"remote/{remote}/key", f"{key}\n")


def remote(port: int, **more: Any) -> Values:
    """A remote gateway on this computer, with the certificate name `gateway.example`."""
    base = {
        "host": "127.0.0.1",
        "port": port,
        "serverName": "gateway.example",
        "secretName": "remote",
        "cidrs": ["127.0.0.1/32"],
        "models": {"llama": ["stable"]},
        "certificateAuthority": {"configMapName": "ca"},
    }
    return over(base, more)


def tls_values(upstream: Upstream, overlay: Values | None = None) -> Values:
    """Values of a gateway with TLS and quick health checks."""
    base = {
        "exposure": {"kind": "TLS", "hosts": ["gateway.example"], "tls": {"secretNames": ["public"]}},
        "networkPolicy": {"allowedClients": {"all": {"cidrs": ["127.0.0.1/32"]}}},
        "health": {"intervalSeconds": 0.2, "failures": 3},
        "timeouts": {"keyRefreshSeconds": 0.1, "connectSeconds": 1},
    }
    return over(minimal_values(upstream, base), overlay or {})


def tls_files(certificate: Certificate) -> dict[str, str]:
    return {"tls/public.crt": certificate.certificate, "tls/public.crt.key": certificate.key}


@contextmanager
def start_side(name: str, other: str, upstream: Upstream, port: int, other_port: int, **more: Any) -> Iterator[Side]:
    """Start one gateway.

    `more` has `overlay` (values), `certificate`, and `to_itself` for a gateway that forwards to itself.
    """
    other_port = port if more.get("to_itself") else other_port
    sent = f"{other}-to-{name}" if more.get("to_itself") else f"{name}-to-{other}"
    values = tls_values(upstream, over({"remoteGateways": {other: remote(other_port)}}, more.get("overlay", {})))
    mounted = {
        **tls_files(more.get("certificate") or issue(f"{name}.example")),
        f"remote/{other}/ca.crt": write_ca(),
        f"remote/{other}/key": sent,
        f"keys/@{other}/keys": f"{hash_key(f'{other}-to-{name}')} first\n",
    }
    # Each of these retries takes a second.
    quick = {"haproxy.cfg": lambda text: text.replace("retries 5", "retries 0")}
    with start_gateway(values, port=port, mounted=mounted, tls=create_client_context(), edit=quick) as gateway:
        yield Side(gateway, upstream)


@contextmanager
def start_pair(eu: dict[str, Any] | None = None, us: dict[str, Any] | None = None) -> Iterator[tuple[Side, Side]]:
    """Start the gateways `eu` and `us`, and wait until `eu` finds `us` available unless something of both differs."""
    with ExitStack() as stack:
        one, two = stack.enter_context(start_upstreams("eu", "us"))
        ports = stack.enter_context(reserve_port()), stack.enter_context(reserve_port())
        right = stack.enter_context(start_side("us", "eu", two, ports[1], ports[0], **(us or {})))
        left = stack.enter_context(start_side("eu", "us", one, *ports, **(eu or {})))
        if not eu and not us:
            left.wait_until("remote.us", up=True)
            right.wait_until("remote.eu", up=True)
        yield left, right
