"""The stand-in for Ray on a socket: as a proxy, for its client, over a restart, and as a program."""

import http.client
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from rayhelm.errors import RayhelmError
from shared.ports import reserve_port
from shared.ray_stand_in_world import APPLICATIONS, CONFIG, World, dashboard, head, kubeconfig, said, wait_for
from testbed.ray_stand_in.client import FailureFields, RayStandIn
from testbed.ray_stand_in.failures import Failure
from testbed.ray_stand_in.server import LARGEST, Server

ROOT = Path(__file__).resolve().parents[2]
HEAD = "web-abcde-head-svc.models.svc.cluster.local"


@contextmanager
def listening(world: World) -> Iterator[str]:
    with Server(0, world.app) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server.url
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def url(world: World) -> Iterator[str]:
    with listening(world) as url:
        yield url


@pytest.fixture
def operator(url: str) -> Iterator[httpx.Client]:
    """A client whose proxy is the stand-in, as the operator's is."""
    with httpx.Client(proxy=url, trust_env=False, timeout=300) as client:
        yield client


@pytest.fixture
def stand_in(url: str) -> Iterator[RayStandIn]:
    with RayStandIn(url) as client:
        yield client


# -- as a proxy --------------------------------------------------------------------------------------------------------


def test_absolute_urls_reach_the_head_that_they_name(operator: httpx.Client) -> None:
    assert operator.put(f"http://{HEAD}:8265{APPLICATIONS}", json=CONFIG).status_code == 200
    answer = operator.get(f"http://{HEAD}:8265{APPLICATIONS}", params={"api_type": "declarative"})
    assert answer.json()["applications"]["chat"]["status"] == "RUNNING"
    assert answer.headers["content-type"] == "application/json"
    assert operator.get("http://10.0.0.1:8000/-/healthz").text == "success"


def test_header_names_are_case_insensitive(world: World, operator: httpx.Client) -> None:
    mode = {"name": "RAY_AUTH_MODE", "value": "token"}
    token = {"name": "RAY_AUTH_TOKEN", "valueFrom": {"secretKeyRef": {"name": "own", "key": "auth_token"}}}
    world.ray_pods = [head(env=[mode, token])]
    world.secrets = {"models/own/auth_token": "s3cret"}
    url = f"http://{HEAD}:8265{APPLICATIONS}"
    assert operator.get(url).status_code == 401
    assert operator.get(url, headers={"X-Ray-Authorization": "Bearer s3cret"}).status_code == 200


def test_unknown_host_gets_502(operator: httpx.Client) -> None:
    answer = operator.get(f"http://other-head-svc.models.svc.cluster.local:8265{APPLICATIONS}")
    assert answer.status_code == 502
    assert "other-head-svc" in answer.text


def test_pod_without_an_ip_gets_502(url: str) -> None:
    """The operator asks http://:8000/-/healthz then, which no library here would send."""
    answers = spoken(url, b"GET http://:8000/-/healthz HTTP/1.1\r\nHost: :8000\r\nConnection: close\r\n\r\n")
    assert answers.startswith(b"HTTP/1.1 502 ")


def test_one_connection_carries_many_requests(world: World, url: str) -> None:
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=300)
    connection.connect()
    sockets = set()
    for method, target, body in [
        ("GET", f"http://{HEAD}:8265{APPLICATIONS}", None),
        ("PUT", dashboard(), b'{"applications": [{"import_path": "chat:app"}]}'),
        ("PUT", dashboard(), b"not json"),
        ("GET", "http://10.0.0.9:8000/-/healthz", None),
        ("GET", "http://10.0.0.1:8000/-/healthz", None),
    ]:
        connection.request(method, target, body)
        connection.getresponse().read()
        sockets.add(connection.sock)
    connection.close()
    assert len(sockets) == 1
    assert [put["status"] for put in world.puts()] == [200, 500]


