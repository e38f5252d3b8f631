"""One load on an endpoint, and its result by request."""

import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from statistics import median, quantiles
from typing import Any

from rayhelm.deploy.advice import how_to_get_ray
from rayhelm.errors import Fix, FleetError, MissingError, Problem
from rayhelm.facts.versions import versions

__all__ = ["BenchClient", "BenchLoad", "BenchResult", "check_vllm", "open_client"]


class ClientEndedError(FleetError):
    """The client ended; its log says why."""


PATH = "/v1/chat/completions"


@dataclass(frozen=True)
class BenchLoad:
    """A constant number of requests in flight."""

    concurrency: int
    requests: int
    input_tokens: int
    """Of each prompt, before the chat template."""
    output_tokens: int


@dataclass(frozen=True)
class BenchResult:
    """Figures of the requests that were answered. Times in seconds."""

    load: BenchLoad
    requests: int
    errors: dict[str, int]
    """Failed requests by reason."""
    input_tokens: float = 0.0
    """Mean, as the engine counted."""
    output_tokens: float = 0.0
    ttft_s: float = 0.0
    ttft_p90_s: float = 0.0
    tpot_s: float = 0.0
    tpot_p90_s: float = 0.0
    output_tokens_per_second: float = 0.0

    @property
    def failed(self) -> int:
        return sum(self.errors.values())


@dataclass(frozen=True)
class BenchClient:
    """The running load generator."""

    process: "subprocess.Popen[str]"
    url: str
    model: str
    tokenizer: str

    def measure(self, load: BenchLoad, seed: int = 0) -> BenchResult:
        """Send the requests, and wait for all answers. Raises FleetError if the client fails."""
        arguments = {
            "--backend": "openai-chat",
            "--base-url": self.url,
            "--endpoint": PATH,
            "--model": self.model,
            "--served-model-name": self.model,
            "--tokenizer": self.tokenizer,
            "--dataset-name": "random",
            "--random-input-len": str(load.input_tokens),
            "--random-output-len": str(load.output_tokens),
            "--num-prompts": str(load.requests),
            "--max-concurrency": str(load.concurrency),
            "--seed": str(seed),
        }
        line = [word for pair in arguments.items() for word in pair]
        assert self.process.stdin
        assert self.process.stdout
        try:
            print(json.dumps([*line, "--save-detailed", "--disable-tqdm"]), file=self.process.stdin, flush=True)
            answer = self.process.stdout.readline()
        except BrokenPipeError:
            answer = ""
        if not answer:
            raise ClientEndedError("vLLM's load generator ended without a result")
        found = json.loads(answer)
        if "error" in found:
            raise FleetError(Problem(f"vLLM's load generator failed: {found['error']}", fix=_find_fix(found["error"])))
        return read_result(load, found)


def _find_fix(error: str) -> Fix:
    if error.startswith("OSError"):
        return Fix.advice("give a folder with the files of the tokenizer: --tokenizer DIR")
    wanted = versions().vllm
    return Fix.advice(f"rayhelm is tested with vLLM {wanted}; `vllm --version` says which one is installed")


def check_vllm() -> None:
    """Raises MissingError without vLLM."""
    if find_spec("vllm") is None:
        raise MissingError("vLLM is not installed: `rayhelm bench` uses its load generator", how_to_get_ray())


@contextmanager
def open_client(url: str, model: str, tokenizer: str, key: str) -> Iterator[BenchClient]:
    """Start vLLM's load generator. `url`: before `/v1`. `key`: API key, empty for none; it is not on a command line.
    Where the generator fails, the error has the last lines that it printed."""
    environment = os.environ | {"VLLM_LOGGING_LEVEL": "ERROR", "OPENAI_API_KEY": key}
    with tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "rayhelm.live.bench.vllm_client"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            env=environment,
        )
        try:
            yield BenchClient(process, url.rstrip("/"), model, tokenizer)
        except ClientEndedError as error:
            process.wait()
            log.seek(0)
            raise FleetError(Problem(f"{error}:\n{''.join(log.readlines()[-4:]).rstrip()}")) from None
        finally:
            process.kill()
            process.wait()


def read_result(load: BenchLoad, found: dict[str, Any]) -> BenchResult:
    """Return the figures of an answer of the client, which has lists with an entry for each request."""
    errors: Counter[str] = Counter()
    prompts, answers, firsts, steps = [], [], [], []
    for index, error in enumerate(found["errors"]):
        tokens = found["output_lens"][index]
        if error or not tokens:
            errors[_shorten(error) or "no output"] += 1
            continue
        prompts.append(found["input_lens"][index])
        answers.append(tokens)
        firsts.append(found["ttfts"][index])
        if tokens > 1:
            steps.append(sum(found["itls"][index]) / (tokens - 1))
    if not firsts or not steps:
        return BenchResult(load, len(firsts), dict(errors))
    return BenchResult(
        load=load,
        requests=len(firsts),
        errors=dict(errors),
        input_tokens=sum(prompts) / len(prompts),
        output_tokens=sum(answers) / len(answers),
        ttft_s=median(firsts),
        ttft_p90_s=_find_p90(firsts),
        tpot_s=median(steps),
        tpot_p90_s=_find_p90(steps),
        output_tokens_per_second=sum(answers) / found["duration"],
    )


def _find_p90(values: Sequence[float]) -> float:
    return quantiles(values, n=10, method="inclusive")[8] if len(values) > 1 else values[0]


def _shorten(error: str) -> str:
    """Return the last line of a traceback."""
    return error.strip().rpartition("\n")[2][:200]
