"""`rayhelm lint` of a RayService that a person wrote: what Ray and vLLM refuse, with file, line and fix."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from rayhelm.check.admission.manifests import read_manifests
from rayhelm.check.lint.fleet import Checked
from rayhelm.check.lint.ray_service.check import check_ray_services
from rayhelm.cli.app import app
from rayhelm.errors import Fix, Problem
from rayhelm.facts.engine_arguments import load_argument_schema, load_removed_arguments
from rayhelm.fleet.yaml_nodes import Loader

RAY_SERVICE = """\
apiVersion: ray.io/v1
kind: RayService
metadata: {name: chat, namespace: ml}
spec:
  serveConfigV2: |
    applications:
    - name: llms
      import_path: ray.serve.llm:build_openai_app
      route_prefix: /
      args:
        llm_configs:
        - model_loading_config: {model_id: chat, model_source: Qwen/Qwen2.5-7B-Instruct}
          engine_kwargs:
            max_model_len: 4096
            tensor_parallel_size: 2
          deployment_config:
            autoscaling_config: {min_replicas: 1, max_replicas: 2}
  rayClusterConfig:
    rayVersion: "2.60.0"
    headGroupSpec:
      rayStartParams: {num-gpus: "0"}
      template: {spec: {containers: [{name: head, image: "rayproject/ray-llm:2.60.0-py312-cu130"}]}}
    workerGroupSpecs:
    - groupName: gpu
      replicas: 2
      rayStartParams: {}
      template:
        spec:
          containers:
          - name: worker
            image: rayproject/ray-llm:2.60.0-py312-cu130
            resources: {limits: {nvidia.com/gpu: "2"}}