@pytest.mark.parametrize(
    ("header", "body"), [("Transfer-Encoding: chunked", b"0\r\n\r\n"), (f"Content-Length: {LARGEST + 1}", b"")]
)
def test_body_without_a_valid_length_is_refused(world: World, url: str, header: str, body: bytes) -> None:
    answer = spoken(url, f"PUT {dashboard()} HTTP/1.1\r\nHost: x\r\n{header}\r\n\r\n".encode() + body)
    assert answer.startswith(b"HTTP/1.1 411 ")
    assert world.puts() == []


def test_tunnels_are_not_dug(url: str) -> None:
    assert spoken(url, b"CONNECT 10.0.0.1:8000 HTTP/1.1\r\nHost: x\r\n\r\n").startswith(b"HTTP/1.1 501 ")


def test_it_listens_on_loopback_only() -> None:
    with Server(0, World().app) as server:
        assert server.server_address[0] == "127.0.0.1"


def test_request_is_logged_when_its_answer_changes(
    world: World, operator: httpx.Client, capfd: pytest.CaptureFixture[str]
) -> None:
    for ready in ("True", "False", "False", "True"):
        world.ray_pods = [head(ready=ready)]
        operator.get(f"http://{HEAD}:8265{APPLICATIONS}")
    reported = [line.partition(" GET ")[2] for line in capfd.readouterr().err.splitlines()]
    reason = "the head of the RayCluster web-abcde is not Running and Ready"
    assert reported == [f"{dashboard()} 502 {reason}", f"{dashboard()} 200"]


# -- no answer ---------------------------------------------------------------------------------------------------------


