"""The rendered serveConfigV2."""

import json

import pytest

from charts.kit import chat, llm_config, over, ray_service, serve_config


def model(**values):
    return {"serve": {"applications": {"chat": {"models": {"llama-8b": values}}}}}


def placement(overlay=None, **options):
    return llm_config(overlay, **options)["placement_group_config"]


def test_serve_config_is_indented_json():
    text = ray_service()["spec"]["serveConfigV2"]
    assert json.loads(text)
    assert len(text.splitlines()) > 50


def test_requests_have_a_timeout():
    assert serve_config()["http_options"]["request_timeout_s"] == 1200


def test_model_is_served_by_its_key_from_its_revision_path():
    assert llm_config()["model_loading_config"] == {
        "model_id": "llama-8b",
        "model_source": "/models/meta-llama/Llama-3.1-8B-Instruct/0e9e39f249a16976918f6564b8830bc894c89659",
    }


def test_path_source_is_used_unchanged():
    loading = llm_config(base="stand-in")["model_loading_config"]
    assert loading["model_source"] == "/stand-ins/llama"


def test_online_servers_pass_the_revision_to_the_engine():
    overlay = {"weights": {"enabled": False, "offline": False, "onlineReason": "a test"}}
    config = llm_config(overlay)
    assert config["model_loading_config"]["model_source"] == "meta-llama/Llama-3.1-8B-Instruct"
    assert config["engine_kwargs"]["revision"] == "0e9e39f249a16976918f6564b8830bc894c89659"
    assert config["engine_kwargs"]["tokenizer_revision"] == config["engine_kwargs"]["revision"]


def test_tokenizer_of_another_repository_has_its_own_revision():
    overlay = over(
        {"weights": {"enabled": False, "offline": False, "onlineReason": "a test"}},
        model(tokenizer="Qwen/Qwen3-8B", tokenizerRevision="1" * 40),
    )
    config = llm_config(overlay)
    assert config["model_loading_config"]["tokenizer_source"] == "Qwen/Qwen3-8B"
    assert config["engine_kwargs"]["tokenizer_revision"] == "1" * 40
    assert config["engine_kwargs"]["revision"] == "0e9e39f249a16976918f6564b8830bc894c89659"


def test_autoscaling_renders_the_target():
    scaling = llm_config()["deployment_config"]["autoscaling_config"]
    assert (scaling["min_replicas"], scaling["max_replicas"], scaling["target_ongoing_requests"]) == (1, 2, 64)
    ingress = serve_config()["applications"][0]["args"]["ingress_deployment_config"]["autoscaling_config"]
    assert ingress["target_ongoing_requests"] == 200


def test_ingress_stops_after_its_slowest_model():
    ingress = serve_config(base="tp8-pp4-rdma")["applications"][0]["args"]["ingress_deployment_config"]
    assert ingress["graceful_shutdown_timeout_s"] == 300


@pytest.mark.parametrize(("stated", "rendered"), [(None, 96), (200, 200)])
def test_max_ongoing_requests_default_is_above_the_target(stated, rendered):
    overlay = model(maxOngoingRequests=stated) if stated else {}
    assert llm_config(overlay)["deployment_config"]["max_ongoing_requests"] == rendered


def test_batch_limits_are_always_rendered():
    kwargs = llm_config()["engine_kwargs"]
    assert (kwargs["max_num_seqs"], kwargs["max_num_batched_tokens"], kwargs["max_model_len"]) == (128, 8192, 16384)


def test_extra_engine_arguments_are_rendered():
    kwargs = llm_config(model(engine={"extra": {"max_logprobs": 5, "hf_overrides": {"a": [1]}}}))["engine_kwargs"]
    assert (kwargs["max_logprobs"], kwargs["hf_overrides"]) == (5, {"a": [1]})


