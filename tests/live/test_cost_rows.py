"""Rows of `rayhelm cost` from usage that a test writes down."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from rayhelm.live.cost.build import build_period
from rayhelm.live.cost.csv_file import COLUMNS, write_csv
from rayhelm.live.cost.figures import complete
from rayhelm.live.cost.periods import Period
from rayhelm.live.cost.planned import plan_costs
from rayhelm.live.cost.report import CostPeriod, CostReport, CostRow, Figures, TenantShare
from rayhelm.live.cost.usage import GroupUsage, Key, Usage

ROOT = Path(__file__).parents[2]
CHAT: Key = ("", "models", "chat")
DAY = Period(datetime(2025, 10, 1, tzinfo=UTC), datetime(2025, 10, 2, tzinfo=UTC))


def usage(**parts: dict[Key, float]) -> Usage:
    found = Usage(DAY, hours_with_data=24, data_from=DAY.start)
    for name, values in parts.items():
        getattr(found, name).update(values)
    return found


def test_model_without_a_price_keeps_its_row_with_file_and_fix() -> None:
    services = plan_costs(ROOT / "values/homelab/fleet.yaml")
    llm: Key = ("", "models", "ai-inference", "llm", "LLMServer:llm")
    row = {row.model: row for row in build_period(usage(replica_hours={llm: 24.0}), services).rows}["llm"]
    assert (row.actual.cost, row.idle_cost) == (None, None)
    assert row.actual.gpu_hours == pytest.approx(24 * 0.95)
    assert "values/homelab/fleet.yaml:15: pools.halo: the price of Strix-Halo-128GB is unknown" in row.reasons[0]
    assert "price: 2.10 USD/h" in row.reasons[0]


def test_application_of_the_user_is_a_model_too() -> None:
    services = plan_costs(ROOT / "values/homelab/fleet.yaml")
    speech: Key = ("", "models", "ai-inference", "tts", "Speech")
    rows = build_period(usage(replica_hours={speech: 10.0}), services).rows
    assert {row.model: row.actual.gpu_hours for row in rows}["tts"] == pytest.approx(10 * 0.4)


def test_service_without_series_is_a_row_with_the_reason() -> None:
    services = plan_costs(ROOT / "values/three-tiers/fleet.yaml")
    key: Key = ("", "research", "qwen3-32b", "qwen3-32b", "LLMServer:qwen3-32b")
    period = build_period(usage(replica_hours={key: 24.0}), services)
    report = CostReport(prometheus="http://p.test", fleet="fleet.yaml", periods=(period,))
    (absent,) = (row for row in period.rows if row.service == "qwen3-8b")
    assert absent.actual == Figures()
    assert "no series of service `qwen3-8b` in namespace `assistants`; did you mean `qwen3-32b`?" in absent.reasons[0]
    assert len(report.missing_series) == 3
    assert report.missing_prices == ()


def test_gpus_of_several_models_are_shared_without_a_fleet() -> None:
    found = usage(requests={(*CHAT, "a"): 5.0, (*CHAT, "b"): 7.0})
    found.groups[(*CHAT, "gpu")] = GroupUsage(48.0, 24.0, 48.0, 96.0, 48.0)
    rows = build_period(found, None).rows
    assert [(row.kind, row.model, row.actual.gpu_hours, row.actual.cost) for row in rows] == [
        ("model", "a", None, None),
        ("model", "b", None, None),
        ("shared", "", 24.0, 48.0),
        ("free", "", 24.0, 48.0),
    ]
    assert "give the fleet file to divide them" in rows[0].reasons[0]


def test_models_with_the_same_served_name_have_no_tokens_of_their_own(tmp_path: Path) -> None:
    services = plan_costs(ROOT / "values/homelab/fleet.yaml")
    service = services["ai-inference"]
    twins = tuple(service.models[0].__class__(**{**vars(service.models[0]), "name": name}) for name in ("v1", "v2"))
    doubled = service.__class__(**{**vars(service), "models": twins})
    key: Key = ("", "models", "ai-inference")
    found = usage(requests={(*key, "llm"): 5.0}, replica_hours={(*key, "v1", "LLMServer:llm"): 1.0})
    row = build_period(found, {"ai-inference": doubled}).rows[0]
    assert row.actual.requests is None
    assert any("v1 and v2 have the same served model name" in reason for reason in row.reasons)


def test_csv_cell_with_a_formula_is_text() -> None:
    found = usage(requests={("", "models", "=1+1", "@a"): 5.0})
    report = CostReport(prometheus="http://p.test", fleet=None, periods=(build_period(found, None),))
    assert ",'=1+1,'@a,model," in write_csv(report)


def test_figures_of_no_requests_have_no_price() -> None:
    figures = complete(24.0, 48.0, 0.0, 0.0, 0.0)
    assert (figures.cost, figures.cost_per_request, figures.cost_per_million_output_tokens) == (48.0, None, None)


def test_page_documents_every_field_and_column() -> None:
    page = (ROOT / "docs/tasks/what-a-token-costs.md").read_text()
    fields = [name for kind in (CostReport, CostPeriod, CostRow, Figures, TenantShare) for name in kind.model_fields]
    assert [name for name in fields if name not in page] == []
    assert ", ".join(COLUMNS) in " ".join(page.split())


def tenant_row(**tenants: tuple[float, float]) -> CostRow:
    """The row of a model with 400 prompt and 100 generated tokens, which cost 2 USD, and tokens of tenants."""
    model = (*CHAT, "a")
    found = usage(input_tokens={model: 400.0}, output_tokens={model: 100.0}, requests={model: 1.0})
    for tenant, (read, made) in tenants.items():
        found.tenant_input_tokens[(*model, tenant)] = read
        found.tenant_output_tokens[(*model, tenant)] = made
    found.groups[(*CHAT, "gpu")] = GroupUsage(1.0, 0.0, 1.0, 2.0, 0.0)
    (row,) = build_period(found, None).rows
    return row


def test_tokens_that_no_tenant_has_are_a_row_of_their_own() -> None:
    row = tenant_row(acme=(200.0, 50.0))
    assert [(part.tenant, part.share, part.cost) for part in row.tenants] == [
        ("(not counted)", 0.5, 1.0),
        ("acme", 0.5, 1.0),
    ]
    assert (row.tenants[0].input_tokens, row.tenants[0].output_tokens) == (200.0, 50.0)


def test_difference_below_one_percent_belongs_to_the_tenants() -> None:
    row = tenant_row(acme=(199.0, 49.75), search=(199.0, 49.75))
    assert [(part.tenant, part.cost) for part in row.tenants] == [("acme", 1.0), ("search", 1.0)]


def test_tenants_that_counted_more_than_the_engines_share_the_whole_cost() -> None:
    row = tenant_row(acme=(404.0, 101.0), search=(0.0, 0.0))
    assert [(part.tenant, part.share) for part in row.tenants] == [("acme", 1.0)]


def test_model_without_tokens_of_tenants_is_reported() -> None:
    model = (*CHAT, "a")
    counted = build_period(usage(input_tokens={model: 4.0}, requests={model: 1.0}), None)
    report = CostReport(prometheus="http://p.test", fleet=None, periods=(counted,))
    assert report.uncounted_models == ("chat/a",)


def test_model_without_tokens_is_not_reported_as_uncounted() -> None:
    idle = build_period(usage(replica_hours={(*CHAT, "a", "LLMServer:a"): 1.0}), None)
    assert CostReport(prometheus="http://p.test", fleet=None, periods=(idle,)).uncounted_models == ()
