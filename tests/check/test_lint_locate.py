"""Problems of charts and of Ray get the line of the fleet file by their path, never by words of their message."""

import json
from pathlib import Path

import pytest

from rayhelm.check.lint.fleet import _list_served_names, check_fleet
from rayhelm.check.lint.locate import locate
from rayhelm.deploy.charts.helm import split_key
from rayhelm.deploy.compose.origin import Origins
from rayhelm.deploy.render.files import Rendered, render_fleet
from rayhelm.deploy.render.releases import Release
from rayhelm.errors import Problem

VALUES = Path(__file__).parents[2] / "values"


@pytest.fixture(scope="module")
def rendered() -> Rendered:
    return render_fleet(VALUES / "homelab" / "fleet.yaml")


def release(rendered: Rendered, chart: str) -> Release:
    return next(each for each in rendered.releases if each.chart == chart)


@pytest.mark.parametrize(
    ("chart", "path", "located"),
    [
        ("ray-service", "serve.applications.whisper.models.whisper", "models.whisper"),
        ("ray-service", "weights.onlineReason", "models.embeddings"),
        ("gateway", "models.reranker.versions.stable", "models.reranker"),
        ("gateway", "limits.connections", "clusters.main.gateway"),
        ("platform", "nvidia.pools.rtx", "pools.rtx"),
        ("platform", "metrics", "clusters.main"),
    ],
)
def test_locate_finds_the_part_of_the_fleet(rendered: Rendered, chart: str, path: str, located: str) -> None:
    problem = Problem("of llm and the pool halo", path)
    found = locate(problem, release(rendered, chart), rendered)
    assert found.path == path
    assert found.line == rendered.plan.source.line(tuple(located.split(".")))
    assert locate(Problem("x"), release(rendered, chart), rendered, path.split(".")).path == located


@pytest.mark.parametrize(
    ("chart", "key", "origin"),
    [
        ("ray-service", "serve.applications.whisper.models.whisper.gpuFraction", "models.whisper.gpuFraction"),
        ("ray-service", "serve.applications.llm.models.llm.engine.maxModelLen", "models.llm.context"),
        ("platform", "nvidia.pools.rtx.gpu", "pools.rtx.gpu"),
        ("gateway", "tenants.family.requestsPerMinute", "tenants.family.requestsPerMinute"),
    ],
)
def test_planned_value_has_the_line_of_the_key_that_changes_it(
    rendered: Rendered, chart: str, key: str, origin: str
) -> None:
    made = release(rendered, chart)
    assert Origins(chart, made.name, made.cluster, rendered.plan).find(key) == tuple(origin.split("."))
    assert locate(Problem("x", key), made, rendered).line == rendered.plan.source.line(tuple(origin.split(".")))


BAD_ENTRIES = """\
fleet: entries
clusters:
  main:
    apiServer: {cidrs: [10.0.0.1/32]}
    values:
      prometheusRules:
        alerts:
          GpuIdle: {severity: critical}
          GpuLazy: {severity: warning}   # rules-alert
    gateway:
      replicas: 1
      allowedClients: [apps]
pools:
  l4: {gpu: L4-24GB, nodes: 2, gpusPerNode: 1, network: ethernet-25g}
models:
  llama-3.1:
    source: meta-llama/Llama-3.1-8B-Instruct
    unpinnedReason: weights of a test of messages
    service: chat
    context: 4096
    traffic: {requestsPerSecond: 0.1, inputTokens: 500, outputTokens: 100}
services:
  chat:
    tenant: search
    values:
      head:
        env:
          TZ: UTC
          RAY_AUTH_MODE: none   # reserved-env
          VLLM_SERVER_DEV_MODE: 1
      serve:
        applications:
          llama-3-1:
            models:
              llama-3.1:
                env:
                  VLLM_DEBUG_LOG_API_SERVER_RESPONSE: 1   # reserved-env
tenants:
  search:
    gpus: 2
    models: [llama-3.1]
    values:
      quota:
        priorityClasses:
          high:
            pods: 1
            gpus:
              nvidia.com/gpus: 1   # resource-unknown
"""


def test_bad_entry_of_a_map_has_its_own_line(tmp_path: Path) -> None:
    (tmp_path / "fleet.yaml").write_text(BAD_ENTRIES)
    problems = check_fleet(tmp_path / "fleet.yaml", ask_ray=False).problems
    marked = [
        (line.rpartition("# ")[2], number) for number, line in enumerate(BAD_ENTRIES.splitlines(), 1) if " # " in line
    ]
    assert sorted((problem.rule, problem.line) for problem in problems) == sorted(marked)


def test_split_key_leaves_a_message_without_key_alone() -> None:
    assert split_key(Problem("a.b: wrong: very")) == Problem("wrong: very", "a.b")
    assert split_key(Problem("no key here: wrong")) == Problem("no key here: wrong")


def test_served_names_are_those_on_the_path_of_a_serve_config() -> None:
    models = [{"model_loading_config": {"model_id": name}} for name in ("a", "b")]
    config = json.loads(json.dumps({"applications": [{"name": "app", "args": {"llm_configs": models}}]}))
    assert _list_served_names(config, "applications.0.args.llm_configs.1.engine_kwargs") == ["b", "app"]
    assert _list_served_names(config, "applications.0.name.x") == ["app"]
    assert _list_served_names(config, "") == []
