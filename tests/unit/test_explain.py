"""`rayhelm explain` reads the types."""

import pytest

from rayhelm.errors import UsageError
from rayhelm.spec.explain import explain


def test_a_field_tells_type_default_and_meaning() -> None:
    told = explain("models.slo.ttft")
    assert told.type == "text like 600ms"
    assert told.description == "Time to first token."
    assert told.default == "left out"


def test_names_in_maps_may_stand_in_the_path() -> None:
    assert explain("models.chat.slo.ttft").description == explain("models.slo.ttft").description


def test_bounds_are_told() -> None:
    assert explain("pools.gpusPerNode").bounds == {"minimum": 1, "maximum": 64}


def test_a_record_lists_its_fields() -> None:
    assert set(explain("models.traffic").fields) == {"requestsPerSecond", "inputTokens", "outputTokens", "sharedPrefix"}


def test_the_root_is_the_fleet() -> None:
    assert "pools" in explain("").fields


def test_a_default_that_is_a_record_is_told_as_yaml_would_be() -> None:
    assert '"kuberay": "1.7.0"' in explain("clusters").default


def test_an_unknown_field_names_the_near_one() -> None:
    with pytest.raises(UsageError, match="did you mean `ttft`"):
        explain("models.slo.tfft")


def test_there_is_nothing_below_a_plain_value() -> None:
    with pytest.raises(UsageError, match="has no fields below it"):
        explain("models.slo.ttft.x")
