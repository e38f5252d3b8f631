"""What the rendered values leave open is reported once, alike by `plan`, `render` and `lint`."""

import json
from pathlib import Path

import pytest
import yaml

from rayhelm.deploy.render.warnings import find_open_gateways, find_open_images, find_short_timeouts, list_warnings
from rayhelm.errors import Fix
from rayhelm.fleet.document import parse_document
from rayhelm.planner.planner import plan_fleet
from shared.apply_fix import apply_fix
from shared.command import run
from shared.fleets import load

FLEET = """\
fleet: open
clusters: {main: {apiServer: {cidrs: [10.0.0.1/32]}, gateway: {allowedClients: [apps]}}}
pools:
  whole: {gpu: L4-24GB, nodes: 1, nodeSelector: {example.com/pool: whole}}
  own:
    gpu: L4-24GB
    nodes: 1
    nodeSelector: {example.com/pool: own}
    image: {repository: registry.example/ray, tag: "1"}
models:
  chat: {source: Qwen/Qwen2.5-7B-Instruct, context: 8192, pool: whole, unpinnedReason: this is a trial}
  other: {source: Qwen/Qwen2.5-7B-Instruct, context: 8192, pool: own, unpinnedReason: this is a trial}
tenants: {a: {models: [chat, other]}}
"""
DIGEST = f"sha256:{'1' * 64}"


def test_images_without_digest_are_listed_with_their_keys() -> None:
    loaded = load(FLEET)
    found = {(image.repository, image.key) for image in find_open_images(plan_fleet(loaded))}
    assert found == {
        ("rayproject/ray-llm", "clusters.main.image.digest"),
        ("registry.example/ray", "pools.own.image.digest"),
        ("haproxy", "clusters.main.gateway.values.image.digest"),
    }


def test_images_with_digest_are_not_listed() -> None:
    pinned = f"image: {{repository: registry.example/ray, digest: '{DIGEST}'}}"
    text = FLEET.replace('tag: "1"', f"digest: '{DIGEST}'").replace("gateway: {", f"{pinned}, gateway: {{")
    loaded = load(text)
    assert [image.repository for image in find_open_images(plan_fleet(loaded))] == ["haproxy"]


def test_image_of_a_gateway_with_a_digest_of_its_own_is_not_listed() -> None:
    loaded = load(FLEET.replace("gateway: {", f"gateway: {{values: {{image: {{digest: '{DIGEST}'}}}}, "))
    assert "haproxy" not in [image.repository for image in find_open_images(plan_fleet(loaded))]
    loaded = load(FLEET.replace("gateway: {", "gateway: {values: {image: {repository: registry.example/haproxy}}, "))
    assert "registry.example/haproxy" in [image.repository for image in find_open_images(plan_fleet(loaded))]


def test_gateway_without_host_is_reported_with_a_fix_that_is_accepted() -> None:
    loaded = load(FLEET)
    (problem,) = map(loaded.document.locate, find_open_gateways(plan_fleet(loaded)))
    assert (problem.path, problem.line) == ("clusters.main.gateway", 2)
    assert "http://gateway.gateway" in problem.message
    fixed = load(yaml.safe_dump(apply_fix(parse_document(FLEET, "fleet.yaml"), problem.fix)))
    assert fixed.fleet.clusters["main"].gateway.allowed_clients == ("apps", "ingress-nginx")
    assert find_open_gateways(plan_fleet(fixed)) == ()


def test_fleet_without_tenants_has_no_gateway_to_report() -> None:
    loaded = load(FLEET.replace("tenants: {a: {models: [chat, other]}}\n", ""))
    assert find_open_gateways(plan_fleet(loaded)) == ()
    assert all(image.repository != "haproxy" for image in find_open_images(plan_fleet(loaded)))


@pytest.mark.parametrize("command", ["plan", "render", "lint"])
def test_command_reports_what_is_open_once(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "fleet.yaml"
    file.write_text(FLEET)
    options = ["--no-serve", "--allow-missing"] if command == "lint" else []
    answer = run(capsys, monkeypatch, command, str(file), *options)
    shown = answer.out + answer.err
    assert shown.count("3 images have no digest") == 1
    assert shown.count("pools.own.image.digest") == 1
    assert shown.count("has no `host`") == 1


def test_plan_as_json_has_what_is_open(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "fleet.yaml"
    file.write_text(FLEET)
    planned = json.loads(run(capsys, monkeypatch, "plan", str(file), "--format", "json").out)
    assert {image["key"] for image in planned["images_without_digest"]} >= {"pools.own.image.digest"}
    (gateway,) = planned["gateways_without_host"]
    assert gateway["fix"]["path"] == "clusters.main.gateway"


def test_warnings_are_one_table_and_one_text_for_each_gateway() -> None:
    loaded = load(FLEET)
    assert len(list_warnings(plan_fleet(loaded))) == 2


SLOW = FLEET.replace("whole: {gpu: L4-24GB, nodes: 1", "whole: {gpu: L4-24GB, nodes: 1, nodeStart: 25m").replace(
    "pool: whole,", "pool: whole, replicas: {min: %d},"
)


def test_timeouts_below_the_load_time_are_reported_when_a_model_scales_to_zero() -> None:
    text = SLOW % 0
    loaded = load(text)
    serve, gateway = map(loaded.document.locate, find_short_timeouts(plan_fleet(loaded)))
    assert "Serve ends it after 1200 s" in serve.message
    assert "gateway of cluster `main` ends it after 1260 s" in gateway.message
    for problem in (serve, gateway):
        assert isinstance(problem.fix, Fix)
        text = yaml.safe_dump(apply_fix(parse_document(text, "fleet.yaml"), problem.fix))
    loaded = load(text)
    assert not [*find_short_timeouts(plan_fleet(loaded))]


@pytest.mark.parametrize("text", [SLOW % 1, (SLOW % 0).replace("nodeStart: 25m, ", "")])
def test_timeouts_are_not_reported_without_a_long_wait(text: str) -> None:
    loaded = load(text)
    assert not [*find_short_timeouts(plan_fleet(loaded))]
