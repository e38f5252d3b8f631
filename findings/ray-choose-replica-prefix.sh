#!/usr/bin/env bash
# Ray Serve: what PrefixCacheAffinityRouter does where a replica is only chosen, as direct streaming of Ray Serve LLM does it.
#
# Software: ray[serve] 2.60.0.
# A good guess: prompts without a common start are spread over the replicas, and each start stays with one, whether the
# deployment handle sends the request or only chooses the replica for it.
# What happens: of twelve such prompts on two idle replicas the handle sends six to each; where it only chooses, all twelve get
# the same replica. The router notes a prompt after it sent the request, and here it sends none: it never finds a prefix, and
# takes the first of the replicas that have noted least, which is always the same one.
# Why it matters: with direct streaming one replica gets all requests until ten more wait there than elsewhere, and its
# prefix cache holds everything. Nothing is logged, and the same router works without direct streaming.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check 'ray[serve]==2.60.0'

cat >"$folder/route.py" <<'PYTHON'
from collections import Counter
from types import SimpleNamespace

import ray
from ray import serve
from ray.serve.config import RequestRouterConfig

# ray.serve.llm.request_router has it too, and imports vLLM.
ROUTER = "ray.llm._internal.serve.routing_policies.prefix_aware.prefix_aware_router.PrefixCacheAffinityRouter"


@serve.deployment(
    num_replicas=2,
    ray_actor_options={"num_cpus": 0},
    request_router_config=RequestRouterConfig(request_router_class=ROUTER),
)
class Model:
    def __call__(self, request):
        return serve.get_replica_context().replica_id.unique_id


@serve.deployment(ray_actor_options={"num_cpus": 0})
class Client:
    def __init__(self, model):
        self.model = model

    async def __call__(self):
        """Replicas of twelve prompts without a common start, sent; then chosen, as direct streaming does."""
        prompts = [SimpleNamespace(prompt=f"{letter * 40} ") for letter in "abcdefghijkl"]
        sent = Counter([await self.model.remote(prompt) for prompt in prompts])
        chosen = Counter()
        for prompt in prompts:
            prompt.prompt = prompt.prompt.upper()
            async with self.model.choose_replica(prompt, _reserve=False) as selection:
                chosen[selection.replica_id] += 1
        return sorted(sent.values()), sorted(chosen.values())


ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
sent, chosen = serve.run(Client.bind(Model.bind())).remote().result(timeout_s=120)
print(f"prompts by replica: sent {sent}, chosen {chosen}")
raise SystemExit((len(sent), chosen) != (2, [12]))
PYTHON
RAY_USAGE_STATS_ENABLED=0 "$folder/venv/bin/python" "$folder/route.py"