"""


def check(folder: Path, *changes: tuple[str, str], text: str = RAY_SERVICE) -> Checked:
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    file = folder / "service.yaml"
    file.write_text(text)
    return check_ray_services(read_manifests(file))


def problem(folder: Path, *changes: tuple[str, str]) -> Problem:
    (found,) = check(folder, *changes).problems
    return found


def line(found: Problem) -> str:
    assert found.line
    return Path(found.file).read_text().splitlines()[found.line - 1].strip()


def test_right_service_has_no_finding(tmp_path: Path) -> None:
    found = check(tmp_path)
    assert (found.problems, found.warnings, found.not_checked) == ([], [], [])
    assert found.done[0].endswith("no problem in import paths, engine arguments, versions, GPUs")


WRONG = {
    "near name": ("max_num_seq: 8", "max_num_seqs: 8"),
    "removed": ("device: auto", "vLLM finds the GPUs"),
    "task": ("task: embed", "runner: pooling"),
    "type": ("max_model_len: long", "whole number"),
    "choice": ("dtype: bf16", "bfloat16"),
    "model": ("model: Qwen/Qwen3-8B", "model_loading_config"),
    "executor": ("distributed_executor_backend: mp", "ray"),
}


@pytest.mark.parametrize(("written", "expected"), WRONG.values(), ids=WRONG)
def test_engine_argument_that_vllm_refuses_is_reported(written: str, expected: str, tmp_path: Path) -> None:
    found = problem(tmp_path, ("max_model_len: 4096", written))
    assert (found.rule, line(found)) == ("vllm-argument", written)
    assert expected in str(found)
    assert found.path.startswith("spec.serveConfigV2.applications[0].args.llm_configs[0].engine_kwargs.")


@pytest.mark.parametrize("written", ["tensor_parallel_sizes: 2", "max_model_le: 4096"])
def test_fix_of_a_mistyped_argument_is_accepted(written: str, tmp_path: Path) -> None:
    wrong = ("tensor_parallel_size: 2", written) if "parallel" in written else ("max_model_len: 4096", written)
    fixed = problem(tmp_path, wrong).fix_text.partition("   #")[0]
    assert check(tmp_path, (wrong[0], fixed)).problems == []


def test_removed_arguments_are_none_of_vllm_and_their_replacements_are() -> None:
    known = load_argument_schema()["properties"]
    removed = load_removed_arguments()
    assert not removed.keys() & known.keys()
    assert all(each.use in known for each in removed.values() if each.use)


@pytest.mark.parametrize(
    ("written", "fix"),
    [
        ("ray.serve.llm:build_open_ai_app", "ray.serve.llm:build_openai_app"),
        ("ray.serve.llm.builders:build_openai_app", "ray.serve.llm:build_openai_app"),
        ("build_openai_app", "ray.serve.llm:build_openai_app"),
    ],
)
def test_unknown_import_path_is_reported_with_the_builder(written: str, fix: str, tmp_path: Path) -> None:
    found = problem(tmp_path, ("ray.serve.llm:build_openai_app", written))
    assert (found.rule, line(found)) == ("ray-import-path", f"import_path: {written}")
    assert isinstance(found.fix, Fix)
    assert found.fix.value == fix


def test_import_path_with_a_dot_is_the_builder(tmp_path: Path) -> None:
    assert check(tmp_path, ("llm:build_openai_app", "llm.build_openai_app")).problems == []


def test_application_of_the_user_is_not_checked_and_said_so(tmp_path: Path) -> None:
    found = check(tmp_path, ("ray.serve.llm:build_openai_app", "mine.app:app"))
    assert found.problems == []
    assert "`mine.app:app` (application llms): its code is in the image or in working_dir" in found.not_checked[0].what


def test_key_that_serve_ignores_is_a_warning(tmp_path: Path) -> None:
    found = check(tmp_path, ("route_prefix: /", "route_prefix: /\n      replicas: 2"))
    assert found.problems == []
    (warning,) = found.warnings
    assert "service.yaml:10: spec.serveConfigV2.applications[0].replicas: Ray 2.60.0 has no key `replicas`" in warning


def test_key_that_llm_config_refuses_is_reported(tmp_path: Path) -> None:
    found = problem(tmp_path, ("deployment_config:", "deployment_confi:"))
    assert (found.rule, "`deployment_config`" in found.message) == ("ray-llm-config", True)


def test_engine_argument_beside_engine_kwargs_is_reported(tmp_path: Path) -> None:
    found = problem(tmp_path, ("engine_kwargs:\n", "dtype: bfloat16\n          engine_kwargs:\n"))
    assert (found.rule, "engine argument" in found.message, line(found)) == ("ray-llm-config", True, "dtype: bfloat16")


def test_model_without_an_id_is_reported(tmp_path: Path) -> None:
    assert problem(tmp_path, ("model_id: chat, ", "")).rule == "ray-llm-config"


def test_builder_without_models_is_reported(tmp_path: Path) -> None:
    assert problem(tmp_path, ("llm_configs:", "models:")).message == "build_openai_app needs `llm_configs` in `args`"


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ('rayVersion: "2.60.0"', 'rayVersion: "2.52.0"', "is 2.52.0, and the image"),
        ("image: rayproject/ray-llm:2.60.0-py312", "image: rayproject/ray-llm:2.52.0-py312", "has Ray 2.52.0"),
        ("image: rayproject/ray-llm:2.60.0-py312", "image: rayproject/ray-llm:2.60.0-py311", "has Python 3.11"),
    ],
)
def test_versions_that_contradict_each_other_are_reported(old: str, new: str, expected: str, tmp_path: Path) -> None:
    found = problem(tmp_path, (old, new))
    assert (found.rule, expected in found.message) == ("ray-version", True)
    assert line(found) == yaml.safe_load(f"a: {new!r}")["a"].strip() + ("" if "rayVersion" in old else "-cu130")


def test_image_without_vllm_is_reported(tmp_path: Path) -> None:
    found = check(tmp_path, ("rayproject/ray-llm:", "rayproject/ray:")).problems
    assert {each.rule for each in found} == {"ray-image"}
    assert "rayproject/ray-llm" in found[0].fix_text


def test_image_that_installs_packages_needs_no_vllm(tmp_path: Path) -> None:
    install = ("route_prefix: /", "runtime_env: {pip: [vllm]}")
    assert check(tmp_path, ("rayproject/ray-llm:", "rayproject/ray:"), install).problems == []


def test_arguments_of_another_ray_are_a_warning_and_said_to_be_unknown(tmp_path: Path) -> None:
    found = check(tmp_path, ("2.60.0", "2.52.0"), ("max_model_len: 4096", "device: auto"))
    assert found.problems == []
    assert "no argument `device`" in found.warnings[0]
    assert "engine arguments of the vLLM of Ray 2.52.0" in found.not_checked[0].what


def test_image_without_a_version_is_said_to_be_assumed(tmp_path: Path) -> None:
    found = check(tmp_path, ("rayproject/ray-llm:2.60.0-py312-cu130", "registry.example/serving:7"))
    assert found.problems == []
    assert "Ray 2.60.0 with vLLM 0.29.0 is assumed" in found.not_checked[0].what


SIZE = "tensor_parallel_size: 2"
UNPLACED = {
    "tensor": ((SIZE, "tensor_parallel_size: 8"), "a replica needs 8 GPUs", "tensor_parallel_size: 8"),
    "pipeline": ((SIZE, "pipeline_parallel_size: 8"), "pipeline 8", "- model_loading_config"),
    "num_gpus": (
        ("deployment_config:\n", "deployment_config:\n            ray_actor_options: {num_gpus: 2}\n"),
        "which then needs 3 GPUs",
        "ray_actor_options",
    ),
    "large bundle": (
        ("deployment_config:", "placement_group_config: {bundle_per_worker: {GPU: 4}}\n          deployment_config:"),
        "a bundle needs 4 GPUs, and the largest pod has 2 GPUs",
        "- model_loading_config",
    ),
    "strict pack": (
        (
            "tensor_parallel_size: 2\n",
            "tensor_parallel_size: 4\n          placement_group_config:\n            bundle_per_worker: {GPU: 1}\n"
            "            strategy: STRICT_PACK\n",
        ),
        "STRICT_PACK places 4 GPUs on one node",
        "strategy: STRICT_PACK",
    ),
    "replicas": (
        ("min_replicas: 1, max_replicas: 2", "min_replicas: 3, max_replicas: 3"),
        "the least replicas need 6 GPUs",
        "workerGroupSpecs:",
    ),
}


@pytest.mark.parametrize(("change", "message", "where"), UNPLACED.values(), ids=UNPLACED)
def test_replica_that_ray_never_places_is_reported(
    change: tuple[str, str], message: str, where: str, tmp_path: Path
) -> None:
    found = problem(tmp_path, change)
    assert (found.rule, message in found.message) == ("ray-gpus", True), found.message
    assert line(found).startswith(where)


@pytest.mark.parametrize("change", [UNPLACED["tensor"][0], UNPLACED["replicas"][0]])
def test_first_fix_of_missing_gpus_is_accepted(change: tuple[str, str], tmp_path: Path) -> None:
    found = problem(tmp_path, change)
    assert isinstance(found.fix, Fix)
    data = yaml.load((tmp_path / "service.yaml").read_text(), Loader=Loader)
    config = yaml.safe_load(data["spec"]["serveConfigV2"])
    data["spec"]["serveConfigV2"] = config
    _apply(data, found.fix)
    data["spec"]["serveConfigV2"] = yaml.safe_dump(config)
    assert check(tmp_path, text=yaml.safe_dump(data, sort_keys=False)).problems == []


def _apply(data: Any, fix: Fix) -> None:
    *above, key = fix.path.replace("[", ".").replace("]", "").split(".")
    for step in above:
        data = data[int(step)] if isinstance(data, list) else data[step]
    data[key] = fix.value


def test_autoscaled_group_has_its_most_pods(tmp_path: Path) -> None:
    scaled = ("headGroupSpec:", "enableInTreeAutoscaling: true\n    headGroupSpec:")
    many = ("min_replicas: 1, max_replicas: 2", "min_replicas: 3, max_replicas: 3")
    assert check(tmp_path, scaled, many, ("replicas: 2\n", "replicas: 2\n      maxReplicas: 3\n")).problems == []


def test_hosts_of_a_group_count(tmp_path: Path) -> None:
    hosts = ("replicas: 2\n", "replicas: 1\n      numOfHosts: 4\n")
    found = check(tmp_path, hosts, (SIZE, "tensor_parallel_size: 2\n            pipeline_parallel_size: 4"))
    assert found.problems == []


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (("max_replicas: 2", "max_replicas: 9"), "Ray places 2 of 9 replicas"),
        ((SIZE, "tensor_parallel_size: 4"), "tensor parallelism of 4 spans pods of 2 GPUs"),
    ],
)
def test_what_works_and_is_less_than_meant_is_a_warning(change: tuple[str, str], expected: str, tmp_path: Path) -> None:
    found = check(tmp_path, change)
    assert found.problems == []
    assert any(expected in each for each in found.warnings)


@pytest.mark.parametrize(
    ("resource", "expected"),
    [("gpu.intel.com/xe", "does not report to Ray"), ("cpu", "no group has `nvidia.com/gpu`")],
)
def test_gpus_that_the_file_does_not_say_are_not_checked(resource: str, expected: str, tmp_path: Path) -> None:
    found = check(tmp_path, ("nvidia.com/gpu", resource), (SIZE, "tensor_parallel_size: 8"))
    assert found.problems == []
    assert any(expected in each.what for each in found.not_checked)


def test_deployment_of_another_application_is_compared_with_the_gpus(tmp_path: Path) -> None:
    mine = (
        "import_path: ray.serve.llm:build_openai_app",
        "import_path: mine:app\n      deployments: [{name: A, ray_actor_options: {num_gpus: 4}}]",
    )
    assert "a replica needs 4 GPUs" in problem(tmp_path, mine).message


def test_model_on_cpus_needs_no_gpus(tmp_path: Path) -> None:
    cpus = ("engine_kwargs:", "accelerator_config: {kind: cpu}\n          engine_kwargs:")
    assert check(tmp_path, cpus, (SIZE, "tensor_parallel_size: 8")).problems == []


@pytest.mark.parametrize(
    ("old", "new", "where"),
    [
        ("name: llms", "name: [llms", 8),
        ("name: llms", "name: llms\n      name: more", 8),
    ],
)
def test_config_that_is_not_yaml_is_reported_with_its_line(old: str, new: str, where: int, tmp_path: Path) -> None:
    found = problem(tmp_path, (old, new))
    assert (found.rule, found.line) == ("ray-config", where)


@pytest.mark.parametrize("value", ["[]", "3", "text", "null", "[{a: 1}]", "{a: {b: []}}"])
@pytest.mark.parametrize("key", ["applications", "args", "llm_configs", "engine_kwargs", "deployment_config"])
def test_value_of_another_type_is_no_crash(key: str, value: str, tmp_path: Path) -> None:
    item: Mapping[str, Any] = yaml.safe_load(RAY_SERVICE)
    config = yaml.safe_load(item["spec"]["serveConfigV2"])
    _set(config, key, yaml.safe_load(value))
    item["spec"]["serveConfigV2"] = yaml.safe_dump(config)
    check(tmp_path, text=yaml.safe_dump(item))


@pytest.mark.parametrize("value", ["[]", "3", "null", "[null]", "{resources: 1}"])
@pytest.mark.parametrize(
    "key", ["spec", "rayClusterConfig", "headGroupSpec", "workerGroupSpecs", "template", "containers"]
)
def test_cluster_of_another_type_is_no_crash(key: str, value: str, tmp_path: Path) -> None:
    item = yaml.safe_load(RAY_SERVICE)
    _set(item, key, yaml.safe_load(value))
    check(tmp_path, text=yaml.safe_dump(item))


def _set(node: Any, key: str, value: Any) -> None:
    """Set a key everywhere."""
    for name, each in (
        list(node.items()) if isinstance(node, dict) else enumerate(node if isinstance(node, list) else ())
    ):
        if name == key:
            node[name] = value
        else:
            _set(each, key, value)


def test_command_reports_problems_of_ray_beside_those_of_policies(tmp_path: Path) -> None:
    (tmp_path / "service.yaml").write_text(RAY_SERVICE.replace("max_model_len: 4096", "device: auto"))
    result = CliRunner().invoke(app, ["lint", str(tmp_path)])
    assert result.exit_code == 1
    assert (
        "service.yaml:14: spec.serveConfigV2.applications[0].args.llm_configs[0].engine_kwargs.device" in result.stderr
    )


ODD = {
    "no text": ("serveConfigV2: |\n    applications:", "serveConfigV2:\n    applications:", "is not a text"),
    "application": ("    - name: llms\n", "    - 3\n    - name: llms\n", "is not a map: an application"),
    "model": ("        llm_configs:\n", "        llm_configs:\n        - 7\n", "neither a map, an LLMConfig"),
    "bundles": (
        "          engine_kwargs:\n",
        "          placement_group_config: {bundles: [{GPU: 1}]}\n          engine_kwargs:\n",
        "1 bundles for tensor x pipeline parallel = 2 ranks",
    ),
    "scaling": ("max_replicas: 2", "max_replicas: 0", "greater than 0"),
    "replicas": ("min_replicas: 1", "min_replicas: 3", "`min_replicas` is 3, and `max_replicas` is 2"),
    "strategy": (
        "          engine_kwargs:\n",
        "          placement_group_config: {strategy: PACKED}\n          engine_kwargs:\n",
        "`PACKED` is not one of",
    ),
}


@pytest.mark.parametrize(("old", "new", "message"), ODD.values(), ids=ODD)
def test_config_of_a_wrong_form_is_reported_and_not_called_good(
    old: str, new: str, message: str, tmp_path: Path
) -> None:
    found = check(tmp_path, (old, new))
    assert [each for each in found.problems if message in each.message and each.fix]
    assert found.done == []
