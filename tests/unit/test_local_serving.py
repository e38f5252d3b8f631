"""What `up` decides before it starts anything."""

import os
import socket
import stat
from pathlib import Path

import pytest

from rayhelm import processes
from rayhelm.cli.up import _serve_config, _values
from rayhelm.errors import FleetError, MissingError
from rayhelm.local import preflight
from rayhelm.local import serve as serving
from rayhelm.local.config import gpus, merge, served
from rayhelm.local.ray_cluster import environment, head_command
from rayhelm.local.serve import down
from rayhelm.local.state import Endpoint, Home
from rayhelm.render.files import render_fleet
from rayhelm.standin.model import local

FLEETS = Path(__file__).parents[2] / "values"
LLM = "ray.serve.llm:build_openai_app"


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


def test_only_where_it_listens_is_changed() -> None:
    rendered = config(("chat", "/chat"))
    merged = merge({"chat": rendered}, port=9000)
    assert merged["http_options"] == {"host": "127.0.0.1", "port": 9000, "request_timeout_s": 1200}
    assert merged["applications"] == rendered["applications"]
    assert rendered["http_options"] == {"host": "0.0.0.0", "port": 8000, "request_timeout_s": 1200}


def test_services_that_share_a_route_are_told_apart_by_name() -> None:
    merged = merge({"one": config(("app", "/")), "two": config(("app", "/"))}, port=8000)
    assert [(app["name"], app["route_prefix"]) for app in merged["applications"]] == [("app", "/"), ("two-app", "/two")]


def test_models_are_known_with_their_prefix_and_task() -> None:
    found = served(config(("bge", "/embed"), ("chat", "/")), {"bge": "embed"})
    assert [(model.model, model.prefix, model.task) for model in found] == [
        ("bge", "/embed", "embed"),
        ("chat", "", "chat"),
    ]


def test_a_taken_port_is_told_with_its_holder_and_a_free_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with_packages(monkeypatch)
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        port = server.getsockname()[1]
        with pytest.raises(FleetError, match=rf"port {port} is taken by .*pid {os.getpid()}\)(.|\n)*--port \d+"):
            preflight.check(Home(tmp_path), port=port, models=1, stand_in=False)


def test_a_missing_package_is_told_with_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preflight, "find_spec", lambda name: None if name == "vllm" else object())
    with pytest.raises(MissingError, match="vllm is not installed") as error:
        preflight.check(Home(tmp_path), port=free(), models=1, stand_in=True)
    assert "make setup" in error.value.how


def test_a_missing_libnuma_is_told_with_its_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with_packages(monkeypatch)
    monkeypatch.setattr(preflight.ctypes.util, "find_library", lambda name: None)
    with pytest.raises(MissingError, match=r"libnuma(.|\n)*apt-get install libnuma1"):
        preflight.check(Home(tmp_path), port=free(), models=1, stand_in=True)


def test_too_little_memory_is_told_before_anything_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with_packages(monkeypatch)
    monkeypatch.setattr(preflight.ctypes.util, "find_library", lambda name: name)
    with pytest.raises(MissingError, match=r"1000 models need about 783\.\d GiB"):
        preflight.check(Home(tmp_path), port=free(), models=1000, stand_in=True)


def test_an_earlier_endpoint_is_told_and_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with_packages(monkeypatch)
    home = Home(tmp_path)
    url = "http://127.0.0.1:8000"
    home.write(
        Endpoint(
            url=url, bare=url, port=8000, dashboard=1, models=(), stand_in=True, gateway=False, config="", ready=True
        )
    )
    earlier = processes.start(["sleep", "60"], run=home.run, log=tmp_path / "log")
    try:
        with pytest.raises(FleetError, match=r"http://127.0.0.1:8000(.|\n)*rayhelm down"):
            preflight.check(home, port=free(), models=1, stand_in=False)
        assert earlier.alive
    finally:
        assert down(home) == 1


def test_down_finds_what_runs_without_any_state(tmp_path: Path) -> None:
    home = Home(tmp_path)
    started = processes.start(["sleep", "60"], run=home.run, log=tmp_path / "log")
    assert home.read() is None
    assert down(home) == 1
    assert not started.alive
    assert down(home) == 0


def test_two_state_folders_are_two_runs(tmp_path: Path) -> None:
    assert Home(tmp_path / "a").run != Home(tmp_path / "b").run
    assert Home(tmp_path / "a").run == Home(tmp_path / "b" / ".." / "a").run


def test_unreadable_state_is_no_state(tmp_path: Path) -> None:
    (tmp_path / "endpoint.json").write_text('{"url": ')
    assert Home(tmp_path).read() is None


