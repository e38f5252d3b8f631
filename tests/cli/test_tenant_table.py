"""The table of tenants in `rayhelm plan`."""

from io import StringIO

from rich.console import Console

from rayhelm.cli.tenant_table import build_tenant_table
from shared.fleets import plan

FLEET = """
fleet: one
pools: {gpu: {gpu: L4-24GB, nodes: 8}}
models: {chat: {source: Qwen/Qwen3-0.6B, context: 4096, replicas: 2}}
services: {chat: {tenant: team}}
tenants: {team: {models: [chat]%s}}
"""


def show(limit: str) -> str:
    out = StringIO()
    Console(width=120, file=out).print(build_tenant_table(plan(FLEET % limit)))
    return out.getvalue()


def test_table_has_the_limit_of_the_quota_beside_the_planned_gpus() -> None:
    assert "2 of 5 + 2" in show(", gpus: 5")
    assert "2 + 2" in show("")
