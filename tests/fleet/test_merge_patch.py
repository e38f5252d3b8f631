"""A change of a fleet file is merged, and leaves the file as it was read."""

from typing import Any

import pytest

from rayhelm.fleet.merge_patch import apply_change


@pytest.mark.parametrize(
    ("data", "change", "result"),
    [
        ({"a": 1, "b": {"c": 2}}, {"b": {"c": None, "d": 3}}, {"a": 1, "b": {"d": 3}}),
        ({"a": 1}, {"a": {"b": {"c": None}}}, {"a": {"b": {}}}),
        ({"a": [1, 2]}, {"a": [3]}, {"a": [3]}),
        (None, {"a": 1}, {"a": 1}),
    ],
)
def test_change_is_merged_as_rfc_7396_says(data: Any, change: Any, result: Any) -> None:
    assert apply_change(data, change) == result


def test_change_leaves_the_fleet_file_as_it_is() -> None:
    data = {"models": {"a": {"engine": {"seed": 1}}}}
    merged = apply_change(data, {"models": {"a": {"engine": {"max_num_seqs": 512}}}})
    assert merged["models"]["a"]["engine"] == {"seed": 1, "max_num_seqs": 512}
    assert data == {"models": {"a": {"engine": {"seed": 1}}}}
