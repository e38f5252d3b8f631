"""The stand-in for Ray follows the API server, whatever becomes of it, and asks Ray what a configuration may hold."""

import base64
import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import yaml
from pydantic import BaseModel

import testbed.ray_stand_in
from shared.ray_stand_in_world import CHAT, CONFIG, World, head, kubeconfig, raycluster, said, wait_for, workers
from testbed.ray_stand_in.mirror import Followed, Mirror
from testbed.ray_stand_in.objects import Unreachable
from testbed.ray_stand_in.schema import RayCheck, shape_check

Answers = list[Exception | list[bytes]]


def name_of(found: Any) -> str:
    return str(found["metadata"]["name"])


def thing(name: str, uid: str | None = None) -> dict[str, Any]:
    return {"metadata": {"name": name, "uid": uid or name}}


def listed(*names: str) -> list[bytes]:
    return [json.dumps({"metadata": {"resourceVersion": "7"}, "items": [thing(name) for name in names]}).encode()]


def event(kind: str, found: Any) -> bytes:
    return json.dumps({"type": kind, "object": found}).encode()


def followed(answers: Answers) -> tuple[Followed[str], list[dict[str, str]], list[tuple[str, ...]]]:
    """One kind, followed until the answers are used up: also what was asked, and what was known at each pause."""
    asked: list[dict[str, str]] = []
    known: list[tuple[str, ...]] = []

    def ask(**parameters: str) -> Iterator[bytes]:
        asked.append(parameters)
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        yield from answer

    kind = Followed("things", ask, name_of)
    kind.follow(lambda: bool(answers), lambda: known.append(tuple(kind.all)))
    return kind, asked, known


# -- following ---------------------------------------------------------------------------------------------------------


def test_kind_is_listed_once_and_then_watched() -> None:
    kind, asked, _ = followed(
        [
            listed("a", "b"),
            [
                event("ADDED", thing("c")),
                event("MODIFIED", thing("a, changed", "a")),
                event("DELETED", thing("b")),
                event("ADDED", thing("d")),
            ],
        ]
    )
    assert kind.all == ("a, changed", "c", "d")
    assert asked == [{}, {"watch": "true", "resourceVersion": "7", "timeoutSeconds": "240"}]


def test_nothing_is_known_before_the_first_list() -> None:
    kind, _, _ = followed([OSError("connection refused")])
    assert (kind.seen, kind.all) == (False, ())


@pytest.mark.parametrize(
    "broken",
    [OSError("connection reset"), [b'{"type": "ADDED", "obj'], [event("ERROR", {"code": 410})], [b'{"type": "ADDED"}']],
    ids=["a restart", "half a line", "a version too old", "half an object"],
)
def test_after_whatever_goes_wrong_it_is_listed_again(broken: Any) -> None:
    kind, _, known = followed([listed("a"), broken, listed("b"), []])
    assert known[0] == ("a",)
    assert kind.all == ("b",)


def test_while_the_api_server_is_away_the_last_state_holds() -> None:
    away = OSError("connection refused")
    _, _, known = followed([listed("a"), [], away, away])
    assert known == [("a",), ("a",), ("a",)]


def test_loss_is_reported_once_and_so_is_the_return(capfd: pytest.CaptureFixture[str]) -> None:
    away = OSError("connection refused")
    followed([away, away, away, listed("a"), [], listed("a"), []])
    lost, back = capfd.readouterr().err.splitlines()
    assert lost == "things: trying again until the API server answers: connection refused"
    assert back == "things: the API server is back"


def test_expired_resource_version_is_not_an_error(capfd: pytest.CaptureFixture[str]) -> None:
    kind, _, _ = followed([listed("a"), [event("ERROR", {"metadata": {}, "code": 410})], listed("b"), []])
    assert (kind.all, capfd.readouterr().err) == (("b",), "")


# -- an API server over HTTP -------------------------------------------------------------------------------------------


class ApiServer(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Kubernetes)
        self.items = {"/api/v1/pods": [head(), *workers(2)], "/apis/ray.io/v1/rayclusters": [raycluster()]}
        self.secrets = {"/api/v1/namespaces/models/secrets/own": {"auth_token": base64.b64encode(b"s3cret").decode()}}
        self.asked: list[str] = []
        self.selectors: set[str] = set()
        self.ended = threading.Event()


