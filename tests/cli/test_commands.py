"""The commands: what they print, for people and for programs, and how they end."""

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import jsonschema
import pytest
import yaml
from rich.console import Console

from rayhelm.cli.plan import build_plan_table
from rayhelm.deploy.charts.helm import find_helm
from rayhelm.fleet.load import load_fleet
from rayhelm.planner.planner import plan_fleet
from shared.command import Answer, run

VALUES = Path(__file__).parents[2] / "values"
FLEETS = sorted(str(path) for path in VALUES.glob("*/fleet.yaml"))
Rayhelm = Callable[..., Answer]

PLAN_FIELDS = {
    "pool", "gpu", "tensor_parallel_size", "pipeline_parallel_size", "replicas", "gpus", "gpu_fraction", "stages",
    "routing", "max_num_seqs", "max_model_len", "price_per_hour", "price_per_million_output_tokens", "pinned",
    "reasons",
}  # fmt: skip
FIT_FIELDS = {
    "fits", "weights_gib_per_gpu", "activation_gib", "non_torch_gib", "cuda_graph_gib", "kv_available_gib_per_gpu",
    "kv_cache_tokens", "max_concurrency", "reason",
}  # fmt: skip


@pytest.fixture(autouse=True)
def find_helm_again() -> Iterator[None]:
    """Tests that set $HELM must not decide what later tests find."""
    yield
    find_helm.cache_clear()


