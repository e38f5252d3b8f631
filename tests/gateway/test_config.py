"""HAProxy takes the configuration of every example, whatever its size, and says nothing against it."""

import subprocess

import pytest
import yaml

from charts.kit import VALUES, over
from gateway.kit import gateway, haproxy, sites, smallest, tenant
from gateway.kit.door import files

EXAMPLES = sorted(path.stem for path in (VALUES / "gateway").glob("*.yaml"))


def complaints(folder, values):
    """What `haproxy -c` says, but for names that resolve later."""
    for name, text in files(values).items():
        (folder / name).write_text(text)
    done = subprocess.run([haproxy(), "-C", folder, "-c", "-f", "haproxy.cfg"], capture_output=True, text=True)
    lines = [line for line in done.stderr.splitlines() if "[WARNING]" in line or "[ALERT]" in line]
    return done.returncode, lines


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_is_valid_and_warns_of_nothing(name, tmp_path):
    assert complaints(tmp_path, yaml.safe_load((VALUES / f"gateway/{name}.yaml").read_text())) == (0, [])


def test_a_hundred_tenants_and_models_are_valid_and_work():
    with sites("one") as (one,):
        values = smallest(one)
        llama = values["models"]["llama"]
        names = [f"model-{number}" for number in range(100)]
        more = {
            "tenants": {f"team-{number}": tenant(f"team-{number}", names) for number in range(100)},
            "models": dict.fromkeys(names, llama),
            "resources": {"memory": "16Gi"},
        }
        with gateway(over(values, more)) as door:
            for number in (0, 57, 99):
                assert door.chat(f"model-{number}", key=f"team-{number}-key").site == "one"
            assert door.chat("model-3").error["code"] == "model_not_allowed"
            assert len(door.ask("/v1/models", key="team-99-key").json()["data"]) == 100


def test_a_list_of_models_is_whole_however_long_it_is():
    """HAProxy cuts lines of its maps at 16 KiB."""
    names = [
        f"an-organisation/a-model-with-a-name-as-long-as-any-may-be-of-some-family-of-language-models-{n:04}"
        for n in range(205)
    ]
    with sites("one") as (one,):
        values = smallest(one)
        llama = values["models"]["llama"]
        more = {"tenants": {"many": tenant("many", names)}, "models": dict.fromkeys(names, llama)}
        with gateway(over(values, more)) as door:
            for key, models in (("many-key", names), ("acme-key", ["llama"])):
                assert [model["id"] for model in door.ask("/v1/models", key=key).json()["data"]] == models


def test_nothing_in_it_can_be_changed_from_outside():
    """There is no stats socket and no admin page."""
    text = files(yaml.safe_load((VALUES / "gateway/everything.yaml").read_text()))["haproxy.cfg"]
    assert "stats socket" not in text
    assert "stats enable" not in text
    assert "stats uri" not in text