class Kubernetes(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: ApiServer

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        query = parse_qs(url.query)
        self.server.asked.append(f"{self.headers['Authorization']} {url.path}")
        if url.path in self.server.secrets:
            self._answer({"data": self.server.secrets[url.path]})
        elif url.path not in self.server.items:
            self.send_error(403 if url.path.endswith("forbidden") else 404)
        elif "watch" in query:
            self._watched({"type": "ADDED", "object": head("head-2", ip="10.0.0.2", owner="uid-new")})
        else:
            self.server.selectors.update(query.get("labelSelector", ()))
            self._answer({"metadata": {"resourceVersion": "1"}, "items": self.server.items[url.path]})

    def _answer(self, content: Any) -> None:
        body = json.dumps(content).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _watched(self, event: Any) -> None:
        """In pieces that do not end where lines end, and then nothing more for long."""
        line = json.dumps(event).encode() + b"\n"
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for piece in (line[:100], line[100:]):
            self.wfile.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
        self.server.ended.wait(300)
        self.wfile.write(b"0\r\n\r\n")

    def log_message(self, format: str, *args: object) -> None: ...


@pytest.fixture
def api() -> Iterator[ApiServer]:
    with ApiServer() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.ended.set()
        server.shutdown()
        thread.join()


@pytest.fixture
def mirror(api: ApiServer, tmp_path: Path) -> Mirror:
    return Mirror(kubeconfig(tmp_path, f"http://127.0.0.1:{api.server_port}"))


def test_it_follows_the_api_server_that_a_kubeconfig_names(api: ApiServer, mirror: Mirror) -> None:
    del api.items["/apis/ray.io/v1/rayclusters"]
    mirror.start()
    try:
        wait_for(lambda: len(mirror.pods()) == 4)
        assert not mirror.ready()
        api.items["/apis/ray.io/v1/rayclusters"] = [raycluster()]
        wait_for(mirror.ready)
        assert [cluster.name for cluster in mirror.clusters()] == ["web-abcde"]
        assert {pod.uid for pod in mirror.pods() if pod.is_head} == {"head-1", "head-2"}
        assert api.selectors == {"ray.io/node-type in (head, worker)"}
        assert "Bearer t /api/v1/pods" in api.asked
    finally:
        mirror.stop()


def test_one_value_of_a_secret_is_read_when_it_is_asked_for(api: ApiServer, mirror: Mirror) -> None:
    assert mirror.secret("models", "own", "auth_token") == "s3cret"
    assert mirror.secret("models", "own", "other") is None
    assert mirror.secret("models", "another", "auth_token") is None
    assert api.asked[0] == "Bearer t /api/v1/namespaces/models/secrets/own"


def test_unreadable_secret_differs_from_a_missing_one(mirror: Mirror) -> None:
    with pytest.raises(Unreachable, match="403"):
        mirror.secret("models", "forbidden", "auth_token")


def test_without_an_api_server_there_is_no_secret_to_tell(tmp_path: Path) -> None:
    with pytest.raises(Unreachable, match="refused"):
        Mirror(kubeconfig(tmp_path, "http://127.0.0.1:1")).secret("models", "own", "auth_token")


def test_its_rights_are_those_that_it_uses() -> None:
    role = yaml.safe_load((Path(testbed.ray_stand_in.__file__).parent / "cluster-role.yaml").read_text())
    assert {(*rule["resources"], *rule["verbs"]) for rule in role["rules"]} == {
        ("pods", "list", "watch"),
        ("rayclusters", "list", "watch"),
        ("secrets", "get"),
    }


# -- Ray's schema ------------------------------------------------------------------------------------------------------


class Strict(BaseModel):
    applications: list[str]


def test_first_put_waits_until_the_schema_is_there() -> None:
    there = threading.Event()

    def load() -> tuple[str, type[BaseModel]]:
        there.wait(300)
        return "9.9.9", Strict

    check = RayCheck(load)
    assert check.by == "loading Ray"
    answers: list[str | None] = []
    asking = threading.Thread(target=lambda: answers.append(check(CONFIG)))
    asking.start()
    assert answers == []
    there.set()
    asking.join()
    assert "Input should be a valid string" in str(answers)
    assert check.by == "Ray 9.9.9"


@pytest.mark.parametrize(
    "error", [ModuleNotFoundError("No module named 'ray'"), AttributeError("half an installation")]
)
def test_without_ray_the_shape_is_checked_and_that_is_said(error: Exception) -> None:
    def load() -> tuple[str, type[BaseModel]]:
        raise error

    check = RayCheck(load)
    assert check(CONFIG) is None
    assert "import_path" in str(check({"applications": [{}]}))
    assert check.by == f"only the shape of the JSON, because Ray cannot be imported: {error}"


@pytest.fixture(scope="module")
def ray_check() -> Callable[[object], str | None]:
    return RayCheck()


@pytest.mark.serve
@pytest.mark.parametrize(
    ("config", "objection"),
    [
        ({"applications": [CHAT, CHAT]}, "Found multiple configs for application"),
        ({"applications": [CHAT, {**CHAT, "name": "other"}]}, "Found duplicate applications for route prefix"),
        ({"applications": [{**CHAT, "deployments": [{"name": "M", "num_replicas": -1}]}]}, "num_replicas"),
        ({"applications": [{**CHAT, "port": 8000}]}, "port"),
        ({"applications": [{"name": "chat"}]}, "import_path"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_ray_refuses_what_the_shape_lets_through(
    ray_check: Callable[[object], str | None], config: dict[str, Any], objection: str
) -> None:
    world = World(check=ray_check)
    assert world.put().status == 200
    refusal = world.put(config)
    assert refusal.status == 400
    assert objection in refusal.body.decode()
    assert refusal.body.decode().startswith(f"{len(refusal_lines(refusal.body))} validation error")
    assert world.status() == "RUNNING"


@pytest.mark.serve
@pytest.mark.parametrize("failure", [{}, {"applications": {"chat": "DEPLOY_FAILED"}}], ids=str)
@pytest.mark.parametrize("ready", [2, 1])
def test_ray_reads_the_answers_as_its_own(failure: dict[str, Any], ready: int) -> None:
    from ray.serve.schema import ServeInstanceDetails

    world = World()
    world.put({**CONFIG, "http_options": {"port": 8000}, "target_capacity": 50})
    world.status()
    world.ray_pods = [head(), *workers(ready)]
    world.tell(**failure)
    details = ServeInstanceDetails.model_validate(said(world.get()))
    assert details.applications["chat"].status == world.status()
    assert details.target_capacity == 50


def test_ray_is_not_needed_to_start() -> None:
    assert shape_check(CONFIG) is None


def refusal_lines(body: bytes) -> list[str]:
    return [line for line in body.decode().splitlines() if line.startswith("  ") and "[type=" in line]
