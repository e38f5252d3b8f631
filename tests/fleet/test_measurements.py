"""The file of measurements: what is read, and what is refused with its line."""

from pathlib import Path

import pytest

from rayhelm.errors import FleetError
from rayhelm.fleet.load import load_fleet
from rayhelm.fleet.measurements import load_measurements, parse_measurements
from shared.small_fleet import SMALL

ONE = """\
pools:
  gpu:
    gpu: L4-24GB
    measured_at: 2026-11-01T12:00:00Z
    pairs:
      - {nodes: [a, b], backend: gloo, gb_per_s: 1.1, latency_us: 60, spread: 0.05}
"""


def refused(text: str) -> str:
    with pytest.raises(FleetError) as caught:
        parse_measurements(text, "measurements.yaml")
    return str(caught.value)


def test_measurements_of_an_exported_config_map_are_those_of_the_file() -> None:
    inside = "".join(f"    {line}\n" for line in ONE.splitlines())
    text = f"apiVersion: v1\nkind: ConfigMap\ndata:\n  measurements.yaml: |\n{inside}"
    assert parse_measurements(text, "map.yaml").pools == parse_measurements(ONE, "plain.yaml").pools


def test_fleet_reads_the_measurements_beside_it(tmp_path: Path) -> None:
    (tmp_path / "fleet.yaml").write_text(f"measurements: measured/here.yaml\n{SMALL}")
    (tmp_path / "measured").mkdir()
    (tmp_path / "measured" / "here.yaml").write_text(ONE)
    loaded = load_fleet(tmp_path / "fleet.yaml")
    assert loaded.measured
    assert loaded.measured.pools["gpu"].pairs[0].gb_per_s == 1.1


def test_fleet_is_refused_when_its_measurements_do_not_exist(tmp_path: Path) -> None:
    (tmp_path / "fleet.yaml").write_text(f"measurements: gone.yaml\n{SMALL}")
    with pytest.raises(FleetError, match=r"gone.yaml: no such file(.|\n)*rayhelm probe FLEET -o") as caught:
        load_fleet(tmp_path / "fleet.yaml")
    assert len(caught.value.problems) == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not complete measurements: the file is empty"),
        (ONE[:-30], "measurements.yaml:7: not complete measurements: not valid YAML"),
        (ONE.partition("      -")[0], "measurements.yaml:5: pools.gpu.pairs: input should be a valid list"),
        ("kind: ConfigMap\ndata: {other: x}\n", "measurements.yaml:2: data: the ConfigMap has no key `measurements.ya"),
        ("kind: ConfigMap\nmetadata: {name: x}\n", "the ConfigMap has no key"),
        ("kind: ConfigMap\ndata: {measurements.yaml: 'pools: {gpu: ['}\n", "data.measurements.yaml:2: not complete"),
        (ONE.replace("1.1", "0"), "measurements.yaml:6: pools.gpu.pairs[0].gb_per_s: input should be greater than 0"),
        (ONE.replace("1.1", "fast"), "a valid number, unable to parse string as a number"),
        (ONE.replace("gloo", "mpi"), "pools.gpu.pairs[0].backend: input should be 'nccl' or 'gloo'"),
        (ONE.replace("    gpu: L4-24GB\n", ""), "pools.gpu.gpu: field required"),
        (ONE.replace("spread", "range"), "pools.gpu.pairs[0].range: extra inputs are not permitted"),
        (ONE.replace("[a, b]", "[a]"), "pools.gpu.pairs[0].nodes"),
        (ONE.replace("2026-11-01T12:00:00Z", "yesterday"), "pools.gpu.measured_at"),
        ("- a\n", "not complete measurements: not a map"),
        ("auths: {}\n", "measurements.yaml:1: not a file of measurements"),
    ],
    ids=[
        "empty", "half-written", "list-missing", "no-key", "no-data", "half-written-config-map", "zero", "text",
        "unknown-backend", "missing-gpu", "mistyped-key", "one-node", "no-time", "list", "other-file",
    ],
)  # fmt: skip
def test_measurements_are_refused_with_line_and_fix(text: str, message: str) -> None:
    said = refused(text)
    assert message in said
    assert "rayhelm probe FLEET -o measurements.yaml" in said


def test_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FleetError, match="measures the pools"):
        load_measurements(tmp_path)


@pytest.mark.parametrize(
    "text",
    [
        '{"auths": {"registry.example": {"auth": "s3cret"}}}',
        "s3cret: 1\n",
        "pools: {gpu: {gpu: s3cret, measured_at: s3cret}}\n",
        "pools: {}\ns3cret: 1\ns3cret: 2\n",
        "pools: !s3cret x\n",
        "pools: *s3cret\n",
        "pools: [s3cret\n",
        "pools: 9999999999999999999999\n",
    ],
    ids=["credentials", "key", "value", "duplicate", "tag", "alias", "not-yaml", "number"],
)
def test_refusal_of_measurements_has_no_text_of_the_file(text: str) -> None:
    said = refused(text)
    assert "s3cret" not in said
    assert "99999" not in said
