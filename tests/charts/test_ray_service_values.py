"""Values, schema, documents and templates say the same."""

import json
import os
import re

import pytest
import yaml

from charts.kit import EXAMPLES, HELMS, HERE, example, only, over, parsed
from rayhelm.charts.generate import BEGIN, CHARTS, stale
from rayhelm.charts.helm import charts_dir, render
from rayhelm.charts.rules import rules
from rayhelm.charts.shape import default_of, entry_models, keys
from rayhelm.values.ray_service import RayServiceValues
from rayhelm.versions import versions

CHART = charts_dir() / "ray-service"
TEMPLATES = "\n".join(
    path.read_text()
    for path in sorted(CHART.rglob("templates/**/*"))
    if path.is_file() and path.name != "_defaults.tpl"
)
UNUSED = {"global": "Helm hands it to every chart; this one has no use for it"}


@pytest.mark.parametrize("chart", CHARTS)
def test_generated_files_are_fresh(chart):
    assert stale(chart) == [], "run `make generate`"


def test_values_yaml_holds_every_default():
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    assert values == default_of(RayServiceValues)


def test_the_chart_and_its_values_name_the_one_ray():
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    assert chart["appVersion"] == values["ray"]["version"] == versions().ray
    assert values["kuberay"]["version"] == versions().kuberay.default
    image = versions().images["ray"]
    assert {**values["image"], **image.model_dump()} == values["image"]


def test_every_supported_kuberay_can_be_named():
    for version in versions().kuberay.supported:
        RayServiceValues.model_validate({"kuberay": {"version": version}})


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_is_what_the_model_takes_and_gives(name):
    values = RayServiceValues.model_validate(example(name))
    dumped = values.model_dump(by_alias=True, exclude_none=True, mode="json")
    assert RayServiceValues.model_validate(dumped) == values


@pytest.mark.parametrize("name", EXAMPLES)
def test_completed_by_the_model_or_by_the_chart_is_the_same(name):
    """The defaults of entries are in Python and in `_defaults.tpl`: both have to mean one thing."""
    written = example(name)
    completed = RayServiceValues.model_validate(written).model_dump(by_alias=True, exclude_none=True, mode="json")
    assert parsed(render("ray-service", "chat", "models", written)) == parsed(
        render("ray-service", "chat", "models", completed)
    )


def test_every_value_is_used_by_a_template():
    unused = {path for path, name in named(RayServiceValues) if not re.search(rf"[.\" ]{name}\b", TEMPLATES)}
    assert unused == set(UNUSED)


def test_every_use_of_a_value_exists():
    known = {name for _, name in named(RayServiceValues)} | {"Chart", "Release"}
    for use in re.findall(r"\.Values\.([A-Za-z.]+)", TEMPLATES) + re.findall(r"\$v\.([A-Za-z.]+)", TEMPLATES):
        assert set(use.split(".")) <= known, use


def test_every_rule_that_the_chart_claims_has_its_condition():
    used = set(re.findall(r'"ray-service\.refuse" \(list [^"]*"([a-z0-9-]+)"', TEMPLATES))
    assert used == {name for name, rule in rules("ray-service").items() if "chart" in rule.layers}


def test_every_value_and_entry_is_told_in_the_readme():
    readme = (CHART / "README.md").read_text()
    for path in ("workerGroups.<name>.gpu.count", "serve.applications.<name>.models.<name>.engine.maxModelLen"):
        assert f"| `{path}` |" in readme
    table = readme.partition(BEGIN)[2]
    assert len(re.findall(r"^\| `", table, re.MULTILINE)) == len(list(named(RayServiceValues)))


def test_every_key_has_a_meaning():
    for model in (RayServiceValues, *entry_models(RayServiceValues).values()):
        for path, field in described(model):
            assert field.description, path


def test_the_smallest_values_render_what_the_golden_file_shows():
    text = render("ray-service", "chat", "models", example("minimal"))
    golden = HERE / "golden/minimal.yaml"
    if os.environ.get("RAYHELM_UPDATE_GOLDEN"):
        golden.write_text(text)
    assert parsed(text) == parsed(golden.read_text()), "RAYHELM_UPDATE_GOLDEN=1 writes it anew"


