"""Descriptions of fields: read from docstrings, when they are needed."""

from pydantic import Field

from rayhelm.facts.closed import Closed, ClosedCamel, fields_of


class Wheel(ClosedCamel):
    """A part."""

    outer_diameter: int = 1
    """Millimeters."""
    plain: int = 1
    named: int = Field(default=1, description="By hand.")
    """Not this."""


class FrontWheel(Wheel):
    """A part of a part."""

    brake: Wheel = Wheel()
    """What stops
    it."""


def test_fields_of_reads_docstrings_of_the_class_and_of_its_bases() -> None:
    found = {name: info.description for name, info in fields_of(FrontWheel).items()}
    assert found == {"outer_diameter": "Millimeters.", "plain": None, "named": "By hand.", "brake": "What stops\nit."}


def test_json_schema_has_the_descriptions_by_alias() -> None:
    schema = FrontWheel.model_json_schema(by_alias=True)
    assert schema["properties"]["outerDiameter"]["description"] == "Millimeters."
    assert schema["properties"]["brake"]["description"] == "What stops\nit."
    assert "description" not in schema["properties"]["plain"]


def test_fields_of_a_class_without_docstrings_have_no_description() -> None:
    class Empty(Closed):
        bare: int = 1

    assert fields_of(Empty)["bare"].description is None
