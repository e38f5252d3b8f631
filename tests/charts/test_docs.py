"""The chart's README says the defaults that are in force."""

import re

import yaml

from rayhelm.deploy.charts.helm import charts_dir

ROW = re.compile(r"^\| `([\w.]+)` \| (?:\\\||[^|])* \| `?((?:\\\||[^|])*?)`? \|", re.MULTILINE)


def test_each_default_in_the_table_is_the_one_of_values_yaml():
    chart = charts_dir() / "ray-service"
    values = yaml.safe_load((chart / "values.yaml").read_text())
    table = dict(ROW.findall((chart / "README.md").read_text()))
    documented = {path: yaml.safe_load(default) for path, default in table.items() if default}
    assert len(documented) > 60
    for path, default in documented.items():
        here = values
        for key in path.split("."):
            here = here[key]
        assert here == default, path
