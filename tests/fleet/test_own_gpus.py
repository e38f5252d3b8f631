"""`gpus` of the fleet file: GPUs that the catalog does not have."""

from typing import Any

import pytest
import yaml

from rayhelm.deploy.render.files import build_files, render_plan
from rayhelm.errors import Fix, FleetError
from rayhelm.facts import load_catalog
from rayhelm.facts.gpu import GpuKind
from rayhelm.fleet.own_gpus import OwnGpu, build_gpu
from rayhelm.planner.planner import plan_fleet
from shared.apply_fix import check_fixes
from shared.fleets import load, plan

FULL = {"vendor": "nvidia", "memory": "48GB", "memoryBandwidth": "696GB/s", "tflops": 149.7, "compute": "8.6"}


def fleet(gpu: dict[str, Any], name: str = "own", **pool: Any) -> str:
    return yaml.safe_dump(
        {
            "fleet": "own",
            "clusters": {"main": {"apiServer": {"cidrs": ["10.0.0.1/32"]}, "gateway": {"allowedClients": ["apps"]}}},
            "gpus": {name: gpu},
            "pools": {"desk": {"gpu": name, "nodes": 2, "gpusPerNode": 2, **pool}},
            "models": {"chat": {"source": "Qwen/Qwen3-8B", "context": 8192, "unpinnedReason": "an example"}},
            "tenants": {"apps": {"models": ["chat"], "requestsPerMinute": 60}},
        }
    )


def gpu_of(written: dict[str, Any]) -> GpuKind:
    return build_gpu("own", OwnGpu.model_validate(written))


def test_described_gpu_has_the_figures_of_its_data_sheet() -> None:
    found, same = gpu_of({**FULL, "usableMemory": "44.35GiB"}), load_catalog().gpu("A40")
    for field in ("vendor", "resource", "memory_gb", "memory_bandwidth_gb_per_s", "bf16_tflops", "bf16", "compute"):
        assert getattr(found, field) == getattr(same, field), field
    assert found.usable_gib == pytest.approx(same.usable_gib)


def test_described_gpu_is_planned_and_rendered() -> None:
    loaded = load(fleet(FULL, price="0.3 USD/h"))
    rendered = render_plan(plan_fleet(loaded))
    model = rendered.plan.models["chat"]
    assert (model.gpu, model.gpus, model.price_per_hour) == ("own", 1, 0.3)
    assert any("the usable memory of own was not measured" in text for text in rendered.plan.warnings)
    assert "own" in build_files(rendered)["map.svg"]


def test_gpu_like_another_has_its_figures_where_none_is_written() -> None:
    found, other = gpu_of({"like": "RTX-3090-24GB", "memory": "20GB"}), load_catalog().gpu("RTX-3090-24GB")
    assert (found.memory_gb, found.usable_gib) == (20, pytest.approx(18.2))
    assert (found.memory_bandwidth_gb_per_s, found.compute) == (other.memory_bandwidth_gb_per_s, other.compute)
    assert found.product_label is None
    assert found.price.on_demand is None


def test_more_memory_takes_a_model_that_did_not_fit() -> None:
    large = fleet({"like": "RTX-4090-24GB", "memory": "48GB"}).replace("Qwen3-8B", "Qwen3-14B")
    assert plan(large).models["chat"].gpus == 1
    assert plan(large.replace("48GB", "24GB")).models["chat"].gpus == 2


def test_link_makes_tensor_parallelism_fast() -> None:
    assert gpu_of({**FULL, "linkBandwidth": "300GB/s"}).link.fast
    assert not gpu_of(FULL).link.fast


@pytest.mark.parametrize("sharing", [{"shares": 2, "isolation": "none"}])
def test_described_gpu_can_be_shared(sharing: dict[str, Any]) -> None:
    found = plan(fleet(FULL, sharing=sharing).replace("Qwen3-8B", "Qwen3-0.6B"))
    assert found.models["chat"].gpu == "own/2"


@pytest.mark.parametrize(
    ("gpu", "name", "message"),
    [
        (FULL, "A40", "the catalog has a GPU of this name"),
        ({"memory": "48GB"}, "own", "neither `like` nor `vendor`, `memoryBandwidth`, `tflops`, `compute`"),
        ({"like": "RTX-3090-24GBB"}, "own", "RTX-3090-24GBB"),
        ({**FULL, "usableMemory": "50GiB"}, "own", "50.0 GiB are more than the 48 GB of `memory`"),
        ({**FULL, "memoryBandwidth": "0GB/s"}, "own", "must be more than zero"),
        ({**FULL, "memoryBandwidth": 0}, "own", "must be more than zero"),
        ({**FULL, "memoryBandwidth": 696}, "own", "has no unit"),
        ({**FULL, "tflops": 0}, "own", "greater than 0"),
        ({**FULL, "bandwidth": "696GB/s"}, "own", "bandwidth"),
        ({**FULL, "compute": "ampere"}, "own", "not a compute capability"),
        ({**FULL, "vendor": "google"}, "own", "google"),
        (FULL, "own/2", "own/2"),
        ({"like": "RTX-3090-24GB", "vendor": "amd"}, "own", "`like` is a GPU of nvidia"),
        ({"like": "H100-SXM-80GB/3g.40gb"}, "own", "is a part of a GPU"),
    ],
)
def test_wrong_description_is_refused_with_a_fix(gpu: dict[str, Any], name: str, message: str) -> None:
    with pytest.raises(FleetError) as caught:
        plan(fleet(gpu, name))
    assert any(message in str(problem) and "gpus" in str(problem) for problem in caught.value.problems)


@pytest.mark.parametrize(
    "gpu",
    [{"memory": "48GB"}, {**FULL, "usableMemory": "50GiB"}, {**FULL, "compute": "ampere"}, {"like": "RTX 3090 T"}],
)
def test_fix_of_a_wrong_description_is_accepted(gpu: dict[str, Any]) -> None:
    with pytest.raises(FleetError) as caught:
        plan(fleet(gpu))
    assert all(isinstance(problem.fix, Fix) for problem in caught.value.problems)
    check_fixes(fleet(gpu), list(caught.value.problems), plan)


def test_unknown_gpu_says_where_to_describe_it() -> None:
    with pytest.raises(FleetError, match="`gpus` describes others"):
        plan(fleet(FULL).replace("gpu: own", "gpu: RTX-9999"))
