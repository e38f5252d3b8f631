"""Arrivals. `python -m autoscaling.trace FILE` converts AzureLLMInferenceTrace_conv.csv to conversation.csv and
AzureLLMInferenceTrace_code.csv to code.csv."""

import csv
import datetime
import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from math import exp, log, sqrt
from pathlib import Path
from statistics import fmean, pstdev

__all__ = ["Minute", "SimulatedRequest", "Trace", "draw_requests", "load_trace"]

HERE = Path(__file__).parent
FILES = {"AzureLLMInferenceTrace_conv": "conversation", "AzureLLMInferenceTrace_code": "code"}
ABOUT = """\
# Requests and tokens of each minute of {name}.csv (Azure/AzurePublicDataset, file of 2023), derived
# from it by benchmarks/autoscaling/trace.py; the last minute, which is not whole, is left out. The original is by
# Microsoft, under CC BY 4.0 (https://creativecommons.org/licenses/by/4.0/), and so is this file. It goes with: P. Patel
# et al., "Splitwise: Efficient generative LLM inference using phase splitting", ISCA 2024.
# Standard deviation over mean of the lengths within a minute: {variation}
"""


@dataclass(frozen=True)
class Minute:
    requests: int
    prompt_tokens: int
    answer_tokens: int


@dataclass
class SimulatedRequest:
    """One request and its result."""

    at: float
    """Seconds."""
    prompt: int
    answer: int
    first_token: float | None = None
    """Seconds after its arrival."""


@dataclass(frozen=True)
class Trace:
    minutes: list[Minute]
    prompt_variation: float
    """Standard deviation over mean of the lengths within a minute: the mean over the original's minutes."""
    answer_variation: float

    @property
    def seconds(self) -> float:
        return 60.0 * len(self.minutes)

    @property
    def peak(self) -> float:
        """Requests per second in the minute with the most requests."""
        return max(minute.requests for minute in self.minutes) / 60

    @property
    def prompt(self) -> float:
        """Mean tokens."""
        return sum(minute.prompt_tokens for minute in self.minutes) / sum(minute.requests for minute in self.minutes)

    @property
    def answer(self) -> float:
        """Mean tokens."""
        return sum(minute.answer_tokens for minute in self.minutes) / sum(minute.requests for minute in self.minutes)


def load_trace(name: str) -> Trace:
    about: list[str] = []
    lines: list[str] = []
    for line in (HERE / f"{name}.csv").read_text().splitlines():
        (about if line.startswith("#") else lines).append(line)
    prompt, answer = (float(part.split()[0]) for part in about[-1].rpartition(": ")[2].split(", "))
    rows = [Minute(**{key: int(value) for key, value in row.items()}) for row in csv.DictReader(lines)]
    return Trace(rows, prompt, answer)


def draw_requests(seed: int, of: Trace) -> list[SimulatedRequest]:
    """Draw the requests of each minute: uniform in time, with log-normal lengths around the mean of the minute."""
    draw = random.Random(seed)
    found = [
        SimulatedRequest(
            at=60 * number + draw.uniform(0, 60),
            prompt=_length(draw, minute.prompt_tokens / minute.requests, of.prompt_variation),
            answer=_length(draw, minute.answer_tokens / minute.requests, of.answer_variation),
        )
        for number, minute in enumerate(of.minutes)
        for _ in range(minute.requests)
    ]
    return sorted(found, key=lambda request: request.at)


def _length(draw: random.Random, mean: float, variation: float) -> int:
    sigma = sqrt(log(1 + variation**2))
    return max(1, round(mean * exp(draw.gauss(-(sigma**2) / 2, sigma))))


def main(original: Path) -> None:
    rows = list(_rows(original))
    whole = [[row for row in rows if row[0] == minute] for minute in range(rows[-1][0])]
    within = [f"{_variation(whole, column):.2f} {name}" for column, name in ((1, "prompts"), (2, "answers"))]
    about = ABOUT.format(name=original.stem, variation=", ".join(within))
    body = "\n".join(f"{len(each)},{sum(row[1] for row in each)},{sum(row[2] for row in each)}" for each in whole)
    target = HERE / f"{FILES[original.stem]}.csv"
    target.write_text(f"{about}requests,prompt_tokens,answer_tokens\n{body}\n")


def _variation(whole: list[list[tuple[int, int, int]]], column: int) -> float:
    """Return the mean over minutes of standard deviation divided by mean; empty minutes are left out."""
    lengths = [[row[column] for row in each] for each in whole if each]
    return fmean(pstdev(each) / fmean(each) for each in lengths)


def _rows(path: Path) -> Iterator[tuple[int, int, int]]:
    """Minute, prompt tokens and answer tokens of each request."""
    first: datetime.datetime | None = None
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            at = datetime.datetime.fromisoformat(row["TIMESTAMP"][:26])
            first = first or at
            minute = int((at - first).total_seconds() // 60)
            yield minute, int(row["ContextTokens"]), int(row["GeneratedTokens"])


if __name__ == "__main__":
    main(Path(sys.argv[1]))