@pytest.fixture
def rayhelm(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Rayhelm:
    return lambda *arguments: run(capsys, monkeypatch, *arguments)


@pytest.fixture
def fleet(tmp_path: Path) -> Path:
    path = tmp_path / "fleet.yaml"
    path.write_text((VALUES / "single-gpu" / "fleet.yaml").read_text())
    return path


@pytest.mark.parametrize("path", FLEETS)
def test_plan_json_has_the_documented_fields(rayhelm: Rayhelm, path: str) -> None:
    answer = rayhelm("plan", path, "--format", "json")
    assert answer.code == 0
    models = json.loads(answer.out)["models"]
    for model in models.values():
        assert model.keys() >= PLAN_FIELDS
        assert isinstance(model["gpu"], str)
        assert {"gpu", "layers", "weights_gib", "kv_gib"} <= model["stages"][0].keys()


def test_plan_prints_a_table_and_reasons(rayhelm: Rayhelm) -> None:
    answer = rayhelm("plan", str(VALUES / "two-workstations"))
    assert answer.code == 0
    assert "TP 1 x PP 2" in answer.out
    assert "pipeline_parallel_size = 2" in answer.out
    assert "reasons" not in rayhelm("plan", str(VALUES / "two-workstations"), "--no-reasons").out


def test_fit_json_has_the_documented_fields(rayhelm: Rayhelm) -> None:
    arguments = ("fit", "--model", "Qwen/Qwen3-32B-AWQ", "--gpu", "RTX-A5000-24GB", "--gpu", "RTX-A4000-16GB")
    answer = rayhelm(*arguments, "--pp", "2", "--max-model-len", "16384", "--format", "json")
    assert answer.code == 0
    fit = json.loads(answer.out)
    assert fit.keys() >= FIT_FIELDS
    assert fit["fits"] is True
    assert [stage["layers"] for stage in fit["stages"]] == [32, 32]


def test_fit_ends_with_0_when_the_model_does_not_fit(rayhelm: Rayhelm) -> None:
    answer = rayhelm("fit", "--model", "Qwen/Qwen3-32B-AWQ", "--gpu", "RTX A4000", "--format", "json")
    assert answer.code == 0
    assert json.loads(answer.out)["fits"] is False


def test_render_writes_only_files_that_differ(rayhelm: Rayhelm, fleet: Path, tmp_path: Path) -> None:
    first = rayhelm("render", str(fleet), "-o", str(tmp_path / "out"))
    second = rayhelm("render", str(fleet), "-o", str(tmp_path / "out"))
    assert (first.code, second.code) == (0, 0)
    assert first.out.count("written") == second.out.count("current") == 6
    assert "no `revision`" in first.err
    assert yaml.safe_load((tmp_path / "out/ray-service/llama-8b.yaml").read_text())["workerGroups"]


def test_render_check_fails_on_a_stale_file(rayhelm: Rayhelm, fleet: Path) -> None:
    assert rayhelm("render", str(fleet)).code == 0
    assert rayhelm("render", str(fleet), "--check").code == 0
    (fleet.parent / "plan.md").write_text("old")
    answer = rayhelm("render", str(fleet), "--check")
    assert answer.code == 1
    assert "plan.md: is stale" in answer.err
    assert (fleet.parent / "plan.md").read_text() == "old"


@pytest.mark.parametrize("kind", ["file", "device", "process", "folder"])
def test_render_reports_a_path_that_cannot_be_written(rayhelm: Rayhelm, fleet: Path, kind: str) -> None:
    out = {"device": Path("/dev/null"), "process": Path("/proc/rayhelm")}.get(kind, fleet.parent / "out")
    if kind == "file":
        out.write_text("")
    if kind == "folder":
        (out / "plan.md").mkdir(parents=True)
    answer = rayhelm("render", str(fleet), "-o", str(out))
    assert answer.code == 1
    path = out if kind in ("file", "device") else out / "plan.md"
    assert f"{path}: cannot be written: " in answer.err
    assert "-o FOLDER" in answer.err
    assert not list(fleet.parent.rglob(".*"))


def test_render_replaces_a_plan_that_is_not_text(rayhelm: Rayhelm, fleet: Path) -> None:
    (fleet.parent / "plan.md").write_bytes(b"\xff")
    assert rayhelm("render", str(fleet)).code == 0
    assert (fleet.parent / "plan.md").read_text().startswith("<!--")


@pytest.mark.parametrize("path", FLEETS)
def test_schema_accepts_the_reference_fleets(rayhelm: Rayhelm, path: str) -> None:
    schema = json.loads(rayhelm("schema", "fleet").out)
    jsonschema.Draft202012Validator(schema).validate(yaml.safe_load(Path(path).read_text()))


def test_schema_refuses_unknown_keys(rayhelm: Rayhelm) -> None:
    schema = json.loads(rayhelm("schema").out)
    with pytest.raises(jsonschema.ValidationError, match="pols"):
        jsonschema.validate({"fleet": "a", "pols": {}}, schema)


def test_schema_has_limits_of_engine_arguments(rayhelm: Rayhelm) -> None:
    schema = json.loads(rayhelm("schema", "fleet", "--format", "json").out)
    engine = {"engine": {"max_num_seqs": 0}}
    fleet = {"fleet": "a", "pools": {"p": {}}, "models": {"m": {"source": "a/b", **engine}}}
    with pytest.raises(jsonschema.ValidationError, match="less than the minimum"):
        jsonschema.validate(fleet, schema)


def test_explain_prints_type_and_meaning(rayhelm: Rayhelm) -> None:
    answer = rayhelm("explain", "models.slo.ttft")
    assert answer.code == 0
    assert "quantity like 600ms" in answer.out
    assert "Time to first token." in answer.out


def test_plan_of_a_wrong_fleet_ends_with_1_and_names_the_line(rayhelm: Rayhelm, fleet: Path) -> None:
    fleet.write_text(fleet.read_text().replace("ttft: 2s", "ttft: 2"))
    answer = rayhelm("plan", str(fleet))
    assert answer.code == 1
    assert f"{fleet}:18: models.llama-8b.slo.ttft: 2 has no unit" in answer.err
    assert "Traceback" not in answer.err


def test_plan_of_a_wrong_fleet_prints_json_when_asked(rayhelm: Rayhelm, fleet: Path) -> None:
    fleet.write_text(fleet.read_text().replace("L4-24GB", "L5-24GB"))
    answer = rayhelm("plan", str(fleet), "--format", "json")
    assert answer.code == 1
    (problem,) = json.loads(answer.out)["problems"]
    assert problem["line"] == 10
    assert "L4-24GB" in problem["message"] + problem["fix"]["text"]


@pytest.mark.parametrize("words", [["--format", "json"], ["--format=json"]])
@pytest.mark.parametrize(
    ("arguments", "code", "key"),
    [
        (["plan", "no-such-file"], 1, "problems"),
        (["render", "no-such-file"], 1, "problems"),
        (["lint", "no-such-file"], 1, "problems"),
        (["plan"], 2, "error"),
        (["plan", "--bogus"], 2, "error"),
        (["plann"], 2, "error"),
        (["explain", "modles"], 2, "error"),
        (["schema", "nothing"], 2, "error"),
        (["fit", "--gpu", "L4-24GB"], 2, "error"),
    ],
)
def test_errors_are_json_when_format_is_json(
    rayhelm: Rayhelm, arguments: list[str], code: int, key: str, words: list[str]
) -> None:
    answer = rayhelm(*arguments, *words)
    assert answer.code == code
    assert json.loads(answer.out)[key]
    assert answer.err == ""


@pytest.mark.parametrize("arguments", [["plan", "json", "--format", "text"], ["plan", "json"], ["schema", "json"]])
def test_file_with_name_json_does_not_set_the_format(rayhelm: Rayhelm, arguments: list[str]) -> None:
    answer = rayhelm(*arguments)
    assert answer.code
    assert answer.out == ""
    assert "json" in answer.err


def test_plan_table_keeps_numbers_whole_in_a_narrow_terminal() -> None:
    plan = plan_fleet(load_fleet(VALUES / "three-tiers" / "fleet.yaml"))
    out = io.StringIO()
    Console(width=60, file=out).print(build_plan_table(plan))
    for model in plan.models.values():
        assert f" {model.max_model_len} " in out.getvalue()
        assert f" {model.price_per_hour:.2f} " in out.getvalue()
        assert f" {model.price_per_million_output_tokens:.2f} " in out.getvalue()
    assert "…" not in out.getvalue()


def test_plan_table_keeps_names_whole_in_80_columns() -> None:
    plan = plan_fleet(load_fleet(VALUES / "multi-node" / "fleet.yaml"))
    out = io.StringIO()
    Console(width=80, file=out).print(build_plan_table(plan))
    for model in plan.models.values():
        assert all(f" {word} " in out.getvalue() for word in (model.model, model.pool, model.gpu, model.split))


RAYHELM = [sys.executable, "-c", "from rayhelm.cli import main; main()"]


@pytest.mark.parametrize(
    "arguments", [["plan", "values/homelab"], ["schema"], ["plan", "values/homelab", "--format=json"]]
)
def test_command_ends_quietly_when_the_pipe_is_closed(arguments: list[str]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    ended = subprocess.run(
        [*RAYHELM, *arguments], stdout=writer, stderr=subprocess.PIPE, text=True, check=False, cwd=VALUES.parent
    )
    os.close(writer)
    assert (ended.returncode, ended.stderr) == (0, "")


@pytest.mark.parametrize("format", ["text", "json"])
def test_command_reports_a_full_disk(format: str) -> None:
    with Path("/dev/full").open("w") as full:
        command = [*RAYHELM, "plan", str(VALUES / "single-gpu"), "--format", format]
        ended = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (3, "rayhelm: standard output: No space left on device\n")


def test_plan_reports_a_file_name_that_is_too_long(rayhelm: Rayhelm) -> None:
    answer = rayhelm("plan", "f" * 300)
    assert answer.code == 1
    assert "cannot be read: File name too long" in answer.err


@pytest.mark.parametrize(
    "arguments", [["plan"], ["plan", "a", "--format", "xml"], ["plann"], ["explain", "models.slo.x"], ["explain", ".."]]
)
def test_wrong_usage_ends_with_2(rayhelm: Rayhelm, arguments: list[str]) -> None:
    assert rayhelm(*arguments).code == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["catalog", "gpu"], "`gpu` is not one of gpus, mig, models, networks, add; did you mean `gpus`?"),
        (["plan", "a", "--format", "jsn"], "`jsn` is not one of text, json; did you mean `json`?"),
        (["schema", "gatway"], "did you mean `gateway`?"),
        (["explain", "gateway.limit"], "did you mean `limits`"),
        (["rehearse", "FLEET", "--service", "llama-8"], "no service `llama-8`; did you mean `llama-8b`?"),
        (["rehearse", "FLEET", "--cluster", "maim"], "no cluster `maim`; did you mean `main`?"),
        (["fit", "--gpu", "L4-24G", "--model", "Qwen/Qwen3-8B"], "write for example `--gpu L4-24GB`"),
        (["fit", "--gpu", "L4-24GB", "--model", "Qwen3-9B"], "`--model Qwen3-8B`"),
        (["fit", "--gpu", "L4-24GB", "--layers", "a", "--model", "Qwen/Qwen3-8B"], "not a list of numbers"),
        (["fit", "--gpu", "L4-24GB", "--tp", "two", "--model", "Qwen/Qwen3-8B"], "`two`: must be a whole number"),
    ],
)
def test_wrong_choice_is_answered_in_plain_words(
    rayhelm: Rayhelm, fleet: Path, arguments: list[str], message: str
) -> None:
    answer = rayhelm(*(str(fleet) if word == "FLEET" else word for word in arguments))
    assert answer.code == 2
    assert message in " ".join(answer.err.split())
    assert "Value error" not in answer.err


