"""The rendered serveConfigV2, checked by Ray Serve, Ray Serve LLM and vLLM."""

import importlib
import json
from pathlib import Path
from typing import get_args

import pytest
import yaml

from charts.kit import EXAMPLES, ray_service, serve_config
from rayhelm.check.lint.ray_service.applications import check_applications
from rayhelm.check.lint.ray_service.source import read_service_config
from rayhelm.check.lint.serve_config import check_serve_config as ask_ray
from rayhelm.deploy.charts.helm import template
from rayhelm.deploy.render.files import render_fleet
from rayhelm.deploy.values.emit import select_changed
from rayhelm.deploy.values.ray_service.accelerators import AcceleratorType
from rayhelm.facts.engine_arguments import load_argument_schema
from shared.vllm_examples import EXAMPLES as VLLM_EXAMPLES

pytestmark = pytest.mark.serve


def check_serve_config(text):
    """Return what Ray and vLLM find, which is nothing exactly where the data of the package finds nothing."""
    found = ask_ray(text)
    by_data = [*check_applications(read_service_config("service", text))]
    # Only an import knows whether a module is there.
    if not any("No module named" in problem.message for problem in found):
        assert bool(found) == bool(by_data), (found, by_data)
    return found


@pytest.mark.parametrize("example", EXAMPLES)
def test_ray_and_vllm_accept_the_serve_config(example):
    assert check_serve_config(ray_service(base=example)["spec"]["serveConfigV2"]) == []


@pytest.mark.parametrize("name", VLLM_EXAMPLES)
def test_vllm_accepts_the_examples_of_the_documentation(name, tmp_path):
    fleet = tmp_path / "fleet.yaml"
    fleet.write_text(VLLM_EXAMPLES[name])
    (release,) = (release for release in render_fleet(fleet).releases if release.chart == "ray-service")
    objects = template(release.chart, release.name, release.namespace, select_changed(release.values))
    (config,) = (item["spec"]["serveConfigV2"] for item in objects if item["kind"] == "RayService")
    assert check_serve_config(config) == []
    (model,) = json.loads(config)["applications"][0]["args"]["llm_configs"]
    written = yaml.safe_load(VLLM_EXAMPLES[name])["models"][name]["engine"]
    assert {key: model["engine_kwargs"][key] for key in written} == written


def test_engine_arguments_of_the_package_are_the_ones_of_vllm(monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "ci")
    module = importlib.import_module("engine_arguments")
    assert module.describe_arguments() == load_argument_schema(), "run ci/engine_arguments.py"


def test_accelerator_types_are_the_ones_of_ray():
    from ray.util.accelerators import accelerators

    assert set(get_args(AcceleratorType)) <= {value for value in vars(accelerators).values() if type(value) is str}


@pytest.mark.parametrize(
    ("path", "value", "complaint"),
    [
        ("engine_kwargs.max_model_length", 1, "Unknown engine argument: max_model_length"),
        ("engine_kwargs.model", "x", "model or served_model_name is not allowed"),
        ("engine_kwargs.dtype", "float12", "invalid choice: 'float12'"),
        ("engine_kwargs.max_num_seqs", "many", "--max-num-seqs"),
        ("accelerator_type", "H1000", "Unsupported accelerator type"),
        ("accelerator_config.kind", "abacus", "abacus"),
        ("deployment_config.autoscaling_config.target_ongoing_requests", -1, "Invalid deployment config"),
        ("deployment_config.autoscaling_config.min_replicas", 9, "Invalid deployment config"),
        ("engine_kwargs.tensor_parallel_size", 2, ""),
        ("placement_group_config", {"bundles": [{"GPU": 1}] * 3}, "3 bundles for tensor x pipeline parallel = 1 ranks"),
        ("server", "x", "Extra inputs are not permitted"),
    ],
)
def test_serve_config_check_names_the_path_of_a_bad_value(path, value, complaint):
    config = serve_config()
    put(config["applications"][0]["args"]["llm_configs"][0], path.split("."), value)
    problems = check_serve_config(json.dumps(config))
    if not complaint:
        assert problems == []
        return
    assert complaint in problems[0].message
    assert problems[0].path.startswith("applications.0.args.llm_configs.0")


