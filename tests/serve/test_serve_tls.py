"""TLS between the gateway and the Serve port: real Ray Serve with the rendered serveConfigV2, behind real HAProxy.

Serve is started as KubeRay does it: by a PUT of serveConfigV2 to the dashboard. Only paths, address and ports differ.
"""

import json
import secrets
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from charts.kit import rendered
from gateway.kit.certificates import create_client_context, issue, write_ca
from gateway.kit.process import GatewayProcess, start_gateway
from gateway.kit.values import Values, tenant
from rayhelm import processes
from rayhelm.run.local import ray_cluster
from rayhelm.run.local.client import ServeApi
from rayhelm.run.local.state import EndpointState

pytestmark = [pytest.mark.serve, pytest.mark.timeout(900)]

APP = Path(__file__).parent / "tls_app"
NAME = "llama-serve-svc.models.svc.cluster.local"
"""Name of the certificate: the Service that KubeRay creates for release `llama`."""
START = 300.0
RELEASE: dict[str, Any] = {
    "serve": {
        "tls": {"secretName": "llama-serve-tls"},
        "applications": {"chat": None},
        "customApplications": {"echo": {"importPath": "echo_over_tls:app"}},
    },
    "workerGroups": {"gpu": {"minReplicas": 0}},
    "weights": {"enabled": False},
    "test": {"enabled": False},
}


@dataclass(frozen=True)
class RayServe:
    """A running Ray Serve."""

    port: int
    agent_port: str
    service: dict[str, Any]
    """The rendered RayService."""

    def count_requests(self) -> int:
        answer = httpx.get(f"https://127.0.0.1:{self.port}/echo/", verify=False, trust_env=False)
        return int(answer.raise_for_status().json()["requests"])


@pytest.fixture(scope="module")
def ray() -> Iterator[RayServe]:
    (service,) = [each for each in rendered(RELEASE, release="llama") if each["kind"] == "RayService"]
    certificate, token, taken = issue("llama", names=(NAME,)), secrets.token_hex(32), set[int]()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="serve-tls-")))
        state = EndpointState(folder)
        state.prepare(token)
        for name, text in {"tls.crt": certificate.certificate, "tls.key": certificate.key}.items():
            (folder / name).write_text(text)
        port, dashboard, metrics, own = (processes.find_free_port(taken) for _ in range(4))
        config = json.loads(service["spec"]["serveConfigV2"].replace("/etc/serve-tls/", f"{folder}/"))
        config["http_options"] |= {"host": "127.0.0.1", "port": port}
        env = ray_cluster.build_environment(state, stand_in=True, metrics=own) | {"PYTHONPATH": str(APP)}
        command = ray_cluster.build_head_command(
            state, python=Path(sys.executable), cpus=2, dashboard=dashboard, metrics=metrics, taken=taken
        )
        stack.callback(processes.stop_run, state.run, grace=2)
        head = processes.start(command, run=state.run, log=folder / "ray.log", env=env, cwd=folder)
        client = stack.enter_context(
            httpx.Client(
                base_url=f"http://127.0.0.1:{dashboard}",
                headers={"Authorization": f"Bearer {token}"},
                timeout=120,
                trust_env=False,
            )
        )
        api = ServeApi(client)
        processes.wait_until(lambda: api.is_reachable() or None, what="Ray", timeout=START, needs=[head])
        api.deploy(config)
        is_running = lambda: ((status := api.get_status()) and status.is_running) or None  # noqa: E731
        processes.wait_until(is_running, what="Serve", timeout=START, needs=[head])
        agent = command[command.index("--dashboard-agent-listen-port") + 1]
        yield RayServe(port, agent, service)


