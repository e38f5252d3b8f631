"""Comparison of the metric catalog with scrapes: `make metrics-catalog`."""

import pytest
from yaml import safe_load

from rayhelm.facts.metrics import Exporter, load_exporters
from testbed.live_metrics.catalog.__main__ import FOLDER
from testbed.live_metrics.catalog.compare import PREFIXES, Change, compare_exporters, file_of
from testbed.live_metrics.catalog.scrapes import Phases, parse_scrapes
from testbed.live_metrics.catalog.write import apply_changes

GAUGE = "# HELP ray_serve_queue Requests that wait\n# TYPE ray_serve_queue gauge\n"
COUNTER = "# HELP ray_serve_done_total Requests.\n# TYPE ray_serve_done_total counter\n"
HISTOGRAM = "# HELP ray_serve_time_ms Time.\n# TYPE ray_serve_time_ms histogram\n"
FILE = """\
# Metrics of a test.
about: a test
scraped: service
labels: [Component]
metrics:
  ray_serve_done_total:
    type: counter
    unit: requests
    availability: first
    source: serve.py
    # Why the meaning is short.
    meaning: Requests.
  ray_serve_queue:
    type: gauge
    unit: requests
    labels: [deployment]
    availability: always
    seen: false
    source: serve.py
    meaning: Requests that wait.

# Names that do not exist.
absent:
  ray_serve_queued:
    use: [ray_serve_queue]
    why: It has another name.
"""


def gauge(value: float = 1, labels: str = 'Component="core",deployment="a"') -> str:
    return f"{GAUGE}ray_serve_queue{{{labels}}} {value}\n"


def counter(value: float = 1, labels: str = 'Component="core"') -> str:
    return f"{COUNTER}ray_serve_done_total{{{labels}}} {value}\n"


def histogram(*bounds: str) -> str:
    buckets = (f'ray_serve_time_ms_bucket{{Component="core",le="{bound}"}} 1' for bound in (*bounds, "+Inf"))
    return HISTOGRAM + "\n".join([*buckets, 'ray_serve_time_ms_count{Component="core"} 1', ""])


def phases(start: str = "", load: str = "", idle: str = "") -> Phases:
    return Phases(parse_scrapes([start]), parse_scrapes([load]), parse_scrapes([idle]))


def changes(found: Phases, **metrics: dict[str, object]) -> list[Change]:
    """Compare with a catalog that has these metrics of Ray Serve alone."""
    basis = {"unit": "count", "source": "serve.py", "meaning": "A test."}
    entries = {name: {**basis, **fields} for name, fields in metrics.items()}
    about = {"about": "a test", "scraped": "service", "labels": ["Component"]}
    exporters = {file: Exporter.model_validate({**about, "metrics": {}}) for file in PREFIXES.values()}
    exporters["serve"] = Exporter.model_validate({**about, "metrics": entries})
    return compare_exporters(exporters, found)


def known_gauge(**fields: object) -> dict[str, object]:
    return {"type": "gauge", "labels": ["deployment"], "availability": "always", **fields}


def fields_of(found: list[Change]) -> list[tuple[str, object, object, bool]]:
    return [(change.field, change.old, change.new, change.is_written) for change in found]


def test_scrape_with_the_metrics_of_the_catalog_changes_nothing() -> None:
    assert changes(phases(gauge(), gauge(), gauge()), ray_serve_queue=known_gauge()) == []


def test_new_metric_has_type_labels_buckets_and_help() -> None:
    found = changes(phases(load=histogram("1", "2.5"), idle=histogram("1", "2.5")))
    assert [change.metric for change in found] == ["ray_serve_time_ms"]
    entry = found[0].entry
    assert entry
    assert (entry.type, entry.unit, entry.buckets) == ("histogram", "milliseconds", (1.0, 2.5))
    assert (entry.availability, entry.seen, entry.meaning) == ("first", True, "Time.")