def test_chats_fetch_media_from_no_domain_unless_a_value_names_it():
    assert llm_config()["engine_kwargs"]["allowed_media_domains"] == ["none.invalid"]
    named = {"extra": {"allowed_media_domains": ["images.example"]}}
    assert llm_config(model(engine=named))["engine_kwargs"]["allowed_media_domains"] == ["images.example"]
    assert "allowed_media_domains" not in llm_config(model(task="embed"))["engine_kwargs"]


@pytest.mark.parametrize(("task", "runner"), [("embed", "pooling"), ("rerank", "pooling"), ("chat", None)])
def test_task_sets_the_runner(task, runner):
    assert llm_config(model(task=task))["engine_kwargs"].get("runner") == runner


def test_placement_group_has_one_bundle_for_each_gpu():
    assert placement() == {"strategy": "PACK", "bundle_per_worker": {"GPU": 1, "gpu.worker-group": 0.001}}


def test_bundles_follow_the_group_of_each_stage():
    assert placement(base="unlike-hosts") == {
        "strategy": "STRICT_SPREAD",
        "bundles": [{"GPU": 1, "a5000.worker-group": 0.001}, {"GPU": 1, "a4000.worker-group": 0.001}],
    }


def test_each_stage_has_a_bundle_for_each_rank():
    overlay = {
        "serve": {"applications": {"qwen3-32b": {"models": {"qwen3-32b": {"engine": {"tensorParallelSize": 2}}}}}},
        "workerGroups": {"a5000": {"gpu": {"count": 2}}, "a4000": {"gpu": {"count": 2}}},
    }
    groups = [
        next(name for name in bundle if name != "GPU") for bundle in placement(overlay, base="unlike-hosts")["bundles"]
    ]
    assert groups == ["a5000.worker-group"] * 2 + ["a4000.worker-group"] * 2


def test_gpu_fraction_is_passed_to_ray_and_engine():
    config = llm_config(model(gpuFraction=0.5, engine={"gpuMemoryUtilization": 0.45}))
    assert config["placement_group_config"]["bundle_per_worker"]["GPU"] == 0.5
    assert config["runtime_env"]["env_vars"] == {"VLLM_RAY_PER_WORKER_GPUS": "0.5"}
    assert config["engine_kwargs"]["gpu_memory_utilization"] == 0.45


def test_data_parallel_model_is_built_alone_by_the_builder_for_ranks():
    (app,) = serve_config(base="expert-parallel/deepseek-v3")["applications"]
    assert app["import_path"] == "ray.serve.llm:build_dp_openai_app"
    assert app["args"].keys() == {"llm_config", "ingress_deployment_config"}
    model = app["args"]["llm_config"]
    assert (model["engine_kwargs"]["data_parallel_size"], model["engine_kwargs"]["enable_expert_parallel"]) == (8, True)
    assert model["placement_group_config"]["bundle_per_worker"]["GPU"] == 1
    assert model["placement_group_config"]["strategy"] == "PACK"


def test_expert_parallel_model_is_built_by_the_usual_builder():
    (app,) = serve_config(base="expert-parallel/qwen3-235b")["applications"]
    assert app["import_path"] == "ray.serve.llm:build_openai_app"
    (model,) = app["args"]["llm_configs"]
    assert (model["engine_kwargs"]["tensor_parallel_size"], model["engine_kwargs"]["enable_expert_parallel"]) == (
        8,
        True,
    )