def test_reported_to_hang_it_is_silent_until_it_is_healed(
    world: World, url: str, stand_in: RayStandIn, operator: httpx.Client
) -> None:
    world.put()
    stand_in.fail("models", "web", hang=True)
    host, port = url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port))) as waiting:
        waiting.sendall(f"GET {dashboard()} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        with pytest.raises(httpx.ReadTimeout):
            operator.get("http://10.0.0.1:8000/-/healthz", timeout=httpx.Timeout(60, read=0.5))
        stand_in.heal("models", "web")
        waiting.settimeout(300)
        assert waiting.recv(1) == b""
    assert operator.get("http://10.0.0.1:8000/-/healthz").status_code == 200


def test_client_that_disconnects_is_not_waited_for(world: World, url: str) -> None:
    world.put()
    world.tell(hang=True)
    before = threading.active_count()
    host, port = url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port))) as waiting:
        waiting.sendall(f"GET {dashboard()} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        wait_for(lambda: threading.active_count() > before)
    wait_for(lambda: threading.active_count() <= before)


# -- for its client ----------------------------------------------------------------------------------------------------


def test_client_reads_what_was_put(world: World, stand_in: RayStandIn) -> None:
    world.put()
    world.put({})
    accepted, refused = stand_in.puts("models", "web")
    assert (accepted.cluster, accepted.head, accepted.status, accepted.body) == ("web-abcde", "head-1", 200, CONFIG)
    assert refused.status == 400
    assert "applications" in refused.answer
    assert 0 < accepted.time <= refused.time
    assert stand_in.puts("elsewhere", "web") == ()


def test_client_sets_and_removes_a_failure(world: World, stand_in: RayStandIn) -> None:
    world.put()
    assert stand_in.failure("models", "web") is None
    stand_in.fail("models", "web", applications={"chat": "DEPLOY_FAILED"}, serve=500)
    failure = stand_in.failure("models", "web")
    assert failure is not None
    assert (failure.applications, failure.serve) == ({"chat": "DEPLOY_FAILED"}, 500)
    assert (world.status(), world.health().status) == ("DEPLOY_FAILED", 500)
    stand_in.fail("models", "web", serve=503)
    assert (world.status(), world.health().status) == ("RUNNING", 503)
    stand_in.heal("models", "web")
    assert world.health().status == 200


def test_failing_heals_also_after_an_exception(world: World, stand_in: RayStandIn) -> None:
    world.put()

    def goes_wrong() -> None:
        with stand_in.failing("models", "web", serve=503):
            assert world.health().status == 503
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        goes_wrong()
    assert world.health().status == 200


def test_client_supports_all_fields_of_a_failure() -> None:
    assert set(FailureFields.__annotations__) == set(Failure.model_fields)


def test_client_reports_readiness_and_the_check(stand_in: RayStandIn) -> None:
    assert stand_in.ready()
    assert stand_in.checked_by() == "shape"


def test_client_raises_when_a_request_is_refused(stand_in: RayStandIn) -> None:
    with pytest.raises(RayhelmError, match=r"refused DELETE /-/stand-in/models/Web\?"):
        stand_in.heal("models", "Web?")


def test_client_raises_when_no_stand_in_answers() -> None:
    with (
        reserve_port() as port,
        RayStandIn(f"http://127.0.0.1:{port}") as client,
        pytest.raises(RayhelmError, match=r"no stand-in for Ray answers on http://127"),
    ):
        client.ready()


# -- over a restart ----------------------------------------------------------------------------------------------------


def test_restart_with_a_folder_keeps_the_state(tmp_path: Path) -> None:
    before = World(tmp_path / "state")
    before.put()
    assert before.status() == "RUNNING"
    before.tell("web", serve=503)
    before.tell("other", hang=True, only_new=True)
    after = World(tmp_path / "state")
    after.ray_pods = [head()]
    assert after.status() == "UNHEALTHY"  # It ran before: the lost workers are a loss, not a beginning.
    assert after.health().status == 503
    assert after.puts() == before.puts() != []
    after.heal("web")
    assert World(tmp_path / "state").health().status == 200


def test_restart_without_a_folder_loses_the_state() -> None:
    World().put()
    assert said(World().get())["applications"] == {}


def test_no_half_written_state_is_left_or_read(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.put()
    (tmp_path / "clusters" / ".uid-web.json.new").write_text("{half")
    assert World(tmp_path).status() == "RUNNING"


@pytest.mark.parametrize("file", ["failures.json", "clusters/uid-web.json"])
def test_state_of_another_kind_is_refused_by_name(tmp_path: Path, file: str) -> None:
    (tmp_path / "clusters").mkdir()
    (tmp_path / file).write_text("[1]")
    with pytest.raises(RayhelmError, match=f"{file} is not a state file of the stand-in for Ray: delete it"):
        World(tmp_path)


# -- as a program ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--port", "0", "--kubeconfig", "nowhere"], 3, "kubeconfig nowhere does not exist"),
        (["--port", "0", "--kubeconfig", __file__], 1, "is not a kubeconfig"),
        (["--port", "70000", "--kubeconfig", __file__], 2, "--port 70000 is not between 0 and 65535"),
        (["--kubeconfig", __file__], 2, "--port"),
    ],
)
def test_wrong_arguments_are_a_clear_error(arguments: list[str], code: int, said: str) -> None:
    answer = program(*arguments)
    assert answer.returncode == code
    assert said in answer.stderr
    assert "Traceback" not in answer.stderr


def test_port_in_use_is_a_clear_error(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        answer = program("--port", str(port), "--kubeconfig", str(kubeconfig(tmp_path, "http://127.0.0.1:1")))
    assert answer.returncode == 2
    assert f"port {port} is taken by " in answer.stderr
    assert "Traceback" not in answer.stderr


def program(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "testbed.ray_stand_in", *arguments]
    return subprocess.run(command, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True)


def spoken(url: str, request: bytes) -> bytes:
    """What comes back for exactly these bytes, up to the end of the connection."""
    host, port = url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port))) as connection:
        connection.settimeout(300)
        connection.sendall(request)
        return b"".join(iter(lambda: connection.recv(65536), b""))