def test_new_metric_of_unknown_type_is_reported_only() -> None:
    text = "# TYPE ray_serve_x summary\nray_serve_x_count 1\n"
    assert fields_of(changes(phases(text, text, text))) == [("type", "", "summary", False)]


def test_new_metric_of_haproxy_is_left_out() -> None:
    text = "# TYPE haproxy_process_uptime_seconds gauge\nhaproxy_process_uptime_seconds 1\n"
    assert changes(phases(text, text, text)) == []


@pytest.mark.parametrize(
    ("name", "file"),
    [("ray_vllm_x", "vllm"), ("ray_actors", "ray-core"), ("python_info", ""), ("ray_component_x", "ray-node")],
)
def test_metric_belongs_to_the_file_of_its_prefix(name: str, file: str) -> None:
    assert file_of(name) == file


def test_metric_that_must_be_there_and_is_not_is_written_as_not_seen() -> None:
    assert fields_of(changes(phases(), ray_serve_queue=known_gauge())) == [("seen", True, False, True)]


@pytest.mark.parametrize("fields", [{"availability": "first"}, {"availability": "event"}, {"needs": "a GPU"}])
def test_metric_that_a_run_can_lack_is_reported_only(fields: dict[str, object]) -> None:
    assert fields_of(changes(phases(), ray_serve_queue=known_gauge(**fields))) == [("seen", True, False, False)]


def test_metric_that_was_not_seen_becomes_seen() -> None:
    found = changes(phases(gauge(), gauge(), gauge()), ray_serve_queue=known_gauge(seen=False))
    assert fields_of(found) == [("seen", False, True, True)]


def test_type_that_differs_is_found() -> None:
    found = changes(phases(gauge(), gauge(), gauge()), ray_serve_queue=known_gauge(type="counter"))
    assert ("type", "counter", "gauge", True) in fields_of(found)


def test_buckets_that_differ_are_found() -> None:
    known = {"type": "histogram", "buckets": [1, 5], "availability": "first"}
    found = changes(phases(load=histogram("1", "2"), idle=histogram("1", "2")), ray_serve_time_ms=known)
    assert fields_of(found) == [("buckets", (1.0, 5.0), (1.0, 2.0), True)]


def test_labels_that_differ_are_found() -> None:
    text = gauge(labels='Component="core",model="a"')
    assert fields_of(changes(phases(text, text, text), ray_serve_queue=known_gauge())) == [
        ("labels", ("deployment",), ("model",), True)
    ]


def test_label_of_the_exporter_that_is_missing_is_found() -> None:
    text = gauge(labels='deployment="a"')
    found = changes(phases(text, text, text), ray_serve_queue=known_gauge())
    assert fields_of(found) == [("lacks", (), ("Component",), True)]


def test_label_without_value_is_neither_new_nor_removed() -> None:
    text = gauge(labels='Component="",deployment="",model=""')
    assert changes(phases(text, text, text), ray_serve_queue=known_gauge()) == []


def test_info_metric_keeps_the_labels_of_the_catalog() -> None:
    text = gauge(labels='Component="core",deployment="a",block_size="16"')
    assert changes(phases(text, text, text), ray_serve_queue=known_gauge(unit="info")) == []


@pytest.mark.parametrize(
    ("was", "there", "expected"),
    [
        ("always", "load", "idle"),
        ("always", "start load", "idle"),
        ("always", "load idle", "first"),
        ("idle", "start load idle", "always"),
        ("idle", "load idle", "first"),
        ("idle", "load", "idle"),
        ("first", "start load idle", "always"),
        ("first", "load idle", "first"),
        ("once", "start load idle", "always"),
        ("once", "start", "once"),
        ("event", "load", "event"),
        ("device", "load", "device"),
    ],
)
def test_availability_of_a_gauge_agrees_with_the_phases(was: str, there: str, expected: str) -> None:
    found = changes(phases(**dict.fromkeys(there.split(), gauge())), ray_serve_queue=known_gauge(availability=was))
    assert [change.new for change in found] == ([] if was == expected else [expected])


