"""Values of chart tenant agree with the GPUs of the catalog."""

from typing import Any

from charts.kit import example, parsed
from rayhelm.deploy.charts.helm import render
from rayhelm.deploy.values.tenant.quota import GPU_RESOURCES
from rayhelm.facts import load_catalog


def rendered(values: dict[str, Any], **options: Any) -> list[dict[str, Any]]:
    return parsed(render("tenant", "research", "tenants", values, **options))


def test_every_gpu_resource_of_the_catalog_is_denied_without_an_entry() -> None:
    assert {gpu.resource for gpu in load_catalog().gpus()} <= set(GPU_RESOURCES)
    (denied,) = [item for item in rendered(example("tenant/minimal")) if item["metadata"]["name"] == "research-denied"]
    given = {"nvidia.com/gpu"}
    for resource in set(GPU_RESOURCES) - given:
        assert denied["spec"]["hard"][f"requests.{resource}"] == "0"
    assert not [name for name in denied["spec"]["hard"] if name.removeprefix("requests.") in given]


def test_gpus_of_the_command_line_equal_those_of_a_file() -> None:
    key = "quota.gpus.nvidia\\.com/gpu"
    values = {"quota": {"gpus": {"nvidia.com/gpu": {"planned": 2, "baseline": 3, "upgradeSurge": 4}}}}
    settings = (f"--set={key}.planned=2,{key}.baseline=3,{key}.upgradeSurge=4",)
    assert rendered({}, options=settings) == rendered(values)