def test_the_smallest_values_of_the_readme_render():
    (values,) = re.findall(r"## The smallest values\n\n```yaml\n(.*?)```", (CHART / "README.md").read_text(), re.DOTALL)
    service = only(parsed(render("ray-service", "chat", "models", yaml.safe_load(values))), "RayService")
    assert "qwen3-8b" in service["spec"]["serveConfigV2"]


@pytest.mark.parametrize("helm", HELMS)
def test_it_works_as_a_dependency_of_another_chart(tmp_path, helm):
    parent = tmp_path / "parent"
    (parent / "charts").mkdir(parents=True)
    (parent / "charts/ray-service").symlink_to(CHART)
    parent.joinpath("Chart.yaml").write_text(
        json.dumps(
            {
                "apiVersion": "v2",
                "name": "parent",
                "version": "0.1.0",
                "dependencies": [{"name": "ray-service", "version": "0.1.0", "repository": ""}],
            }
        )
    )
    values = {"global": {"team": "a"}, "ray-service": example("minimal")}
    nested = parsed(render(str(parent), "chat", "models", values, helm=HELMS[helm]))
    assert only(nested, "RayService") == only(
        parsed(render("ray-service", "chat", "models", example("minimal"))), "RayService"
    )


MODEL = "serve.applications.chat.models.llama-8b"


@pytest.mark.parametrize("helm", HELMS)
@pytest.mark.parametrize(
    "setting",
    [
        f"{MODEL}.autoscaling.maxReplicas=1",
        f"{MODEL}.autoscaling.initialReplicas=2",
        "serve.applications.chat.ingress.minReplicas=2",
        f"{MODEL}.engine.maxNumSeqs=64",
        f"{MODEL}.engine.gpuMemoryUtilization=1",
        f"{MODEL}.gpuFraction=1",
        f"{MODEL}.gracefulShutdownSeconds=60",
        "workerGroups.gpu.maxReplicas=3",
        "workerGroups.gpu.gpu.count=2",
        "upgrade.deletionDelaySeconds=900",
    ],
)
def test_a_number_of_the_command_line_is_the_number_of_a_file(setting, helm):
    """Helm reads `--set` as int64 and files as float64, and templates compare neither with the other."""
    path, _, value = setting.partition("=")
    overlay = json.loads("".join(f'{{"{key}": ' for key in path.split(".")) + value + "}" * len(path.split(".")))
    set_ = render("ray-service", "chat", "models", example("minimal"), options=("--set", setting), helm=HELMS[helm])
    written = render("ray-service", "chat", "models", over(example("minimal"), overlay), helm=HELMS[helm])
    assert parsed(set_) == parsed(written)


def test_overlays_merge_by_name():
    two = over(
        example("minimal"), {"workerGroups": {"more": {"gpu": {"count": 0}, "resources": {"cpu": 2, "memory": "16Gi"}}}}
    )
    groups = only(parsed(render("ray-service", "chat", "models", two)), "RayService")["spec"]["rayClusterConfig"]
    assert [group["groupName"] for group in groups["workerGroupSpecs"]] == ["gpu", "more"]


def named(model, path=""):
    """Every key as its path and its last part."""
    for key in keys(model):
        yield f"{path}{key.name}", key.name
        if below := key.section or key.entry:
            yield from named(below, f"{path}{key.name}.")


def described(model, path=""):
    for key in keys(model):
        yield f"{path}{key.name}", key.field
        if key.section:
            yield from described(key.section, f"{path}{key.name}.")


def test_a_section_that_is_given_in_part_keeps_the_rest_of_its_default():
    values = RayServiceValues.model_validate(
        {
            "gcsFaultTolerance": {"passwordSecret": {"name": "redis"}},
            "networkPolicy": {"operator": {"podLabels": {"a": 1}}},
        }
    )
    assert values.gcs_fault_tolerance.password_secret.key == "password"
    assert values.network_policy.operator.namespace == "kuberay-system"