@pytest.mark.parametrize(("at_start", "expected"), [(0, ["always"]), (3, [])])
def test_counter_is_always_there_when_it_starts_at_zero(at_start: int, expected: list[str]) -> None:
    """One above zero can have had its first increment during the start."""
    known: dict[str, object] = {"type": "counter", "availability": "first"}
    found = changes(phases(counter(at_start), counter(4), counter(4)), ray_serve_done_total=known)
    assert [change.new for change in found] == expected


def test_creation_times_and_names_of_meters_are_left_out() -> None:
    text = counter(labels='Component="core",otel_scope_name="meter"') + (
        "# TYPE ray_serve_done_created gauge\nray_serve_done_created 1\n"
    )
    scraped = parse_scrapes([text])
    assert set(scraped) == {"ray_serve_done_total"}
    assert scraped["ray_serve_done_total"].labels == {"Component"}


def test_metric_of_two_targets_has_the_labels_of_both() -> None:
    scraped = parse_scrapes([counter(0, 'Component="a"'), counter(1, 'method="GET"')])["ray_serve_done_total"]
    assert scraped.labels == {"Component", "method"}
    assert not scraped.is_zero


def test_example_has_one_series_without_addresses_of_the_computer() -> None:
    text = gauge(labels='NodeAddress="192.0.2.7",d="a"') + 'ray_serve_queue{NodeAddress="192.0.2.7",d="b"} 2\n'
    example = parse_scrapes([text])["ray_serve_queue"].example
    assert example == '# TYPE ray_serve_queue gauge\nray_serve_queue{NodeAddress="10.0.0.1",d="a"} 1\n'


def test_writer_keeps_comments_order_and_other_fields() -> None:
    seen = Change("serve", "ray_serve_queue", "seen", False, True)
    labels = Change("serve", "ray_serve_queue", "labels", ("deployment",), ("deployment", "model"))
    availability = Change("serve", "ray_serve_done_total", "availability", "first", "always")
    expected = (
        FILE.replace("    seen: false\n", "")
        .replace("[deployment]", "[deployment, model]")
        .replace("availability: first", "availability: always")
    )
    assert apply_changes(FILE, [seen, labels, availability]) == expected


def test_writer_adds_a_new_metric_in_the_order_of_names() -> None:
    found = changes(phases(load=histogram("1", "2.5"), idle=histogram("1", "2.5")))
    text = apply_changes(FILE.replace("ray_serve_queue:", "ray_serve_wait:"), found)
    assert text.index("ray_serve_done_total:") < text.index("ray_serve_time_ms:") < text.index("ray_serve_wait:")
    assert "    buckets: [1, 2.5]\n    availability: first\n    source: live scrape\n    meaning: Time.\n" in text


def test_writer_leaves_out_what_is_reported_only() -> None:
    assert apply_changes(FILE, [Change("serve", "ray_serve_queue", "seen", True, False, is_written=False)]) == FILE


def test_catalog_agrees_with_the_scrape_after_its_changes_are_written() -> None:
    text = gauge(labels='Component="core",model="a"') + histogram("1", "2")
    found = phases(text, text, text)
    exporters = {file: Exporter.model_validate({**safe_load(FILE), "metrics": {}}) for file in PREFIXES.values()}
    exporters["serve"] = Exporter.model_validate(safe_load(FILE))
    first = [change for change in compare_exporters(exporters, found) if change.is_written]
    assert first
    exporters["serve"] = Exporter.model_validate(safe_load(apply_changes(FILE, first)))
    assert not [change for change in compare_exporters(exporters, found) if change.is_written]


@pytest.mark.parametrize("file", sorted(set(PREFIXES.values())))
def test_writer_reproduces_each_file_of_the_catalog(file: str) -> None:
    text = (FOLDER / f"{file}.yaml").read_text()
    assert file in load_exporters()
    assert apply_changes(text, []) == text
