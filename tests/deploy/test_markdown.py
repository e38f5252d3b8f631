"""Texts of users in Markdown pages."""

import json

import pytest

from rayhelm.deploy.markdown import escape_markdown
from rayhelm.deploy.render.files import build_files, render_plan
from rayhelm.planner.planner import plan_fleet
from shared.fleets import load

HOSTILE = "fine: <img src=x> | [click](https://evil.example) \x1b[2J\u202e\n\n# Approved\n<!-- "
REASON = json.dumps(HOSTILE)


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("a\n\n# b", "a  # b"),
        ("a | b", "a \\| b"),
        ("<!-- a -->", "&lt;!-- a -->"),
        ("![a](b)", "![a]\\(b)"),
        ("\x1b[2J", "\\x1b[2J"),
        ("\u202eb", "\\u202eb"),
        ("`code`, 3 x 4", "`code`, 3 x 4"),
    ],
)
def test_text_is_one_line_without_markup(text: str, escaped: str) -> None:
    assert escape_markdown(text) == escaped


@pytest.mark.parametrize("page", ["plan.md", "network.md"])
def test_reasons_of_a_fleet_file_are_escaped_in_pages(page: str) -> None:
    fleet = load(f"""
        fleet: one
        clusters: {{main: {{apiServer: {{cidrs: [10.0.0.1/32]}}}}}}
        pools: {{gpu: {{gpu: H100-SXM-80GB, nodes: 2, gpusPerNode: 1}}}}
        models:
          chat: {{source: Qwen/Qwen3-8B, context: 8192, unpinnedReason: {REASON}, sharedPrefixCacheReason: {REASON}}}
        services: {{chat: {{values: {{networkPolicy: {{enabled: false, reason: {REASON}}}}}}}}}
        tenants: {{a: {{models: [chat]}}, b: {{models: [chat]}}}}
    """)
    text = build_files(render_plan(plan_fleet(fleet)))[page]
    assert "# Approved" in text
    assert "\n# Approved" not in text
    assert not {"\x1b", "\u202e"} & set(text)
    assert "<img" not in text
    assert "](https://evil" not in text
