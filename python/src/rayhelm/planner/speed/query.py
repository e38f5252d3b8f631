"""Queries of `rayhelm estimate`: options of the command, or one line of a batch."""

import json
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError, field_validator

from rayhelm.errors import FleetError, Problem, RayhelmError
from rayhelm.facts import load_catalog
from rayhelm.facts.closed import Closed
from rayhelm.facts.huggingface import read_config
from rayhelm.facts.model import Checkpoint
from rayhelm.facts.network import NetworkKind
from rayhelm.planner.memory.input_limits import MOST_RANKS, MOST_TOKENS
from rayhelm.planner.memory.online_quantization import quantize_at_load
from rayhelm.planner.shape import ReplicaShape
from rayhelm.planner.speed.assumptions import load_assumptions
from rayhelm.planner.speed.build import build_replica
from rayhelm.planner.speed.estimate import SpeedEstimate, estimate_speed
from rayhelm.planner.speed.replica import Load, Replica, Speculation, StageLink

__all__ = ["SpeedQuery", "answer_lines", "answer_query", "read_replica"]

_MOST_DRAFTS = 64


class SpeedQuery(Closed):
    """One shape and its load."""

    model: str | None = None
    """Model of the catalog or of the Hugging Face hub."""
    config: str | None = None
    """Path of a config.json, instead of `model`."""
    gpu: str
    tensor_parallel_size: int = Field(default=1, ge=1, le=MOST_RANKS)
    pipeline_parallel_size: int = Field(default=1, ge=1, le=MOST_RANKS)
    data_parallel_size: int = Field(default=1, ge=1, le=MOST_RANKS)
    expert_parallel: bool = False
    network: str | None = None
    """Network between the pipeline stages; by default they are on one host."""
    input_tokens: int = Field(ge=1, le=MOST_TOKENS)
    output_tokens: int = Field(ge=1, le=MOST_TOKENS)
    concurrency: float = Field(gt=0, le=1e6, allow_inf_nan=False)
    """Requests in flight in all data-parallel ranks."""
    engine_version: str | None = None
    engine: dict[str, Any] = {}
    """Arguments of vLLM."""

    @property
    def shape(self) -> ReplicaShape:
        return ReplicaShape(
            self.tensor_parallel_size,
            self.pipeline_parallel_size,
            self.data_parallel_size,
            self.expert_parallel or bool(self.engine.get("enable_expert_parallel")),
        )

    @field_validator("engine", mode="before")
    @classmethod
    def _read_null(cls, value: Any) -> Any:
        return {} if value is None else value


def answer_query(query: SpeedQuery) -> SpeedEstimate:
    """Answer one query. Raises FleetError for unknown names, and for what cannot be estimated."""
    replica, load, why = read_replica(query)
    gpu, model = replica.gpus[0], replica.model
    if gpu.engine == "none":
        raise FleetError(Problem(f"vLLM is not known to run on {gpu.id}"))
    found = estimate_speed(replica, load, str(query.engine.get("kv_cache_dtype") or "auto"))
    remarks = (*found.notes, why, _find_context_error(model, query), load_catalog().explain_gpu_name(query.gpu))
    notes = tuple(note for note in remarks if note)
    if query.engine.get("enforce_eager"):
        notes = (*notes, "enforce_eager: decoding without CUDA graphs is slower than this estimate")
    return found.model_copy(update={"notes": notes})


def read_replica(query: SpeedQuery) -> tuple[Replica, Load, str]:
    """Return the replica and the load of a query, and why the KV cache is unknown (empty if it is known)."""
    model = quantize_at_load(_find_model(query.model, query.config), query.engine)
    replica, why = build_replica(
        model,
        [load_catalog().gpu(query.gpu)] * query.shape.pp,
        query.shape,
        context=query.input_tokens + query.output_tokens,
        engine=query.engine,
        vllm_version=query.engine_version,
        link=_find_link(query.network) if query.network else None,
        speculation=_read_speculation(query.engine),
    )
    return replica, Load(query.input_tokens, query.output_tokens, query.concurrency), why


def _find_context_error(model: Checkpoint, query: SpeedQuery) -> str:
    """Return why vLLM refuses requests of this length; empty if it does not."""
    stated = query.engine.get("max_model_len")
    longest = int(stated) if isinstance(stated, (int, float)) else model.max_context
    tokens = query.input_tokens + query.output_tokens
    if tokens <= longest:
        return ""
    return f"vLLM refuses these requests: they have {tokens:,} tokens, and the longest context is {longest:,} tokens"


def answer_lines(lines: Iterable[str]) -> Iterator[str]:
    """Yield one line of JSON for each line of JSON: the estimate, or `{"error": …}`."""
    for line in lines:
        try:
            yield answer_query(SpeedQuery.model_validate(_read_object(line))).model_dump_json()
        except ValidationError as error:
            yield _format_error("; ".join(_describe(found) for found in error.errors()))
        except RayhelmError as error:
            yield _format_error(_join(error))
        # An error of ours must not lose the answers to the lines that follow.
        except Exception as error:
            yield _format_error(f"internal error, please report it: {type(error).__name__}: {error}")


def _read_object(line: str, what: str = "the line") -> Any:
    try:
        return json.loads(line)
    except (json.JSONDecodeError, RecursionError) as error:
        raise FleetError(Problem(f"{what} is not JSON: {error}")) from None


def _describe(found: Any) -> str:
    return f"{'.'.join(map(str, found['loc'])) or 'the line'}: {found['msg']}"


def _join(error: RayhelmError) -> str:
    if not isinstance(error, FleetError):
        return str(error)
    return "; ".join(f"{each.file}: {each.message}" if each.file else each.message for each in error.problems)


def _format_error(message: str) -> str:
    return json.dumps({"error": message})


@lru_cache(maxsize=1024)
def _find_model(model: str | None, config: str | None) -> Checkpoint:
    if bool(model) == bool(config):
        raise FleetError(Problem("give either `model` or `config`"))
    return read_config(model) if model else read_config(Path(config or ""))


def _find_link(name: str) -> StageLink:
    network: NetworkKind = load_catalog().network(name)
    nominal = network.bandwidth_gbit_per_s / 8 if network.bandwidth_gbit_per_s else None
    rate = network.effective_gb_per_s or nominal
    if rate is None:
        raise FleetError(Problem(f"the rate of network {network.id} is unknown"))
    latency = network.latency_us * 1e-6 if network.latency_us else load_assumptions().network_latency_s[network.kind]
    return StageLink(rate, latency)


def _read_speculation(engine: dict[str, Any]) -> Speculation | None:
    """Return `speculative_config` of the engine; `acceptance_rate` is a key of ours beside vLLM's."""
    config = engine.get("speculative_config")
    if isinstance(config, str):
        config = _read_object(config, "speculative_config")
    if not config:
        return None
    if not isinstance(config, dict):
        raise FleetError(Problem("speculative_config is not a map"))
    tokens, rate = (
        config.get("num_speculative_tokens"),
        config.get("acceptance_rate", load_assumptions().acceptance_rate),
    )
    if not isinstance(tokens, int) or not 1 <= tokens <= _MOST_DRAFTS:
        raise FleetError(
            Problem(f"speculative_config.num_speculative_tokens {tokens!r} is not between 1 and {_MOST_DRAFTS}")
        )
    if not isinstance(rate, (int, float)) or not 0 <= rate <= 1:
        raise FleetError(Problem(f"speculative_config.acceptance_rate {rate!r} is not between 0 and 1"))
    return Speculation(tokens, float(rate))