def test_render_ends_with_3_and_advice_when_helm_is_missing(fleet: Path) -> None:
    environment = {**os.environ, "HELM": "/nowhere/helm"}
    command = [*RAYHELM, "render", str(fleet), "--manifests"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert ended.returncode == 3
    assert "make setup" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_render_manifests_writes_the_objects_of_helm(rayhelm: Rayhelm, fleet: Path) -> None:
    assert rayhelm("render", str(fleet), "--manifests").code == 0
    objects = list(yaml.safe_load_all((fleet.parent / "manifests/ray-service/llama-8b.yaml").read_text()))
    assert {"RayService", "NetworkPolicy", "ConfigMap"} <= {item["kind"] for item in objects if item}


def test_version_option_prints_the_version(rayhelm: Rayhelm) -> None:
    assert rayhelm("--version").out.count(".") == 2


def test_rayhelm_lists_commands_without_arguments(rayhelm: Rayhelm) -> None:
    answer = rayhelm()
    assert answer.code == 2
    assert "plan" in answer.out + answer.err
    assert "Traceback" not in answer.err


@pytest.mark.parametrize(
    ("shelf", "entry"),
    [("gpus", "H100-SXM-80GB"), ("mig", "h100-80gb"), ("models", "Qwen/Qwen3-32B-AWQ"), ("networks", "rdma-400g")],
)
def test_catalog_lists_entries_of_each_kind(rayhelm: Rayhelm, shelf: str, entry: str) -> None:
    assert entry in rayhelm("catalog", shelf).out
    assert entry in {item["id"] for item in json.loads(rayhelm("catalog", shelf, "--format", "json").out)}


def test_catalog_names_gpus_that_are_not_planned_like_others(rayhelm: Rayhelm) -> None:
    lines = rayhelm("catalog", "gpus").out.splitlines()
    assert "TPU-v5e-16GB, TPU-v6e-32GB: the charts have no worker groups of TPUs, so no pool can have it" in lines
    assert any(line.startswith("Gaudi-3-128GB: its usable memory is unknown") for line in lines)
    limits = {item["id"]: item["limit"] for item in json.loads(rayhelm("catalog", "gpus", "--format", "json").out)}
    assert limits["L4-24GB"] == ""
    assert limits["V100-SXM-32GB"].startswith("no build of vLLM is known to run on it")


def test_lint_prints_warnings_of_the_plan(rayhelm: Rayhelm, fleet: Path) -> None:
    answer = rayhelm("lint", str(fleet), "--no-serve")
    assert answer.code == 0
    assert "no `revision`" in answer.err


def without_helm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HELM", "/nowhere/helm")
    find_helm.cache_clear()


def test_lint_ends_with_3_when_helm_is_missing(rayhelm: Rayhelm, fleet: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without_helm(monkeypatch)
    answer = rayhelm("lint", str(fleet), "--no-serve")
    assert answer.code == 3
    assert "skipped  charts not checked: $HELM is /nowhere/helm" in answer.out
    assert "make setup" in answer.err
    allowed = rayhelm("lint", str(fleet), "--no-serve", "--allow-missing")
    assert (allowed.code, "charts not checked" in allowed.out) == (0, True)


def test_lint_as_json_lists_what_was_not_checked(
    rayhelm: Rayhelm, fleet: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_helm(monkeypatch)
    answer = rayhelm("lint", str(fleet), "--no-serve", "--format", "json")
    assert answer.code == 3
    (not_checked,) = json.loads(answer.out)["not_checked"]
    assert not_checked["what"].startswith("charts not checked")
    assert not_checked["how"]


@pytest.mark.parametrize(("options", "code"), [(("--serve",), 3), (("--serve", "--allow-missing"), 0)])
def test_lint_ends_with_3_when_ray_was_asked_for_and_is_missing(
    rayhelm: Rayhelm, fleet: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...], code: int
) -> None:
    monkeypatch.setattr("rayhelm.check.lint.serve_config.can_check", lambda: False)
    answer = rayhelm("lint", str(fleet), *options)
    assert answer.code == code
    assert "skipped  Serve config not read by Ray and vLLM" in answer.out


@pytest.mark.parametrize("chart", ["ray-service", "gateway", "tenant", "platform"])
def test_schema_knows_every_chart(rayhelm: Rayhelm, chart: str) -> None:
    schema = json.loads(rayhelm("schema", chart).out)
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)  # `jsonschema.validate` checks the schema again for each file
    for path in VALUES.glob(f"*/{chart}/**/*.yaml"):
        validator.validate(yaml.safe_load(path.read_text()) or {})


def test_schema_names_the_charts_when_it_knows_no_such_thing(rayhelm: Rayhelm) -> None:
    answer = rayhelm("schema", "gatway")
    assert (answer.code, "did you mean `gateway`" in answer.err) == (2, True)


def test_plan_without_reasons_shows_warnings(rayhelm: Rayhelm, fleet: Path) -> None:
    answer = rayhelm("plan", str(fleet), "--no-reasons")
    assert "warning: llama-8b: no `revision`" in answer.out
    assert "pipeline_parallel_size = " not in answer.out


LACKING = """\
fleet: lacking
pools:
  shared: {gpu: L4-24GB, nodes: 2, cpusPerNode: 1, sharing: {shares: 2}}
  whole: {gpu: L4-24GB, nodes: 2, cpusPerNode: 1}
models:
  chat: {source: Qwen/Qwen2.5-7B-Instruct, context: 8192, pool: whole, scaling: engine-queue, slo: {ttft: 2s},
    traffic: {requestsPerSecond: 4, inputTokens: 500, outputTokens: 100}}
  embed: {source: BAAI/bge-m3, task: embed, pool: shared, unpinnedReason: of our own mirror}
tenants:
  apps: {models: [chat, embed]}
"""


def test_plan_warns_of_everything_that_render_and_lint_refuse(rayhelm: Rayhelm, fleet: Path) -> None:
    fleet.write_text(LACKING)
    rendered = json.loads(rayhelm("render", str(fleet), "--format", "json").out)["problems"]
    planned = rayhelm("plan", str(fleet), "--format", "json")
    assert planned.code == 0
    problems = json.loads(planned.out)["problems"]
    unpinned = [problem for problem in problems if problem["rule"] == "model-revision"]
    assert [problem["path"] for problem in unpinned] == ["models.chat"]
    assert [problem for problem in problems if problem not in unpinned] == rendered
    assert {problem["path"] for problem in rendered} == {
        "clusters.main",
        "models.chat.scaling",
        "pools.shared",
        "pools.shared.cpusPerNode",
        "pools.whole.cpusPerNode",
    }
    text = rayhelm("plan", str(fleet), "--no-reasons").out
    assert text.count("will refuse this: ") == len(problems)


@pytest.mark.parametrize("path", FLEETS)
def test_plan_of_a_reference_fleet_has_no_problems(rayhelm: Rayhelm, path: str) -> None:
    assert json.loads(rayhelm("plan", path, "--format", "json").out)["problems"] == []


def test_help_ends_quietly_when_the_pipe_is_closed() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    ended = subprocess.run([*RAYHELM, "--help"], stdout=writer, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writer)
    assert (ended.returncode, ended.stderr) == (0, "")


@pytest.mark.parametrize("command", ["up", "down"])
def test_state_that_is_a_file_is_wrong_usage(rayhelm: Rayhelm, fleet: Path, command: str) -> None:
    answer = rayhelm(command, *([str(fleet)] if command == "up" else []), "--state", str(fleet))
    assert answer.code == 2
    assert f"`--state {fleet}` is a file" in answer.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--kv-cache-dtype", "fp7"], "write `--kv-cache-dtype auto`"),
        (["--pp", "2", "--layers", "1,2"], "write `--layers 18,18`"),
    ],
)
def test_fit_names_the_option_that_fixes_a_setting(rayhelm: Rayhelm, arguments: list[str], message: str) -> None:
    answer = rayhelm("fit", "--model", "Qwen/Qwen3-8B", "--gpu", "L4-24GB", *arguments)
    assert (answer.code, message in answer.err) == (2, True)


def test_problem_in_a_config_json_names_its_line(rayhelm: Rayhelm, fleet: Path) -> None:
    (fleet.parent / "config.json").write_text('{\n "architectures": ["LlamaForCausalLM"],\n "hidden_size": "wide"\n}')
    text = fleet.read_text()
    fleet.write_text(text.replace("    source:", "    architecture: ./config.json\n    source:", 1))
    answer = rayhelm("plan", str(fleet))
    assert answer.code == 1
    assert f"{fleet.parent / 'config.json'}:3: hidden_size: is 'wide'" in answer.err
