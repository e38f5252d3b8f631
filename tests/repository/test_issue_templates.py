"""GitHub shows no issue form whose YAML it does not accept, and says so only on its page."""

from pathlib import Path
from typing import Any

import pytest
import yaml

FOLDER = Path(__file__).parents[2] / ".github/ISSUE_TEMPLATE"
FORMS = sorted(FOLDER.glob("*.yaml"))
ATTRIBUTES = {"input": {"label", "description"}, "textarea": {"label", "description", "render"}, "markdown": {"value"}}


def test_issue_forms_are_the_four_that_pages_name() -> None:
    assert [form.stem for form in FORMS] == ["bug", "correction", "feature", "measurement"]


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.stem)
def test_issue_form_has_only_keys_that_github_reads(form: Path) -> None:
    content: dict[str, Any] = yaml.safe_load(form.read_text())
    assert content.keys() == {"name", "description", "labels", "body"}
    fields = [item for item in content["body"] if item["type"] != "markdown"]
    assert len({field["id"] for field in fields}) == len(fields)
    assert any(field.get("validations", {}).get("required") for field in fields)
    for item in content["body"]:
        assert item.keys() <= {"type", "id", "attributes", "validations"}
        assert item["attributes"].keys() <= ATTRIBUTES[item["type"]]
        assert "label" in item["attributes"] or item["type"] == "markdown"
