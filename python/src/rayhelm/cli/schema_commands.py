"""`rayhelm schema` and `rayhelm explain`: what may be written, out of the types."""

from typing import Annotated

import typer

from rayhelm.cli.output import Format, FormatOption

__all__ = ["explain_command", "schema_command"]


def schema_command(
    what: Annotated[str, typer.Argument(help="`fleet`, or the name of a chart (`ray-service`).")] = "fleet",
    format: FormatOption = Format.text,
) -> None:
    """Print the JSON Schema of a fleet file or of a chart's values, for editors: JSON in every format."""
    import json

    from pydantic import BaseModel

    from rayhelm.errors import UsageError
    from rayhelm.spec.fleet import Fleet
    from rayhelm.spec.nearest import did_you_mean
    from rayhelm.values.ray_service import RayServiceValues

    models: dict[str, type[BaseModel]] = {"fleet": Fleet, "ray-service": RayServiceValues}
    if what not in models:
        raise UsageError(f"there is no schema `{what}`; {did_you_mean(what, models)}")
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **models[what].model_json_schema()}
    print(json.dumps(schema, indent=2))


def explain_command(
    field: Annotated[str, typer.Argument(help="Dotted path: `models.slo.ttft`.")] = "",
    format: FormatOption = Format.text,
) -> None:
    """Explain a field of the fleet file: type, default, bounds, meaning."""
    import json
    from dataclasses import asdict

    from rayhelm.spec.explain import explain

    told = explain(field)
    if format is Format.json:
        print(json.dumps(asdict(told), indent=2))
        return
    print(f"{told.path or 'fleet file'}: {told.type}")
    print(f"  {told.description}")
    print(f"  default: {told.default}")
    for name, bound in told.bounds.items():
        print(f"  {name}: {bound}")
    width = max(map(len, told.fields), default=0)
    for key, meaning in told.fields.items():
        print(f"    {key:<{width}}  {meaning}")
