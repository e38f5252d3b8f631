"""MIG profiles, and parts of GPUs as GPU kinds."""

import pytest

from rayhelm.errors import FleetError
from rayhelm.facts import load_catalog
from rayhelm.facts.mig import MigTable

CUT = [gpu for gpu in load_catalog().gpus() if gpu.mig]


def table(gpu: str) -> MigTable:
    found = load_catalog().mig(load_catalog().gpu(gpu))
    assert found
    return found


MOST = {
    "A30-24GB": {"1g.6gb": 4, "2g.12gb": 2, "4g.24gb": 1},
    "A100-SXM-40GB": {"1g.5gb": 7, "1g.10gb": 4, "2g.10gb": 3, "3g.20gb": 2, "4g.20gb": 1, "7g.40gb": 1},
    "A100-SXM-80GB": {"1g.10gb": 7, "1g.20gb": 4, "2g.20gb": 3, "3g.40gb": 2, "4g.40gb": 1, "7g.80gb": 1},
    "H100-SXM-80GB": {"1g.10gb": 7, "1g.20gb": 4, "2g.20gb": 3, "3g.40gb": 2, "4g.40gb": 1, "7g.80gb": 1},
    "H100-NVL-94GB": {"1g.12gb": 7, "1g.24gb": 4, "2g.24gb": 3, "3g.47gb": 2, "4g.47gb": 1, "7g.94gb": 1},
    "H200-SXM-141GB": {"1g.18gb": 7, "1g.35gb": 4, "2g.35gb": 3, "3g.71gb": 2, "4g.71gb": 1, "7g.141gb": 1},
    "B200-SXM-180GB": {"1g.23gb": 7, "1g.45gb": 4, "2g.45gb": 3, "3g.90gb": 2, "4g.90gb": 1, "7g.180gb": 1},
    "GB200-186GB": {"1g.23gb": 7, "1g.47gb": 4, "2g.47gb": 3, "3g.93gb": 2, "4g.93gb": 1, "7g.186gb": 1},
    "B300-SXM-288GB": {"1g.34gb": 7, "1g.67gb": 4, "2g.67gb": 3, "3g.135gb": 2, "4g.135gb": 1, "7g.269gb": 1},
    "GB300-288GB": {"1g.35gb": 7, "1g.70gb": 4, "2g.70gb": 3, "3g.139gb": 2, "4g.139gb": 1, "7g.278gb": 1},
    "RTX-PRO-6000-96GB": {"1g.24gb": 4, "2g.48gb": 2, "4g.96gb": 1},
}
"""`Number of Instances Available` of the MIG User Guide; of GB200, B300 and GB300 the same as of B200,
which is cut alike."""


@pytest.mark.parametrize("gpu", MOST)
def test_as_many_instances_fit_as_nvidia_s_guide_says(gpu: str) -> None:
    assert {profile: table(gpu).most(profile) for profile in table(gpu).profiles} == MOST[gpu]


@pytest.mark.parametrize(
    ("gpu", "layout"),
    [
        ("A100-SXM-40GB", {"1g.5gb": 2, "2g.10gb": 1, "3g.20gb": 1}),
        ("H100-SXM-80GB", {"1g.10gb": 2, "2g.20gb": 1, "3g.40gb": 1}),
        ("H100-NVL-94GB", {"3g.47gb": 1, "1g.24gb": 1, "1g.12gb": 1}),
        ("H200-SXM-141GB", {"1g.18gb": 2, "2g.35gb": 1, "3g.71gb": 1}),
        ("B200-SXM-180GB", {"1g.23gb": 2, "2g.45gb": 1, "3g.90gb": 1}),
        ("GB200-186GB", {"1g.23gb": 2, "2g.47gb": 1, "3g.93gb": 1}),
        ("A30-24GB", {"1g.6gb": 2, "2g.12gb": 1}),
        ("RTX-PRO-6000-96GB", {"1g.24gb": 2, "2g.48gb": 1}),
        ("A100-SXM-80GB", {"4g.40gb": 1, "3g.40gb": 1}),
    ],
)
def test_published_mig_layouts_fit(gpu: str, layout: dict[str, int]) -> None:
    """The `all-balanced` layouts of the GPU operator's own ConfigMap, and one of public notes."""
    assert table(gpu).fits(layout)


@pytest.mark.parametrize(
    "layout",
    [
        {"3g.40gb": 3},
        {"4g.40gb": 2},
        {"3g.40gb": 2, "1g.10gb": 1},
        {"7g.80gb": 1, "1g.10gb": 1},
        {"4g.40gb": 1, "2g.20gb": 2},
        {"2g.20gb": 3, "1g.20gb": 2},
    ],
)
def test_layout_with_too_many_instances_does_not_fit(layout: dict[str, int]) -> None:
    assert not table("A100-SXM-80GB").fits(layout)


@pytest.mark.parametrize(("shares", "profile"), [(2, "3g.40gb"), (3, "2g.20gb"), (4, "1g.20gb"), (5, "1g.10gb")])
def test_equal_shares_use_the_largest_profile_that_fits(shares: int, profile: str) -> None:
    assert table("H100-SXM-80GB").parts(shares) == profile


def test_more_shares_than_slices_have_no_profile() -> None:
    assert table("A30-24GB").parts(5) is None


@pytest.mark.parametrize("gpu", [gpu.id for gpu in CUT])
def test_instance_memory_is_within_a_tenth_below_its_share(gpu: str) -> None:
    whole, found = load_catalog().gpu(gpu), table(gpu)
    gpu_gib = whole.usable_gib or whole.memory_gb
    assert gpu_gib
    for profile, cut in found.profiles.items():
        share = gpu_gib * cut.memory / found.memory_slices
        part = load_catalog().gpu(f"{gpu}/{profile}")
        assert part.usable_gib is not None
        assert 0.9 * share <= part.usable_gib <= share * 1.004, profile


def test_part_of_a_gpu_is_a_gpu_kind() -> None:
    part, whole = load_catalog().gpu("H100-SXM-80GB/3g.40gb"), load_catalog().gpu("H100-SXM-80GB")
    assert (part.resource, part.usable_gib, part.of) == ("nvidia.com/mig-3g.40gb", 39.5, whole.id)
    assert part.memory_bandwidth_gb_per_s == whole.memory_bandwidth_gb_per_s * 4 / 8  # type: ignore[operator]
    assert part.bf16_tflops == pytest.approx(whole.bf16_tflops * 3 / 7)  # type: ignore[operator]
    assert not part.link.fast
    assert (part.part, part.memory_seen) == (0.5, 1.0)


def test_time_slice_reports_the_memory_of_the_whole_gpu() -> None:
    part = load_catalog().gpu("l4/4")
    assert (part.id, part.resource, part.part, part.memory_seen) == ("L4-24GB/4", "nvidia.com/gpu.shared", 0.25, 0.25)


def test_intel_time_slice_keeps_the_resource_of_the_gpu() -> None:
    assert load_catalog().gpu("Arc-Pro-B60-24GB/2").resource == "gpu.intel.com/xe"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("H100-SXM-80GB/3g.20gb", "has no MIG profile `3g.20gb`"),
        ("L4-24GB/1g.6gb", "has no MIG"),
        ("L4-24GB/1", "1 time slices"),
        ("L4-24GB/49", "49 time slices"),
        ("MI300X-192GB/2", "cannot share one MI300X-192GB between pods"),
    ],
)
def test_unsupported_part_is_refused(name: str, message: str) -> None:
    with pytest.raises(FleetError) as caught:
        load_catalog().gpu(name)
    (problem,) = caught.value.problems
    assert message in problem.message
    assert problem.fix
