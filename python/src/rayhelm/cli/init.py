"""`rayhelm init`: a fleet file by questions."""

import enum
import json
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from rayhelm.cli.ask import Asker
from rayhelm.cli.files import check_new
from rayhelm.cli.new_fleet import checks
from rayhelm.cli.new_fleet.answers import Answers, OwnPool, propose_context, propose_model
from rayhelm.cli.new_fleet.check import plan_text
from rayhelm.cli.new_fleet.discovered import read_discovered
from rayhelm.cli.new_fleet.text import build_text
from rayhelm.cli.output import Format, FormatOption, warn
from rayhelm.errors import Fix, FleetError, Problem, UsageError
from rayhelm.facts import load_catalog
from rayhelm.facts.huggingface import resolve_online
from rayhelm.facts.versions import versions

__all__ = ["init_command"]

EXAMPLE_ADDRESS = "10.0.0.1/32"


class FirstTask(enum.StrEnum):
    """Tasks that need no application of the user."""

    chat = "chat"
    embed = "embed"
    rerank = "rerank"
    transcribe = "transcribe"
    speak = "speak"


def init_command(
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="FILE", help="New file; an existing one is never overwritten.")
    ] = Path("fleet.yaml"),
    discovered: Annotated[
        Path | None,
        typer.Option(
            "--from", metavar="FILE", help="Pools that `rayhelm discover` wrote; `-` reads them from standard input."
        ),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Ask nothing: take the default of each answer.")] = False,
    fleet: Annotated[str | None, typer.Option(help="Name of the fleet.")] = None,
    gpu: Annotated[str | None, typer.Option(help="GPU id of the catalog: `rayhelm catalog gpus`.")] = None,
    nodes: Annotated[int | None, typer.Option(min=1, help="Nodes with these GPUs.")] = None,
    gpus_per_node: Annotated[int | None, typer.Option(min=1, max=64, help="GPUs in each node.")] = None,
    image: Annotated[str | None, typer.Option(help="Image with Ray and vLLM for GPUs of AMD or Intel.")] = None,
    api_server: Annotated[str | None, typer.Option(help="Address of the Kubernetes API server, or CIDR.")] = None,
    task: Annotated[FirstTask | None, typer.Option(help="Task of the model.", show_default=False)] = None,
    model: Annotated[str | None, typer.Option(help="Model: id of the hub, or path of its folder.")] = None,
    name: Annotated[str | None, typer.Option(help="Name that clients send as `model`.")] = None,
    revision: Annotated[str | None, typer.Option(help="Commit of the hub; empty: not pinned.")] = None,
    context: Annotated[int | None, typer.Option(min=16, help="Longest prompt and answer together, tokens.")] = None,
    requests_per_second: Annotated[
        float | None, typer.Option(min=0, help="Planned load at its peak; 0: one replica.")
    ] = None,
    input_tokens: Annotated[int | None, typer.Option(min=1, help="Mean prompt, tokens.")] = None,
    output_tokens: Annotated[int | None, typer.Option(min=1, help="Mean answer, tokens.")] = None,
    tenant: Annotated[str | None, typer.Option(help="Team that owns the model and calls it.")] = None,
    clients: Annotated[str | None, typer.Option(help="Namespace whose pods call the gateway.")] = None,
    hub_token: Annotated[str | None, typer.Option(help="Secret with the hub token, for gated models.")] = None,
    format: FormatOption = Format.text,
) -> None:
    """Write a fleet file by questions. Each answer has a flag; `--yes` takes the default of the others.

    With `--from`, the pools are those that `rayhelm discover` found. The fleet is planned and checked before the file
    is written, so that `rayhelm plan` and `rayhelm lint` accept it. Nothing is overwritten.
    """
    if discovered and (given := _name_given({"--gpu": gpu, "--nodes": nodes, "--gpus-per-node": gpus_per_node})):
        raise UsageError(f"`{given}` describes a pool, and `--from` has the pools. fix: leave out {given}")
    check_new(output, "rayhelm init -o FILE")
    asker = Asker(yes)
    found = read_discovered(discovered) if discovered else None
    folder_name = checks.derive_name(output.resolve().parent.name)
    fleet_name = fleet or (found.fleet if found else None)
    chosen_fleet = asker.ask("--fleet", fleet_name, "Name of the fleet", folder_name, checks.check_name)
    own = None if found else _ask_pool(asker, gpu, nodes, gpus_per_node, image)
    address = ""
    if not (found and found.has_address):
        question = "Address of the API server (kubectl get endpointslices -n default)"
        address = asker.ask("--api-server", api_server, question, EXAMPLE_ADDRESS, checks.check_address)
    team = _ask_tenant(asker, tenant, clients)
    largest = own.gpu if own else found.gpu if found else ""
    asked = model is None and not yes
    while True:
        answers = Answers(
            fleet=chosen_fleet,
            api_server=address,
            **team,
            **_ask_model(asker, largest, output.parent, task, model, name, revision, context),
            **_ask_load(asker, requests_per_second, input_tokens, output_tokens),
            hub_token="",
        )
        answers = _ask_token(asker, answers, output.parent, hub_token)
        text = found.complete(answers) if found else build_text(answers, own or OwnPool("", 1, 1))
        try:
            plan = plan_text(text, str(output))
            break
        except FleetError as error:
            if not asked:
                raise
            print(f"{error}\nChoose another model, context or load.", file=sys.stderr)
    _write_new(output, text)
    if format is Format.json:
        print(json.dumps({"written": str(output), "warnings": list(plan.all_warnings)}, indent=2))
        return
    for warning in plan.all_warnings:
        warn(warning)
    if address == EXAMPLE_ADDRESS:
        warn(f"{EXAMPLE_ADDRESS} is an example: replace it by the address of your API server in {output}")
    planned = plan.models[answers.model]
    print(output)
    print(
        f"{planned.model}: {_count_replicas(planned.min_replicas, planned.max_replicas)} of"
        f" {planned.gpus / planned.replicas:g} x {planned.gpu} in pool {planned.pool}"
    )
    print(f"next: rayhelm plan {output}; rayhelm lint {output}; rayhelm render {output}")


