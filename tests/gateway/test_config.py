"""HAProxy accepts the rendered configuration."""

import pytest
import yaml

from charts.kit import VALUES, over
from gateway.kit import minimal_values, start_gateway, start_upstreams, tenant
from gateway.kit.certificates import mount_certificates
from gateway.kit.process import check_config, render_files

EXAMPLES = sorted(path.stem for path in (VALUES / "gateway").glob("*.yaml"))


def find_warnings(folder, values):
    """Return the exit code and the warnings of `haproxy -c`."""
    for name, text in render_files(values).items():
        (folder / name).write_text(text)
    mount_certificates(folder, values)
    done = check_config(folder)
    lines = [line for line in done.stderr.splitlines() if "[WARNING]" in line or "[ALERT]" in line]
    return done.returncode, lines


@pytest.mark.parametrize("name", EXAMPLES)
def test_haproxy_accepts_each_example_without_warnings(name, tmp_path):
    assert find_warnings(tmp_path, yaml.safe_load((VALUES / f"gateway/{name}.yaml").read_text())) == (0, [])


def test_gateway_works_with_100_tenants_and_models():
    with start_upstreams("one") as (one,):
        values = minimal_values(one)
        llama = values["models"]["llama"]
        names = [f"model-{number}" for number in range(100)]
        more = {
            "tenants": {f"team-{number}": tenant(f"team-{number}", names) for number in range(100)},
            "models": dict.fromkeys(names, llama),
            "resources": {"limits": {"memory": "16Gi"}},
        }
        with start_gateway(over(values, more)) as gateway:
            for number in (0, 57, 99):
                assert gateway.chat(f"model-{number}", key=f"team-{number}-key").endpoint == "one"
            assert gateway.chat("model-3").error["code"] == "model_not_found"
            assert len(gateway.request("/v1/models", key="team-99-key").json()["data"]) == 100


def test_model_list_is_complete_when_it_exceeds_16_kib():
    """HAProxy cuts lines of its maps at 16 KiB."""
    names = [
        f"an-organization/a-model-with-a-name-as-long-as-any-may-be-of-some-family-of-language-models-{n:04}"
        for n in range(205)
    ]
    with start_upstreams("one") as (one,):
        values = minimal_values(one)
        llama = values["models"]["llama"]
        more = {"tenants": {"many": tenant("many", names)}, "models": dict.fromkeys(names, llama)}
        with start_gateway(over(values, more)) as gateway:
            for key, models in (("many-key", names), ("acme-key", ["llama"])):
                assert [model["id"] for model in gateway.request("/v1/models", key=key).json()["data"]] == models


def test_config_has_no_stats_socket_and_no_admin_page():
    text = render_files(yaml.safe_load((VALUES / "gateway/everything.yaml").read_text()))["haproxy.cfg"]
    assert "stats socket" not in text
    assert "stats enable" not in text
    assert "stats uri" not in text
