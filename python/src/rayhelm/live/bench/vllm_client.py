"""Runs vLLM's own benchmark client: one line of JSON with its arguments in, one line of JSON with its result out.

A process of its own, because the client prints and because vLLM takes seconds to import: all loads share one start.
"""

import json
import sys
import traceback
from contextlib import redirect_stdout

__all__ = ["main"]


def main() -> None:
    results = sys.stdout
    with redirect_stdout(sys.stderr):
        from vllm.benchmarks.serve import add_cli_args
        from vllm.benchmarks.serve import main as measure
        from vllm.utils.argparse_utils import FlexibleArgumentParser

        parser = FlexibleArgumentParser()
        add_cli_args(parser)
        for line in sys.stdin:
            try:
                answer = measure(parser.parse_args(json.loads(line)))
            except Exception as error:
                traceback.print_exc()
                answer = {"error": f"{type(error).__name__}: {error}"}
            print(json.dumps(answer), file=results, flush=True)


if __name__ == "__main__":
    main()
