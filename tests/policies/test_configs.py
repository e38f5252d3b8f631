"""Policies read serveConfigV2 as a text, and say what a parser would say: random configs, asked both ways."""

import json
import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from policies.kit.cases import case, namespace, policies
from rayhelm.check.admission.evaluate import evaluate_policies
from rayhelm.check.admission.policy import AdmissionPolicy

Object = dict[str, Any]

COMMIT = "0e9e39f249a16976918f6564b8830bc894c89659"
READ = "acme/read-by-us"
"""The model whose code may run."""
FLOATS = "acme/of-our-own-bucket"
"""The model that may float."""
HUB = (READ, FLOATS, "acme/read-by-us-too", "other/model", "model")
SOURCES = (*HUB, *(f"/models/{name}/{at}" for name in HUB for at in (COMMIT, "main")), "s3://bucket/model", None)
TOKENIZERS = (READ, "other/tokenizer", f"/models/{READ}/{COMMIT}")


def test_policies_read_random_configs_as_a_parser_does() -> None:
    chance, asked = random.Random(11), tuple(_with_lists())
    item = case("serve-config-form", "json", good=True)
    seen: set[str] = set()
    for _ in range(300):
        config = _config(chance)
        item["spec"]["serveConfigV2"] = json.dumps(config, indent=2, sort_keys=chance.random() < 0.7)
        found = {violation.rule for violation in evaluate_policies(asked, item, namespace())}
        assert found == set(_broken(config)), json.dumps(config, indent=2)
        seen |= found
    assert seen == {"model-revision", "trust-reason", "request-timeout"}


def _with_lists() -> Iterator[AdmissionPolicy]:
    lists = {"trusted": {READ: "read by us"}, "unpinned": {FLOATS: "of our own bucket"}}
    for policy in policies():
        yield replace(
            policy,
            variables=tuple((name, json.dumps(lists[name]) if name in lists else it) for name, it in policy.variables),
        )


# -- by a parser -----------------------------------------------------------------------------------------------------


def _broken(config: Object) -> Iterator[str]:
    timeout = config.get("http_options", {}).get("request_timeout_s")
    if not isinstance(timeout, int) or timeout < 1:
        yield "request-timeout"
    for app in config["applications"]:
        args = app["args"]
        models = [
            *args.get("llm_configs", []),
            *(args[key] for key in ("prefill_config", "decode_config") if key in args),
        ]
        if any(map(_floats, models)):
            yield "model-revision"
        if any(map(_runs_code, models)) or args.get("trust_remote_code"):
            yield "trust-reason"


def _floats(model: Object) -> bool:
    source = _source(model)
    if model["engine_kwargs"].get("revision") == COMMIT or _is(source, FLOATS):
        return False
    return not (isinstance(source, dict) or source.startswith(("/", "s3:"))) or str(source).endswith("/main")


def _runs_code(model: Object) -> bool:
    if model["engine_kwargs"].get("trust_remote_code", False) is False:
        return False
    tokenizer = model["model_loading_config"].get("tokenizer_source", READ)
    return not (_is(_source(model), READ) and _is(tokenizer, READ))


def _source(model: Object) -> Any:
    loading = model["model_loading_config"]
    return loading.get("model_source", loading["model_id"])


def _is(source: Any, name: str) -> bool:
    """The model itself, or where the chart's download puts it."""
    return isinstance(source, str) and (
        source == name or (source.startswith("/") and source.split("/")[-3:-1] == name.split("/"))
    )


# -- at random -------------------------------------------------------------------------------------------------------


def _config(chance: random.Random) -> Object:
    timeouts = (
        {"request_timeout_s": 600},
        {"request_timeout_s": 0},
        {"port": 8000},
        {"a": {"b": 1}, "request_timeout_s": 5},
    )
    config: Object = {"applications": [_application(chance) for _ in range(chance.randint(1, 3))]}
    if chance.random() < 0.9:
        config["http_options"] = chance.choice(timeouts) if chance.random() < 0.3 else timeouts[0]
    if chance.random() < 0.3:
        config["logging_config"] = {"encoding": "JSON", "note": '"trust_remote_code": true, "model_id": "x"'}
    return config


def _application(chance: random.Random) -> Object:
    kind = chance.choice(("llm", "llm", "split", "own"))
    if kind == "llm":
        args: Object = {"llm_configs": [_model(chance) for _ in range(chance.randint(1, 3))]}
    elif kind == "split":
        args = {"prefill_config": _model(chance), "decode_config": _model(chance)}
    else:
        args = {"model": "speech", "depth": {"of": [{"an": ["object"]}]}}
        args |= {"trust_remote_code": True} if chance.random() < 0.1 else {}
    if chance.random() < 0.4:
        args["ingress_deployment_config"] = {"autoscaling_config": {"min_replicas": 1}}
    return {"args": args, "import_path": f"{kind}:app", "name": kind, "route_prefix": f"/{kind}"}


def _model(chance: random.Random) -> Object:
    source = chance.choice(SOURCES) if chance.random() < 0.5 else f"/models/{READ}/{COMMIT}"
    loading: Object = {"model_id": chance.choice(HUB), **({"model_source": source} if source else {})}
    if chance.random() < 0.2:
        loading["tokenizer_source"] = chance.choice(TOKENIZERS)
    engine: Object = {"max_model_len": 8192}
    if chance.random() < 0.3:
        engine["trust_remote_code"] = chance.choice((True, False, 1, "yes", False, False))
    if chance.random() < 0.5:
        engine["revision"] = chance.choice((COMMIT, COMMIT, COMMIT, "main", COMMIT[:12]))
    model = {
        "engine_kwargs": engine,
        "model_loading_config": loading,
        "placement_group_config": {"bundles": [{"GPU": 1}]},
    }
    return dict(chance.sample(list(model.items()), len(model)))
