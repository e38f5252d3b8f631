"""`rayhelm schema` and `rayhelm explain`: the keys that files may have, read from the types."""

import json
import textwrap
from dataclasses import asdict
from typing import Annotated

import typer
from pydantic import BaseModel

from rayhelm.cli.output import NARROW, Format, FormatOption, console
from rayhelm.deploy.charts.models import CHARTS
from rayhelm.errors import UsageError
from rayhelm.fleet.explain import explain
from rayhelm.fleet.fleet import Fleet
from rayhelm.fleet.nearest import did_you_mean
from rayhelm.fleet.walk import fields

__all__ = ["explain_command", "schema_command"]


def schema_command(
    what: Annotated[
        str, typer.Argument(help="`fleet`, or a chart: `ray-service`, `gateway`, `tenant`, `platform`.")
    ] = "fleet",
    format: FormatOption = Format.text,
) -> None:
    """Print the JSON Schema of a fleet file or of a chart's values, for editors. It is JSON in every format.

    Unlike `values.schema.json` in a chart, it requires no keys that have a default.
    """
    models: dict[str, type[BaseModel]] = {"fleet": Fleet}
    if what not in models:
        models |= CHARTS
    if what not in models:
        raise UsageError(f"there is no schema `{what}`; {did_you_mean(what, models)}")
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **models[what].model_json_schema()}
    print(json.dumps(schema, indent=2))


def explain_command(
    field: Annotated[
        str,
        typer.Argument(
            help="Dotted path: `models.slo.ttft`; it may contain a name of your fleet: `models.chat.slo`. Values of a"
            " chart begin with its name: `gateway.limits`."
        ),
    ] = "",
    format: FormatOption = Format.text,
) -> None:
    """Explain a field of the fleet file or a value of a chart: type, default, bounds and meaning.

    Ends with 2 if there is no such field.
    """
    is_of_chart = field and field.partition(".")[0] not in fields(Fleet)
    explanation = explain(field, CHARTS if is_of_chart else None)
    if format is Format.json:
        print(json.dumps(asdict(explanation), indent=2))
        return
    print(f"{explanation.path or 'fleet file'}: {explanation.type}")
    for line in _wrap(explanation.description, "  "):
        print(line)
    print(f"  default: {explanation.default}")
    for name, bound in explanation.bounds.items():
        print(f"  {name}: {bound}")
    width = max(map(len, explanation.fields), default=0)
    for key, meaning in explanation.fields.items():
        first, *rest = _wrap(meaning, " " * (width + 6))
        print(f"    {key:<{width}}  {first.lstrip()}", *rest, sep="\n")
    if explanation.fields:
        print(f"  one key: rayhelm explain {'.'.join(filter(None, (explanation.path, 'KEY')))}")


def _wrap(text: str, indent: str) -> list[str]:
    """Lines of the text, as wide as the terminal; 80 columns without one."""
    width = max(console(NARROW).width, len(indent) + 40)
    return textwrap.wrap(
        " ".join(text.split()), width, initial_indent=indent, subsequent_indent=indent, break_long_words=False
    )
