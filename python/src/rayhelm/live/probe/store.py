"""Where results are kept: the ConfigMap of the cluster, and a file for the fleet's repository."""

from collections.abc import Mapping
from pathlib import Path

from rayhelm.fleet.measurements import (
    CONFIG_MAP,
    KEY,
    FleetMeasurements,
    PoolMeasurement,
    load_measurements,
    parse_measurements,
)
from rayhelm.live.cluster.kinds import CONFIG_MAPS
from rayhelm.live.cluster.reader import AbsentError, ClusterReader
from rayhelm.live.cluster.writer import ClusterWriter

__all__ = ["format_measurements", "merge", "read_file", "read_stored", "store"]


def format_measurements(measured: FleetMeasurements) -> str:
    """Return YAML with three significant digits and no key whose value is the default."""
    import yaml

    record = measured.model_dump(mode="json", exclude_defaults=True)
    written: str = yaml.safe_dump(_round(record), sort_keys=False, width=120)
    by = "# Written by `rayhelm probe` and `rayhelm bench`."
    return f"{by} Name this file in the fleet file: `measurements: FILE`.\n{written}"


def read_stored(reader: ClusterReader, namespace: str) -> FleetMeasurements | None:
    """Return the measurements of the cluster; None if there are none. Raises FleetError if they are malformed."""
    try:
        found = reader.get(CONFIG_MAPS, CONFIG_MAP, namespace)
    except AbsentError:
        return None
    text = (found.get("data") or {}).get(KEY)
    if text is None:
        return None
    return parse_measurements(str(text), f"ConfigMap {namespace}/{CONFIG_MAP}, data.{KEY}")


def read_file(path: Path) -> FleetMeasurements | None:
    """Return the measurements of an earlier run; None if the file does not exist."""
    return load_measurements(path) if path.exists() else None


def merge(earlier: FleetMeasurements | None, pools: Mapping[str, PoolMeasurement]) -> FleetMeasurements:
    """Return the earlier measurements, with those of `pools` in place of theirs."""
    kept = earlier or FleetMeasurements()
    return FleetMeasurements(pools={**kept.pools, **pools}, models=kept.models)


def store(writer: ClusterWriter, namespace: str, measured: FleetMeasurements) -> None:
    """Write the ConfigMap."""
    metadata = {"name": CONFIG_MAP, "namespace": namespace}
    data = {KEY: format_measurements(measured)}
    writer.apply(CONFIG_MAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})


def _round(value: object) -> object:
    if isinstance(value, dict):
        return {key: _round(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_round(each) for each in value]
    return float(f"{value:.3g}") if isinstance(value, float) else value
