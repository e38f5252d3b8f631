"""`rayhelm explain` reads the types."""

import re
from collections.abc import Iterator
from dataclasses import replace

import pytest
import yaml
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from rayhelm.deploy.charts.models import CHARTS
from rayhelm.errors import UsageError
from rayhelm.fleet.explain import _record, explain
from rayhelm.fleet.fleet import Fleet
from rayhelm.fleet.sample import as_yaml, sample
from rayhelm.fleet.walk import fields


def every_path(record: type[BaseModel], path: str = "") -> Iterator[str]:
    for key, info in fields(record).items():
        here = f"{path}.{key}".strip(".")
        yield here
        if below := _record(info.annotation):
            yield from every_path(below, here)


def test_explain_has_type_default_and_meaning_of_a_field() -> None:
    reported = explain("models.slo.ttft")
    assert reported.type == "quantity like 600ms"
    assert reported.description == "Time to first token."
    assert reported.default == "left out"


def test_explain_accepts_names_of_maps_in_the_path() -> None:
    assert explain("models.chat.slo.ttft").description == explain("models.slo.ttft").description


def test_explain_has_bounds() -> None:
    assert explain("pools.gpusPerNode").bounds == {"minimum": 1, "maximum": 64}


def test_explain_lists_fields_of_a_record() -> None:
    assert set(explain("models.traffic.burst").fields) == {"dispersion", "window", "percentile"}


def test_explain_without_path_explains_the_fleet() -> None:
    assert "pools" in explain("").fields


def test_explain_prints_a_default_record_as_json() -> None:
    assert '"kuberay": "1.7.0"' in explain("clusters").default


def test_explain_names_each_type_of_a_union() -> None:
    assert explain("models.replicas").type == "integer or map"


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("clusters.image", "map"),
        ("pools", "map of name to map"),
        ("pools.hosts", "list of maps"),
        ("pools.nodeSelector", "map of name to string like a5000"),
        ("pools.gpu", "string"),
        ("gateway.models.path", 'string or ""'),
        ("gateway.extraEnv.value", "string or number"),
        ("gateway.oidc.algorithms", "list of strings, each one of RS256, ES256"),
        ("argocd.ignoreDifferences.jsonPointers", "list of strings or numbers"),
    ],
)
def test_explain_names_types_in_words_of_yaml(path: str, name: str) -> None:
    assert explain(path, CHARTS).type == name


@pytest.mark.parametrize("path", every_path(Fleet))
def test_explain_names_no_type_of_python(path: str) -> None:
    words = re.sub(r"one of .*|like .*|planned$", "", explain(path).type)
    assert re.fullmatch(r"[a-z ,]*", words)


@pytest.mark.parametrize("path", [path for path in every_path(Fleet) if explain(path).fields])
def test_explain_takes_each_key_that_it_lists(path: str) -> None:
    for key in explain(path).fields:
        assert explain(f"{path}.{key}").type


def test_explain_has_the_unit_of_a_required_quantity() -> None:
    assert explain("networks.bandwidth").type == "quantity like 10Gbit/s"


def test_explain_uses_the_description_of_the_record() -> None:
    assert explain("models.m.slo").description == "Objectives of a model."
    assert explain("models.*").fields["slo"] == "Objectives of a model."


@pytest.mark.parametrize("path", ["models.env", "ray-service.workerGroups.nodeSelectors"])
def test_explain_refuses_an_unknown_field_at_the_end_of_a_map(path: str) -> None:
    record, _, field = path.rpartition(".")
    with pytest.raises(UsageError, match=re.escape(f"`{record}` has no field `{field}`")) as caught:
        explain(path, CHARTS)
    assert str(caught.value).endswith(f" If you chose this name, write `{record}.*`")


@pytest.mark.parametrize("path", every_path(Fleet))
def test_explain_describes_every_field(path: str) -> None:
    reported = explain(path)
    assert reported.description
    assert all(reported.fields.values())


def every_field(record: type[BaseModel], seen: str = "") -> Iterator[tuple[str, type[BaseModel], str]]:
    for key, info in fields(record).items():
        yield f"{seen}.{key}".strip("."), record, key
        if below := _record(info.annotation):
            yield from every_field(below, f"{seen}.{key}")


def errors(record: type[BaseModel], data: object) -> list[ErrorDetails]:
    try:
        record.model_validate(data)
    except ValidationError as error:
        return error.errors()
    return []


@pytest.mark.parametrize(("record", "key"), [pytest.param(*rest, id=path) for path, *rest in every_field(Fleet)])
def test_sample_of_each_field_is_accepted(record: type[BaseModel], key: str) -> None:
    fix = yaml.safe_load(as_yaml(key, sample(fields(record)[key])))
    assert fix[key] is not None
    # What has to stand beside the field is missing; the field itself has to be right.
    assert not [reported for reported in errors(record, fix) if reported["loc"][:1] == (key,)]


@pytest.mark.parametrize("path", ["..", ".", "models..slo", "models."])
def test_explain_refuses_a_path_with_empty_steps(path: str) -> None:
    with pytest.raises(UsageError, match="not a dotted path"):
        explain(path)


def test_explain_names_the_nearest_field() -> None:
    with pytest.raises(UsageError, match="did you mean `ttft`"):
        explain("models.slo.tfft")


def test_explain_refuses_a_field_below_a_plain_value() -> None:
    with pytest.raises(UsageError, match="has no fields below it"):
        explain("models.slo.ttft.x")


@pytest.mark.parametrize("path", ["models.conetxt", "models.slo2", "models.chat.conetxt", "pools.gpu.nods", "modles"])
def test_explain_refuses_a_mistyped_field_with_the_nearest_name(path: str) -> None:
    with pytest.raises(UsageError, match=r"did you mean `(context|slo|nodes|models)`"):
        explain(path)


@pytest.mark.parametrize("path", ["models.chat.task.x", "models.a.b.slo", "clusters.main.main.kuberay", "fleet.chat"])
def test_explain_takes_one_name_for_each_map(path: str) -> None:
    with pytest.raises(UsageError, match="no field"):
        explain(path)


def test_explain_takes_a_star_for_a_name() -> None:
    assert explain("models.*.slo") == replace(explain("models.slo"), path="models.*.slo")


def test_explain_knows_the_values_of_every_chart() -> None:
    for chart, values in CHARTS.items():
        assert set(explain(chart, CHARTS).fields) == set(fields(values))
    assert explain("gateway.limits.bodyBytes", CHARTS).default == "1048576"
    assert explain("ray-service.workerGroups.mine.image", CHARTS).path == "ray-service.workerGroups.mine.image"


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("gateways.limits", "did you mean `gateway`"),
        ("gateway.limit", "`gateway` has no field `limit`; did you mean `limits`"),
        ("gateway.limits.bodyByte", "`gateway.limits` has no field `bodyByte`; did you mean `bodyBytes`"),
    ],
)
def test_explain_names_the_nearest_value_of_a_chart(path: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        explain(path, CHARTS)