def test_ray_makes_one_group_of_all_ranks():
    from ray.llm._internal.serve.serving_patterns.data_parallel.dp_server import DPServer
    from ray.serve.llm import LLMConfig

    (app,) = serve_config(base="expert-parallel/deepseek-v3")["applications"]
    options = DPServer.get_deployment_options(LLMConfig.model_validate(app["args"]["llm_config"]))
    assert options["gang_scheduling_config"].gang_size == 8
    assert options["autoscaling_config"]["min_replicas"] == options["autoscaling_config"]["max_replicas"] == 8
    assert [bundle["GPU"] for bundle in options["placement_group_bundles"]] == [1]


@pytest.mark.parametrize(
    ("path", "value", "complaint"),
    [
        ("llm_config.engine_kwargs.data_parallel_size", "all", "Invalid data_parallel_size: all"),
        ("llm_config.engine_kwargs.data_parallel_size", 1, "needs a group of ranks"),
        ("llm_config.engine_kwargs.max_model_length", 1, "Unknown engine argument: max_model_length"),
        ("llm_config.accelerator_type", "H1000", "Unsupported accelerator type"),
        ("llm_configs", [], "has no argument llm_configs"),
    ],
)
def test_serve_config_check_names_a_bad_value_of_a_model_with_ranks(path, value, complaint):
    config = serve_config(base="expert-parallel/deepseek-v3")
    put(config["applications"][0]["args"], path.split("."), value)
    problem, *_ = check_serve_config(json.dumps(config))
    assert complaint in problem.message
    assert problem.path.startswith("applications.0.args")


def test_ray_builds_an_application_with_both_kinds_of_replicas():
    from ray.serve._private.build_app import build_app
    from ray.serve.llm import build_pd_openai_app

    (app,) = serve_config(base="prefill-decode/llama-70b")["applications"]
    built = build_app(build_pd_openai_app(app["args"]), name="llama-70b")
    deployments = {each.name: each for each in built.deployments}
    assert {name: each.func_or_class.__name__ for name, each in deployments.items() if ":" in name} == {
        "Decode:llama-70b": "PDDecodeServer",
        "Prefill:llama-70b": "PDPrefillServer",
    }
    scaling = {name: each._deployment_config.autoscaling_config for name, each in deployments.items()}
    assert (scaling["Prefill:llama-70b"].max_replicas, scaling["Decode:llama-70b"].max_replicas) == (5, 3)
    assert scaling["Prefill:llama-70b"].target_ongoing_requests == 2


@pytest.mark.parametrize(
    ("path", "value", "complaint"),
    [
        ("prefill_config.engine_kwargs.kv_transfer_config", None, "kv_transfer_config is required"),
        ("decode_config.model_loading_config.model_id", "other", "P/D model id mismatch"),
        ("prefill_config.lora_config", {"max_num_adapters_per_replica": 2}, "must be configured on both"),
        ("prefill_config.engine_kwargs.max_model_length", 1, "Unknown engine argument: max_model_length"),
        ("decode_config.accelerator_type", "H1000", "Unsupported accelerator type"),
        ("decode_config.engine_kwargs.kv_transfer_config.kv_connector", "MadeUp", "no connector MadeUp"),
        ("prefill_config.engine_kwargs.kv_transfer_config.kv_rank", "one", "kv_rank"),
        ("llm_configs", [], "has no argument llm_configs"),
    ],
)
def test_serve_config_check_names_a_bad_value_of_a_model_with_both_kinds(path, value, complaint):
    config = serve_config(base="prefill-decode/llama-70b")
    put(config["applications"][0]["args"], path.split("."), value)
    problem, *_ = check_serve_config(json.dumps(config))
    assert complaint in problem.message
    assert problem.path.startswith("applications.0.args")


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"import_path": "no.such.module:app"}, "cannot be imported: ModuleNotFoundError"),
        ({"import_path": "ray.serve.llm:build_nothing"}, "cannot be imported: AttributeError"),
        ({"import_path": "no-such-thing"}, "applications.0.import_path"),
        ({"replicas": 1}, "would ignore it"),
        ({"deployments": [{"name": "x", "autoscaling_config": {"min": 1}}]}, "would ignore it"),
    ],
)
def test_serve_config_check_reports_a_bad_application(change, complaint):
    config = serve_config()
    config["applications"][0] |= change
    (problem, *_) = check_serve_config(json.dumps(config))
    assert complaint in str(problem)


def test_serve_config_check_reports_text_that_is_not_yaml():
    assert "not YAML" in ask_ray("{")[0].message


def put(node, path, value):
    for part in path[:-1]:
        node = node[part]
    node[path[-1]] = value
