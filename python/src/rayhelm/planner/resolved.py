"""What a fleet file names, looked up once: the catalog, the shapes of its models, its measurements."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path

from rayhelm.errors import Diagnostics, Fix, Problem, each_problem
from rayhelm.facts import Catalog
from rayhelm.facts.engines import find_engine
from rayhelm.facts.huggingface import resolve_online
from rayhelm.facts.model import Checkpoint
from rayhelm.facts.tasks import get_task
from rayhelm.facts.versions import versions
from rayhelm.fleet.fleet import Fleet
from rayhelm.fleet.load import LoadedFleet
from rayhelm.fleet.models import ModelSpec
from rayhelm.fleet.problems import problem_at
from rayhelm.planner.divide_models import divide_models
from rayhelm.planner.explain.unknown_model import locate_model
from rayhelm.planner.memory.online_quantization import quantize_at_load
from rayhelm.planner.memory.parallelism import split_layers
from rayhelm.planner.placement.model_spec import ResolvedModelSpec
from rayhelm.planner.start_checks import (
    check_batch_of_encoder,
    check_draft_model,
    check_hybrid_cache,
    check_output_bounds,
    check_quantization,
)
from rayhelm.planner.stated_model import check_architecture, find_stated_model

__all__ = ["Resolved", "resolve"]


@dataclass(frozen=True)
class Resolved:
    """A fleet with everything that it names. Nothing after it reads the file or asks a hub."""

    fleet: Fleet
    """The fleet, with a model for each pool of `pools`."""
    models: tuple[ResolvedModelSpec, ...] = field(compare=False)
    facts: Catalog = field(compare=False, repr=False)
    """The catalog with the GPUs of the fleet."""
    source: LoadedFleet = field(compare=False, repr=False)
    """What was read, for the lines of problems and for plans of the same fleet with a change."""

    @cached_property
    def checkpoints(self) -> dict[str, Checkpoint]:
        """Shape of each model."""
        return {each.name: each.model for each in self.models}


def resolve(loaded: LoadedFleet, facts: Catalog) -> Resolved:
    """Look up what a fleet names. Raises FleetError with all unknown models and wrong settings."""
    constants, _ = find_engine(versions().vllm)
    found, fleet = Diagnostics(), loaded.fleet
    specs: dict[str, ResolvedModelSpec] = {}
    for name, spec in fleet.models.items():
        if not (model := found.run(partial(_find_model, name, spec, loaded.folder, facts))):
            continue
        found.add(_check_model(name, spec, model))
        found.add(check_quantization(name, spec, model))
        found.add(check_hybrid_cache(name, spec, model))
        found.add(check_draft_model(name, fleet))
        found.add(check_architecture(name, spec, model, loaded.folder, facts))
        service = fleet.service_of(name)
        is_shared = len(fleet.models_of(service)) > 1
        measured = loaded.measured.models.get(name, ()) if loaded.measured else ()
        model_spec = ResolvedModelSpec(name, name, service, model, spec, constants, is_shared, measured)
        found.add(check_batch_of_encoder(model_spec))
        specs[name] = _quantize(model_spec)
    found.add(check_output_bounds(specs.values(), fleet))
    found.check()
    divided, names = divide_models(fleet)
    models = (
        replace(specs[names[name]], name=name, service=divided.service_of(name), declared=spec)
        for name, spec in divided.models.items()
    )
    return Resolved(divided, tuple(models), facts, loaded)


def _quantize(model_spec: ResolvedModelSpec) -> ResolvedModelSpec:
    """Return the spec with the model as the engine holds it."""
    published = model_spec.model
    model = published if model_spec.has_own_engine else quantize_at_load(published, model_spec.declared.engine)
    return model_spec if model is published else replace(model_spec, model=model, published=published)


def _find_model(name: str, spec: ModelSpec, folder: Path, facts: Catalog) -> Checkpoint:
    if spec.memory:
        return find_stated_model(name, spec, folder, facts)
    key = "architecture" if spec.architecture else "source"
    path = ("models", name, key)
    wanted = spec.architecture or spec.source
    with each_problem(lambda problem: locate_model(problem, path, spec)):
        return resolve_online(wanted, folder, facts)


def _check_model(name: str, spec: ModelSpec, model: Checkpoint) -> Iterable[Problem]:
    """Return the settings of the fleet file that the model does not support."""
    path, traffic = ("models", name), spec.traffic
    if spec.context and spec.context > model.max_context:
        yield problem_at(
            (*path, "context"),
            f"{spec.context} tokens, and the longest context of {model.id} is {model.max_context} tokens",
            Fix(value=model.max_context),
        )
    tokens = traffic.input_tokens + (traffic.output_tokens or 0) if traffic else 0
    if traffic and not spec.context and model.default_context < tokens <= model.max_context:
        yield problem_at(
            (*path, "traffic"),
            f"the mean prompt and answer are {tokens} tokens together, and vLLM's default context for {model.id} is"
            f" {model.default_context} tokens",
            Fix(f"/models.{name}.context", model.max_context, "the longest that it accepts"),
        )
    elif traffic and not spec.context and tokens > model.max_context:
        yield problem_at(
            (*path, "traffic"),
            f"the mean prompt and answer are {tokens} tokens together, and the longest context of {model.id} is"
            f" {model.max_context} tokens",
            Fix("inputTokens", max(1, model.max_context - (traffic.output_tokens or 0)), "or another `source`"),
        )
    if spec.task not in model.tasks and not get_task(spec.task).is_any_model_allowed:
        yield problem_at(
            (*path, "task") if "task" in spec.model_fields_set else path,
            f"{model.id} does not support the task `{spec.task}`",
            Fix("" if "task" in spec.model_fields_set else "task", model.tasks[0]),
        )
    layers = spec.parallelism.layers if spec.parallelism else ()
    if layers and sum(layers) != model.layers:
        even = split_layers(model.layers, len(layers))
        yield problem_at(
            (*path, "parallelism", "layers"),
            f"{'+'.join(map(str, layers))} are {sum(layers)} layers, and {model.id} has {model.layers}",
            Fix(value=list(even), why="even, as far as they can be"),
        )