def start(stack: ExitStack, ray: RayServe, *, ca: str = "ca", server_name: str = NAME) -> GatewayProcess:
    """Start a gateway whose only endpoint is this Serve."""
    end = {"host": "127.0.0.1", "cidrs": ["127.0.0.1/32"], "port": ray.port, "tls": True, "serverName": server_name}
    values: Values = {
        "tenants": {"acme": tenant("acme", ["llama"])},
        "models": {"llama": {"versions": {"stable": {"routePrefix": "/echo", "endpoints": {"ray": end}}}}},
        "upstreamTls": {"certificateAuthority": {"configMapName": "serve-ca"}},
        "health": {"intervalSeconds": 0.2, "failures": 1},
    }
    mounted = {"upstream/ca.crt": write_ca(ca)}
    quick = {"haproxy.cfg": lambda text: text.replace("retries 5", "retries 0")}
    return stack.enter_context(start_gateway(values, mounted=mounted, edit=quick))


def probe_command(ray: RayServe) -> str:
    """Return the shell command of the readiness probe of a worker, with the ports of this computer."""
    (group,) = ray.service["spec"]["rayClusterConfig"]["workerGroupSpecs"]
    (container,) = group["template"]["spec"]["containers"]
    bash, flag, command = container["readinessProbe"]["exec"]["command"]
    assert (bash, flag) == ("bash", "-c")
    return str(command).replace(":52365/", f":{ray.agent_port}/").replace(":8000/", f":{ray.port}/")


def shell(command: str) -> int:
    return subprocess.run(["bash", "-c", command], capture_output=True, check=False, timeout=60).returncode


def test_serve_port_accepts_tls_only(ray: RayServe) -> None:
    context = create_client_context()
    context.check_hostname = False
    found = httpx.get(f"https://127.0.0.1:{ray.port}/-/healthz", verify=context, trust_env=False)
    assert (found.status_code, found.text) == (200, "success")
    with pytest.raises(httpx.TransportError):
        httpx.get(f"http://127.0.0.1:{ray.port}/-/healthz", trust_env=False)


def test_readiness_probe_of_the_chart_succeeds_where_that_of_kuberay_fails(ray: RayServe) -> None:
    """KubeRay's is `wget http://localhost:<serve>/-/healthz`, in v1.6.2 and v1.7.0."""
    assert shell(probe_command(ray)) == 0
    plain = f"wget --tries 1 -T 10 -q -O- http://localhost:{ray.port}/-/healthz | grep success"
    assert shell(plain) != 0
    assert shell(probe_command(ray).replace(f":{ray.port}/", ":9/")) != 0


def test_gateway_reaches_serve_with_the_right_authority(ray: RayServe) -> None:
    before = ray.count_requests()
    with ExitStack() as stack:
        gateway = start(stack, ray)
        answers = [gateway.chat(text=f"hello {number}") for number in range(20)]
    assert {(answer.status, answer.endpoint) for answer in answers} == {(200, "ray")}
    assert answers[-1].json()["body"]["messages"][0]["content"] == "hello 19"
    assert ray.count_requests() == before + 20


@pytest.mark.parametrize(
    "wrong", [{"ca": "unknown"}, {"server_name": "other.models.svc.cluster.local"}], ids=["other-ca", "other-name"]
)
def test_gateway_sends_nothing_to_a_wrong_certificate_of_serve(ray: RayServe, wrong: dict[str, str]) -> None:
    before = ray.count_requests()
    with ExitStack() as stack:
        gateway = start(stack, ray, **wrong)
        gateway.wait_for_output("Server llama:stable/ray is DOWN, reason: Layer6 invalid response")
        assert [gateway.chat().status for _ in range(5)] == [503] * 5
    assert ray.count_requests() == before


def test_gateway_without_tls_does_not_reach_serve(ray: RayServe) -> None:
    with ExitStack() as stack:
        end = {"host": "127.0.0.1", "cidrs": ["127.0.0.1/32"], "port": ray.port}
        values: Values = {
            "tenants": {"acme": tenant("acme", ["llama"])},
            "models": {"llama": {"versions": {"stable": {"routePrefix": "/echo", "endpoints": {"ray": end}}}}},
        }
        assert stack.enter_context(start_gateway(values)).chat().status >= 500
