"""Check downloaded LoRA adapters against their base model: `python -m rayhelm.runtime.check_adapters JSON`.

The download Job runs it before any server reads the files. vLLM itself does not read `base_model_name_or_path`: it
would serve an adapter of another model with the same shapes, and answer nonsense.
"""

import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

__all__ = ["find_problems", "main"]

CONFIG = "adapter_config.json"
WEIGHTS = ("adapter_model.safetensors", "adapter_model.bin", "adapter_model.pt")
"""Files in which vLLM looks for the weights of an adapter."""


def find_problems(name: str, adapter: Mapping[str, Any]) -> Iterator[str]:
    """Yield what vLLM would refuse, or what it would serve wrongly. `adapter` has `path`, `baseModel` and `rank`."""
    folder = Path(adapter["path"])
    try:
        config = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        yield f"{name}: {folder / CONFIG} cannot be read: {error}"
        return
    if not isinstance(config, dict):
        yield f"{name}: {folder / CONFIG} is no JSON object"
        return
    if (kind := config.get("peft_type")) != "LORA":
        yield f"{name}: peft_type is {kind}, and vLLM serves LORA only"
    if (base := config.get("base_model_name_or_path")) != adapter["baseModel"]:
        yield (
            f"{name}: it was trained on {base}, and is to be served with {adapter['baseModel']}. If that is the same"
            f" model under another name, set `baseModel: {base}` of the adapter"
        )
    ranks = [config.get("r"), *_list_values(config.get("rank_pattern"))]
    if wrong := [rank for rank in ranks if type(rank) is not int or rank > adapter["rank"]]:
        yield f"{name}: its rank is {wrong[0]}, and the slots have {adapter['rank']}. Set `rank: {wrong[0]}` for it"
    for key in ("use_dora", "modules_to_save", "bias"):
        if config.get(key) not in (None, False, [], "none"):
            yield f"{name}: {key} is set in {CONFIG}, and vLLM does not support it"
    if not any((folder / file).is_file() for file in WEIGHTS):
        yield f"{name}: {folder} has none of {', '.join(WEIGHTS)}"


def _list_values(pattern: Any) -> Iterable[Any]:
    return pattern.values() if isinstance(pattern, dict) else ()


def main() -> None:
    """Read `{name: {path, baseModel, rank}}` from the first argument. Exit with 1 and all problems on stderr."""
    adapters: dict[str, dict[str, Any]] = json.loads(sys.argv[1])
    problems = [problem for name, adapter in adapters.items() for problem in find_problems(name, adapter)]
    for problem in problems:
        print(problem, file=sys.stderr)
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
