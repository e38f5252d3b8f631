"""Rules of a model whose prompts and answers are computed on different replicas (`parallelism.prefillDecode`)."""

from collections.abc import Iterator

from rayhelm.errors import Fix, Problem
from rayhelm.fleet.fleet import Fleet
from rayhelm.fleet.models import ModelSpec
from rayhelm.fleet.problems import problem_at

__all__ = ["check_prefill_decode"]

SERVED_TASKS = ("chat",)
"""PDDecodeServer of Ray 2.60 sends the requests of chat and completions to the prefill replicas, and no others."""
_OWN_ARGUMENT = "kv_transfer_config"


def check_prefill_decode(fleet: Fleet) -> Iterator[Problem]:
    for name, spec in fleet.models.items():
        if spec.parallelism and spec.parallelism.separates_prefill:
            for key, message, fix in _list_conflicts(spec):
                yield problem_at(("models", name, *key), message, fix)


def _list_conflicts(spec: ModelSpec) -> Iterator[tuple[tuple[str, ...], str, Fix]]:
    """Yield each key that cannot be combined with the split."""
    pin = spec.parallelism
    assert pin is not None
    if spec.task not in SERVED_TASKS:
        yield (
            ("parallelism",),
            f"task `{spec.task}` has no prefill and decode on different replicas: Ray Serve LLM separates them for"
            " `chat`",
            Fix.removal(),
        )
    if spec.replicas is not None:
        why = "or keep it, and remove `prefillDecode`, `prefill` and `decode`"
        message = (
            "`replicas` does not say how many replicas compute prompts: pin `parallelism: {prefill: 1, decode: 1}`"
        )
        yield ("replicas",), message, Fix.removal("", why)
    if pin.ranks > 1:
        message = "data parallel ranks were not tested with prefill and decode on different replicas"
        yield ("parallelism", "data"), message, Fix.removal()
    if spec.scaling == "engine-queue":
        message = "`engine-queue` was not tested with prefill and decode on different replicas"
        yield ("scaling",), message, Fix("", "ongoing-requests")
    if spec.adapters:
        message = "adapters were not tested with prefill and decode on different replicas"
        yield ("adapters",), message, Fix.removal()
    if spec.gpu_fraction and spec.gpu_fraction < 1:
        message = "replicas that exchange KV caches have whole GPUs: a part of one was not tested"
        yield ("gpuFraction",), message, Fix.removal()
    if _OWN_ARGUMENT in spec.engine:
        message = f"`parallelism` sets {_OWN_ARGUMENT} for both kinds of replicas"
        yield ("engine", _OWN_ARGUMENT), message, Fix.removal()