def test_the_token_is_for_its_owner_alone(tmp_path: Path) -> None:
    home = Home(tmp_path / "state")
    home.prepare("secret")
    try:
        assert stat.S_IMODE(home.token.stat().st_mode) == 0o600
        assert stat.S_IMODE(home.session.stat().st_mode) == 0o700
    finally:
        home.clear()
    assert not home.token.exists()
    assert not home.session.exists()


def test_ray_s_logs_outlive_its_session(tmp_path: Path) -> None:
    home = Home(tmp_path / "state")
    home.prepare("secret")
    logs = home.session / "session_latest/logs"
    logs.mkdir(parents=True)
    (logs / "raylet.err").write_text("why")
    home.clear()
    assert (home.logs / "ray/raylet.err").read_text() == "why"


def test_sockets_fit_where_temporary_folders_are_deep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.gettempdir", lambda: "/very" * 20)
    assert len(str(Home(tmp_path).session)) < 37


def test_the_token_is_required_and_other_rays_are_not_found(tmp_path: Path) -> None:
    env = environment(Home(tmp_path), stand_in=True, metrics=9, base={"RAY_ADDRESS": "10.0.0.1:6379", "PATH": "/bin"})
    assert env["RAY_AUTH_MODE"] == "token"
    assert "RAY_ADDRESS" not in env
    assert env["PATH"] == "/bin"


def test_every_port_of_ray_is_chosen(tmp_path: Path) -> None:
    taken = {8000}
    command = head_command(Home(tmp_path), python=Path("python"), cpus=4, dashboard=9, taken=taken)
    ports = {command[place + 1] for place, word in enumerate(command) if word.endswith("port") and "worker" not in word}
    assert ports == {"9"} | {str(port) for port in taken - {8000}}
    assert len(ports) == 9


def with_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preflight, "find_spec", lambda _: object())


def free() -> int:
    return processes.free_port(set())


def test_cards_that_are_not_there_are_told_before_ray_waits_for_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_packages(monkeypatch)
    card = preflight.Cards(1, "NVIDIA L4")
    with pytest.raises(FleetError, match=r"book 8 GPUs, and there are 1 here \(NVIDIA L4\)"):
        preflight.check(Home(tmp_path), port=free(), models=1, stand_in=False, gpus=8, cards=card)
    preflight.check(Home(tmp_path), port=free(), models=1, stand_in=False, gpus=0.5, cards=card)


@pytest.mark.parametrize(("fleet", "booked"), [("single-gpu", 1), ("multi-node", None), ("homelab", None)])
def test_cards_of_a_reference_fleet_are_counted_from_its_config(fleet: str, booked: float | None) -> None:
    rendered = render_fleet(FLEETS / fleet / "fleet.yaml")
    configs = {name: _serve_config(rendered, name, local(values)) for name, values in rendered.values.items()}
    planned = sum(plan.gpus / plan.replicas * plan.min_replicas for plan in rendered.plan.models.values())
    assert gpus(merge(configs, port=8000)) == pytest.approx(booked or planned)


@pytest.mark.parametrize("fleet", ["single-gpu", "homelab", "three-tiers"])
def test_stand_ins_book_no_card(fleet: str, tmp_path: Path) -> None:
    rendered = render_fleet(FLEETS / fleet / "fleet.yaml")
    values, _ = _values(rendered, list(rendered.values), Home(tmp_path), stand_in=True)
    configs = {name: _serve_config(rendered, name, values[name]) for name in values}
    assert gpus(merge(configs, port=8000)) == 0


class Serving:
    """In place of Ray: fails with a message the first time, and notes whether the import was shared."""

    def __init__(self, message: str) -> None:
        self.message = message
        self.shared: list[bool] = []

    def __call__(self, *arguments: object) -> None:
        self.shared.append(bool(arguments[-1]))
        if len(self.shared) == 1:
            raise serving.Failed(self.message)


def up(folder: Path) -> Endpoint:
    empty = {"http_options": {"port": free()}, "applications": []}
    return serving.up(empty, [], Home(folder), stand_in=True, watch=lambda what: None)


def test_a_worker_that_dies_at_its_start_is_tried_once_more_without_the_shared_import(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serving, "_serve", attempts := Serving("worker exit type: SYSTEM_ERROR"))
    assert up(tmp_path).ready
    assert attempts.shared == [True, False]


def test_what_is_wrong_with_the_config_is_not_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "_serve", attempts := Serving("unknown engine argument"))
    with pytest.raises(serving.Failed, match="unknown engine argument"):
        up(tmp_path)
    assert attempts.shared == [True]
