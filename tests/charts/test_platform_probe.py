"""Chart `platform`: the CronJob that repeats `rayhelm probe`."""

from typing import Any

import yaml

from charts.each_chart import chart_of
from charts.kit import over
from charts.pod_security import violations
from rayhelm.planner.planner import plan_fleet
from rayhelm.probe.objects import build_setup
from rayhelm.spec.document import parse_document
from rayhelm.spec.load import parse_fleet
from rayhelm.values.build.platform import build_platform_values
from unit.fleets import load

Object = dict[str, Any]
PROBE = {
    "enabled": True,
    "image": {"repository": "registry.example/team/rayhelm", "tag": "0.2.0"},
    "fleet": "fleet: mine\n",
    "apiServerCidrs": ["10.0.0.1/32"],
}
FLEET = """\
fleet: repeated
measurements: measured.yaml
clusters:
  main:
    apiServer: {cidrs: [10.0.0.1/32]}
    probe: {image: {repository: registry.example/team/rayhelm, tag: 0.2.0}, schedule: "@daily"}
pools:
  gpu: {gpu: L4-24GB, nodes: 2}
models:
  chat: {source: Qwen/Qwen2.5-7B-Instruct, context: 4096, unpinnedReason: a test of probe}
"""


def objects(**probe: Any) -> dict[tuple[str, str], Object]:
    chart = chart_of("platform")
    found = chart.objects(over(chart.smallest(), {"probe": {**PROBE, **probe}}))
    return {(item["kind"], item["metadata"]["name"]): item for item in found}


def pod_of(found: dict[tuple[str, str], Object]) -> Object:
    pod: Object = found["CronJob", "rayhelm-probe"]["spec"]["jobTemplate"]["spec"]["template"]
    return pod


def without_labels(item: Object) -> Object:
    return {**item, "metadata": {key: value for key, value in item["metadata"].items() if key != "labels"}}


def test_chart_has_no_object_of_the_probe_by_default() -> None:
    chart = chart_of("platform")
    assert not [item for item in chart.objects(chart.smallest()) if "probe" in item["metadata"]["name"]]


def test_objects_of_the_chart_are_those_that_the_command_prints() -> None:
    found = objects()
    for item in build_setup("rayhelm-system"):
        if item["kind"] != "Namespace":
            assert without_labels(found[item["kind"], item["metadata"]["name"]]) == without_labels(item)


def test_cronjob_meets_pod_security_and_reaches_the_api_server_only() -> None:
    found = objects()
    assert not violations(pod_of(found))
    policy = found["NetworkPolicy", "rayhelm-probe"]["spec"]
    assert policy["podSelector"]["matchLabels"].items() <= pod_of(found)["metadata"]["labels"].items()
    assert [rule["to"] for rule in policy["egress"]] == [[{"ipBlock": {"cidr": "10.0.0.1/32"}}]]
    assert policy["ingress"] == []


def test_cronjob_runs_the_command_with_its_settings() -> None:
    plain, full = (pod_of(objects(**more))["spec"]["containers"][0] for more in ({}, {"cpu": True, "cluster": "edge"}))
    assert plain["command"][:3] == ["rayhelm", "probe", "/etc/rayhelm/fleet.yaml"]
    assert set(full["command"]) - set(plain["command"]) == {"--cpu", "--cluster=edge"}


def test_image_with_a_digest_has_no_tag() -> None:
    digest = "sha256:" + 64 * "0"
    (container,) = pod_of(objects(image={**PROBE["image"], "digest": digest}))["spec"]["containers"]  # type: ignore[dict-item]
    assert container["image"] == f"registry.example/team/rayhelm@{digest}"


def test_fleet_with_a_probe_renders_the_cronjob() -> None:
    loaded = load(FLEET)
    probe = build_platform_values(plan_fleet(loaded), loaded, {})["main"].probe
    assert (probe.enabled, probe.schedule, probe.api_server_cidrs) == (True, "@daily", ["10.0.0.1/32"])
    inside = parse_fleet(parse_document(probe.fleet, "fleet.yaml")).fleet
    assert inside == loaded.fleet.model_copy(update={"measurements": None})
    assert yaml.safe_load(probe.fleet)["pools"] == {"gpu": {"gpu": "L4-24GB", "nodes": 2}}