def _count_replicas(least: int, most: int) -> str:
    count = str(most) if least == most else f"{least} to {most}"
    return f"{count} replica{'' if count == '1' else 's'}"


def _name_given(options: dict[str, object]) -> str:
    return next((flag for flag, value in options.items() if value is not None), "")


def _ask_pool(
    asker: Asker, gpu: str | None, nodes: int | None, gpus_per_node: int | None, image: str | None
) -> OwnPool:
    kind = asker.ask("--gpu", gpu, "GPU (rayhelm catalog gpus)", "L4-24GB", checks.check_gpu)
    count = asker.ask("--nodes", nodes, "Nodes with these GPUs", 1, _whole)
    each = asker.ask("--gpus-per-node", gpus_per_node, "GPUs in each node", 1, _whole)
    known, stock = load_catalog().gpu(kind), versions().images["ray"]
    chosen, needs = "", str(known.vendor)
    if known.vendor in stock.vendors and known.host_architecture not in stock.architectures:
        needs = known.host_architecture
    if image or needs not in stock.vendors:
        example = f"registry.example/ray-vllm-{needs}:{versions().ray}-py312"
        question = f"Image with Ray {versions().ray} and vLLM for {needs}, which you build"
        chosen = asker.ask("--image", image, question, example, checks.check_image)
    return OwnPool(kind, count, each, chosen)


def _ask_model(
    asker: Asker,
    gpu: str,
    folder: Path,
    task: FirstTask | None,
    model: str | None,
    name: str | None,
    revision: str | None,
    context: int | None,
) -> dict[str, Any]:
    chosen = asker.ask("--task", task, "Task of the model", FirstTask.chat, _check_task)
    known = partial(checks.check_model, folder=folder)
    source = asker.ask("--model", model, "Model (rayhelm catalog models)", propose_model(chosen, gpu), known)
    proposed = checks.derive_name(source)
    own = asker.ask("--name", name, "Name that clients send as `model`", proposed, checks.check_model_name)
    commit = asker.ask("--revision", revision, "Commit of the hub (empty: not pinned)", "", checks.check_revision)
    most = resolve_online(source, folder, load_catalog()).max_context
    question = f"Longest prompt and answer together, tokens (at most {most})"
    tokens = asker.ask("--context", context, question, propose_context(most), _whole)
    return {"task": chosen.value, "source": source, "model": own, "revision": commit, "context": tokens}


def _ask_load(
    asker: Asker, requests_per_second: float | None, input_tokens: int | None, output_tokens: int | None
) -> dict[str, Any]:
    question = "Requests per second at the peak (0: not known)"
    rate = asker.ask("--requests-per-second", requests_per_second, question, 0.0, _amount)
    if not rate:
        return {"requests_per_second": 0, "input_tokens": 0, "output_tokens": 0}
    prompt = asker.ask("--input-tokens", input_tokens, "Mean prompt, tokens", 1000, _whole)
    answer = asker.ask("--output-tokens", output_tokens, "Mean answer, tokens", 300, _whole)
    return {"requests_per_second": rate, "input_tokens": prompt, "output_tokens": answer}


def _ask_tenant(asker: Asker, tenant: str | None, clients: str | None) -> dict[str, Any]:
    own = asker.ask("--tenant", tenant, "Team that owns the model and calls it", "apps", checks.check_name)
    question = "Namespace whose pods call the gateway"
    return {"tenant": own, "clients": asker.ask("--clients", clients, question, own, checks.check_name)}


def _ask_token(asker: Asker, answers: Answers, folder: Path, hub_token: str | None) -> Answers:
    if hub_token is None and not resolve_online(answers.source, folder, load_catalog()).needs_token:
        return answers
    question = "Secret with the token of the hub (the model is gated)"
    return replace(answers, hub_token=asker.ask("--hub-token", hub_token, question, "hub-token", checks.check_name))


def _check_task(text: str) -> FirstTask:
    if text not in list(FirstTask):
        raise ValueError(f"`{text}` is not one of {', '.join(FirstTask)}")
    return FirstTask(text)


def _whole(text: str) -> int:
    if not text.strip().isdecimal() or not int(text):
        raise ValueError(f"`{text}` is not a whole number of at least 1")
    return int(text)


def _amount(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1
    if not 0 <= value <= 1e6:
        raise ValueError(f"`{text}` is not a number between 0 and 1000000")
    return value


def _write_new(path: Path, text: str) -> None:
    """Write a file that does not exist; another program may have created it meanwhile."""
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise UsageError(f"{path} exists already, and is not overwritten. fix: -o another-file.yaml") from None
    except OSError as error:
        fix = Fix(command="rayhelm init -o FILE", why="a place that you may write to")
        raise FleetError(Problem(f"cannot be written: {error.strerror}", file=str(path), fix=fix)) from None