def test_prompts_and_answers_are_built_by_the_builder_for_both_kinds():
    (app,) = serve_config(base="prefill-decode/llama-70b")["applications"]
    assert app["import_path"] == "ray.serve.llm:build_pd_openai_app"
    assert app["args"].keys() == {"prefill_config", "decode_config", "ingress_deployment_config"}
    prefill, decode = app["args"]["prefill_config"], app["args"]["decode_config"]
    assert prefill["model_loading_config"] == decode["model_loading_config"]
    assert prefill["engine_kwargs"].pop("kv_transfer_config") == {
        "kv_connector": "NixlConnector",
        "kv_role": "kv_producer",
    }
    assert decode["engine_kwargs"].pop("kv_transfer_config") == {
        "kv_connector": "NixlConnector",
        "kv_role": "kv_consumer",
    }
    assert prefill["engine_kwargs"] == decode["engine_kwargs"]
    counts = [each["deployment_config"]["autoscaling_config"]["max_replicas"] for each in (prefill, decode)]
    targets = [each["deployment_config"]["autoscaling_config"]["target_ongoing_requests"] for each in (prefill, decode)]
    assert counts == [5, 3]
    assert targets[0] < targets[1]


def test_router_of_a_model_chooses_among_replicas_for_prompts():
    config = serve_config(
        chat(router={"kind": "PrefixAffinity"}, prefill={"autoscaling": {"targetOngoingRequests": 2}})
        | {"workerGroups": {"gpu": {"maxReplicas": 3}}}
    )
    args = config["applications"][0]["args"]
    assert "PrefixCacheAffinityRouter" in str(args["prefill_config"]["deployment_config"])
    assert "request_router_config" not in args["decode_config"]["deployment_config"]
    assert args["prefill_config"]["deployment_config"]["max_ongoing_requests"] == 3


def test_options_of_the_connector_are_passed_to_both_engines():
    prefill = {
        "autoscaling": {"targetOngoingRequests": 2},
        "connector": "LMCacheConnectorV1",
        "connectorOptions": {"discard_partial_chunks": False},
    }
    args = serve_config(chat(prefill=prefill) | {"workerGroups": {"gpu": {"maxReplicas": 3}}})["applications"][0][
        "args"
    ]
    for key in ("prefill_config", "decode_config"):
        transfer = args[key]["engine_kwargs"]["kv_transfer_config"]
        assert transfer["kv_connector"] == "LMCacheConnectorV1"
        assert transfer["kv_connector_extra_config"] == {"discard_partial_chunks": False}


def test_cpu_engine_reserves_cpus():
    config = llm_config(base="stand-in")
    assert config["accelerator_config"] == {"kind": "cpu"}
    assert config["placement_group_config"]["bundle_per_worker"] == {"CPU": 1}
    assert config["runtime_env"]["env_vars"]["VLLM_CPU_KVCACHE_SPACE"] == "1"


def test_prefix_affinity_router_evicts_old_prefixes():
    router = llm_config(model(router={"kind": "PrefixAffinity"}))["deployment_config"]["request_router_config"]
    assert router["request_router_kwargs"]["do_eviction"] is True
    assert "request_router_config" not in llm_config()["deployment_config"]


def test_five_applications_are_rendered():
    routes = {app["name"]: app["route_prefix"] for app in serve_config(base="homelab")["applications"]}
    assert routes == {name: f"/{name}" for name in ("llm", "whisper", "embeddings", "reranker", "tts")}


def test_custom_application_is_placed_and_scaled():
    apps = {app["name"]: app for app in serve_config(base="homelab")["applications"]}
    (speech,) = apps["tts"]["deployments"]
    assert speech["ray_actor_options"] == {
        "num_cpus": 1,
        "num_gpus": 0.5,
        "resources": {"rtx-2070.worker-group": 0.001},
    }
    assert speech["autoscaling_config"]["target_ongoing_requests"] == 2
    assert apps["tts"]["args"]["model"] == "speecht5"


def test_gpu_fractions_add_up_to_at_most_one_gpu():
    apps = serve_config(base="homelab")["applications"]
    booked = [
        bundle["GPU"]
        for app in apps
        for config in app["args"].get("llm_configs", [])
        for bundle in [config["placement_group_config"]["bundle_per_worker"]]
        if "rtx-2070.worker-group" in bundle
    ]
    booked += [deployment["ray_actor_options"]["num_gpus"] for app in apps for deployment in app.get("deployments", [])]
    assert sum(booked) == 1
