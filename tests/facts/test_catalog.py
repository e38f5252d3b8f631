"""The catalog finds what fleets name, says what it does not know, and refuses a wrong entry by file and key."""

from collections import Counter
from pathlib import Path

import pytest
import yaml

from rayhelm.errors import Fix, FleetError
from rayhelm.facts import Catalog, _load, load_catalog
from rayhelm.facts._load import names, read_record, stem
from rayhelm.facts.gpu import GpuKind
from rayhelm.facts.model import Checkpoint

DATA = Path(__file__).parents[2] / "python/src/rayhelm/data"


def test_catalog_has_at_least_thirty_gpus_and_models() -> None:
    assert len(load_catalog().gpus()) >= 30
    assert len(load_catalog().models()) >= 30


@pytest.mark.parametrize(
    ("spelling", "gpu"),
    [
        ("H100-SXM-80GB", "H100-SXM-80GB"),
        ("h100 sxm", "H100-SXM-80GB"),
        ("H100-80", "H100-SXM-80GB"),
        ("A100-80", "A100-SXM-80GB"),
        ("A100-80 PCIe", "A100-PCIe-80GB"),
        ("RTX4090", "RTX-4090-24GB"),
        ("RTX A6000", "RTX-A6000-48GB"),
        ("strix halo", "Strix-Halo-128GB"),
        ("GB10", "DGX-Spark-128GB"),
    ],
)
def test_gpu_is_found_by_common_spellings(spelling: str, gpu: str) -> None:
    assert load_catalog().gpu(spelling).id == gpu


@pytest.mark.parametrize(
    ("spelling", "model"),
    [
        ("meta-llama/llama-3.1-8b-instruct", "meta-llama/Llama-3.1-8B-Instruct"),
        ("Llama-3.1-405B", "meta-llama/Llama-3.1-405B-Instruct"),
        ("Qwen3-32B-AWQ", "Qwen/Qwen3-32B-AWQ"),
        ("neuralmagic/Meta-Llama-3.1-8B-Instruct-FP8-dynamic", "RedHatAI/Meta-Llama-3.1-8B-Instruct-FP8-dynamic"),
        ("microsoft/speecht5_tts", "microsoft/speecht5_tts"),
    ],
)
def test_model_is_found_by_hub_id_alias_or_short_name(spelling: str, model: str) -> None:
    assert load_catalog().model(spelling).id == model


def test_unknown_gpu_is_answered_with_the_nearest_names() -> None:
    with pytest.raises(FleetError) as error:
        load_catalog().gpu("H100-SXN-80GB")
    assert "unknown GPU 'H100-SXN-80GB'" in str(error.value)
    assert "H100-SXM-80GB" in str(error.value.problems[0])


@pytest.mark.parametrize(
    ("spelling", "gpu"),
    [
        ("rtx6000 ada", "RTX-6000-Ada-48GB"),
        ("NVIDIA RTX 6000 Ada Generation", "RTX-6000-Ada-48GB"),
        ("NVIDIA H100 80GB HBM3", "H100-SXM-80GB"),
        ("Tesla T4", "T4-16GB"),
        ("GeForce RTX 4090", "RTX-4090-24GB"),
    ],
)
def test_gpu_is_found_by_other_spaces_and_words_of_the_vendor(spelling: str, gpu: str) -> None:
    assert load_catalog().gpu(spelling).id == gpu
    assert load_catalog().explain_gpu_name(spelling) == ""


