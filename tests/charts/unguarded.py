"""A chart without its validation: renders values that the chart refuses, to test what they would become."""

import shutil
from pathlib import Path

from rayhelm.deploy.charts.helm import charts_dir

__all__ = ["unguarded_chart"]

REFUSES = r'{{- fail (join "\n" .) }}'


def unguarded_chart(folder: Path) -> str:
    """A copy of the chart in `folder`, as a path that `rayhelm.deploy.charts.helm.render` takes."""
    copy = folder / "ray-service"
    shutil.copytree(charts_dir() / "ray-service", copy)
    (copy / "values.schema.json").unlink()
    validate = copy / "templates/lib/_refuse.tpl"
    text = validate.read_text()
    assert text.count(REFUSES) == 1, "rules are refused in another way: fix this copy"
    validate.write_text(text.replace(REFUSES, ""))
    return str(copy)