def test_other_gpus_are_not_read_to_explain_an_id(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []

    def record(path: Path, kind: type[GpuKind]) -> GpuKind:
        read.append(path.stem)
        return read_record(path, kind)

    monkeypatch.setattr(_load, "read_record", record)
    assert Catalog().explain_gpu_name("L4-24GB") == ""
    assert read == ["l4-24gb"]


@pytest.mark.parametrize(
    ("short", "candidates"),
    [
        ("RTX 6000", ["RTX-6000-Ada-48GB", "RTX-A6000-48GB", "RTX-PRO-6000-96GB", "RTX-PRO-6000-Max-Q-96GB"]),
        ("L40", ["L40S-48GB"]),
        ("MI300", ["MI300X-192GB"]),
        ("4090", ["RTX-4090-24GB"]),
    ],
)
def test_short_gpu_name_is_refused_with_its_candidates(short: str, candidates: list[str]) -> None:
    with pytest.raises(FleetError) as error:
        load_catalog().gpu(short)
    (problem,) = error.value.problems
    assert problem.message == f"the catalog has no GPU '{short}'; similar: {', '.join(candidates)}"
    assert [fix.value for fix in (problem.fix, *problem.alternatives) if isinstance(fix, Fix)] == candidates


def test_quadro_rtx_is_not_taken_for_a_later_board() -> None:
    with pytest.raises(FleetError) as error:
        load_catalog().gpu("Quadro RTX 6000")
    assert "similar" not in str(error.value.problems[0])
    assert "could be" not in str(error.value.problems[0])


def test_near_gpu_names_are_of_different_gpus() -> None:
    with pytest.raises(FleetError) as error:
        load_catalog().gpu("RTX-A4001")
    (problem,) = error.value.problems
    near = [load_catalog().gpu(str(fix.value)).id for fix in (problem.fix, *problem.alternatives)]
    assert near[0] == "RTX-A4000-16GB"
    assert len(set(near)) == len(near)


def test_unknown_model_is_answered_with_the_nearest_names() -> None:
    with pytest.raises(FleetError) as error:
        load_catalog().model("meta-llama/Lama-3.1-8B-Instruct")
    assert "meta-llama/Llama-3.1-8B-Instruct" in str(error.value.problems[0])


@pytest.mark.parametrize("name", ["../gpus/t4-16gb", "", "/etc/passwd"])
def test_name_with_a_path_stays_in_the_catalog_folder(name: str) -> None:
    with pytest.raises(FleetError, match="unknown model"):
        load_catalog().model(name)


@pytest.mark.parametrize("kind", ["gpus", "models", "networks"])
def test_every_spelling_finds_one_entry(kind: str) -> None:
    entries = getattr(load_catalog(), kind)()
    spellings = Counter(spelling for entry in entries for spelling in {stem(name) for name in names(entry)})
    assert [spelling for spelling, count in spellings.items() if count > 1] == []


def test_every_figure_has_a_source() -> None:
    for gpu in load_catalog().gpus():
        assert gpu.source, gpu.id
        assert bool(gpu.usable_gib) == bool(gpu.usable_source), gpu.id
        assert gpu.price.on_demand is None or gpu.price.on_demand_source, gpu.id
        assert gpu.price.spot is None or gpu.price.spot_source, gpu.id
    assert all(network.effective_source for network in load_catalog().networks() if network.effective_gb_per_s)
    assert all(model.source and model.published for model in load_catalog().models())


def test_usable_memory_is_within_the_data_sheet() -> None:
    for gpu in load_catalog().gpus():
        if gpu.usable_gib and gpu.memory_gb:
            assert gpu.usable_gib <= gpu.memory_gb, gpu.id


def test_figure_without_a_source_stays_unknown() -> None:
    radeon, spark, internet = (
        load_catalog().gpu("Radeon-680M"),
        load_catalog().gpu("DGX-Spark-128GB"),
        load_catalog().network("wan"),
    )
    assert radeon.memory_gb is None
    assert radeon.usable_gib is None
    assert radeon.engine == "none"
    assert spark.bf16_tflops is None
    assert internet.bandwidth_gbit_per_s is None


def test_new_gpu_needs_one_file(tmp_path: Path) -> None:
    _write(tmp_path / "gpus/my-gpu-48gb.yaml", _entry("gpus/l4-24gb.yaml") | {"id": "My-GPU-48GB", "aliases": ["mine"]})
    assert Catalog(tmp_path).gpu("mine").id == "My-GPU-48GB"


def test_file_is_named_after_its_id(tmp_path: Path) -> None:
    _write(tmp_path / "other.yaml", _entry("gpus/l4-24gb.yaml"))
    with pytest.raises(FleetError, match=r"other\.yaml:1: id: the file of 'L4-24GB' is named l4-24gb\.yaml"):
        read_record(tmp_path / "other.yaml", GpuKind)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"memory_gb": -24}, "memory_gb: Input should be greater than 0"),
        ({"vendor": "nvidea"}, "vendor: Input should be 'nvidia'"),
        ({"memoryy": 24}, "an unknown key"),  # messages have no text of a file that may be something else
        ({"link": {"kind": "NVLink", "group": 1}}, "link.group: Input should be greater than or equal to 2"),
    ],
)
def test_wrong_gpu_is_refused_by_file_line_and_key(tmp_path: Path, change: dict[str, object], message: str) -> None:
    path = _write(tmp_path / "l4-24gb.yaml", _entry("gpus/l4-24gb.yaml") | change)
    with pytest.raises(FleetError) as error:
        read_record(path, GpuKind)
    problem = error.value.problems[0]
    assert message in f"{problem.path}: {problem.message}"
    assert problem.file == str(path)
    assert problem.line is not None
    assert problem.path.rpartition(".")[2] in path.read_text().splitlines()[problem.line - 1]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"attention": {"heads": 32, "kv_heads": 7, "head_dim": 64}}, "kv_heads 7 does not divide heads 32"),
        ({"attention": {"heads": 32, "kv_heads": 8, "head_dim": 64, "windowed_layers": 4}}, "needs sliding_window"),
        (
            {"attention": {"heads": 32, "kv_heads": 8, "head_dim": 64, "sliding_window": 9, "windowed_layers": 99}},
            "windowed_layers 99 exceeds layers 32",
        ),
        ({"experts": {"count": 8, "active": 9, "intermediate": 64}}, "active 9 is more than the 8 experts"),
        (
            {"experts": {"count": 8, "active": 2, "intermediate": 64, "dense_layers": 33}},
            "experts.dense_layers 33 exceeds layers 32",
        ),
        ({"quantization": {"method": "fp8", "bits": 8, "skip_layers": [32]}}, "names a layer above 31"),
        ({"extra_parameters": 5}, "extra_parameters needs extra_source"),
        ({"layers": 0}, "greater than 0"),
    ],
)
def test_model_that_contradicts_itself_is_refused(tmp_path: Path, change: dict[str, object], message: str) -> None:
    name = "meta-llama--llama-3.1-8b-instruct.yaml"
    path = _write(tmp_path / name, _entry(f"models/{name}") | change)
    with pytest.raises(FleetError) as error:
        read_record(path, Checkpoint)
    assert message in str(error.value)
    assert error.value.problems[0].file == str(path)


@pytest.mark.parametrize("text", ["id: [1,", "\tid: x", "", "- a\n- b"])
def test_file_without_an_entry_is_refused_with_one_message(tmp_path: Path, text: str) -> None:
    path = tmp_path / "l4-24gb.yaml"
    path.write_text(text)
    with pytest.raises(FleetError, match=r"l4-24gb\.yaml"):
        read_record(path, GpuKind)


def _entry(name: str) -> dict[str, object]:
    entry: dict[str, object] = yaml.safe_load((DATA / name).read_text())
    return entry


def _write(path: Path, entry: dict[str, object]) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text(yaml.safe_dump(entry, sort_keys=False))
    return path


def test_network_with_a_higher_rate_is_not_slower_than_others_of_its_kind() -> None:
    networks = [each for each in load_catalog().networks() if each.bandwidth_gbit_per_s and each.effective_gb_per_s]
    for kind in {each.kind for each in networks}:
        ordered = sorted((each.bandwidth_gbit_per_s, each.effective_gb_per_s) for each in networks if each.kind == kind)
        rates = [rate for _, rate in ordered]
        assert rates == sorted(rates), kind
