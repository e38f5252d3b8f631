"""Read the commands of a Markdown page: bash runs its blocks, with functions in place of tools such as kubectl.

bash itself expands variables, substitutions and loops, so the arguments are those of a real run.
"""

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from shared.page_commands import check_syntax, list_blocks

__all__ = ["GIVEN", "OUTPUT", "Command", "read_commands"]

GIVEN = "..."
"""Value of a variable that the reader sets: `export NAMESPACE=...`."""
OUTPUT = "OUTPUT"
"""What the functions print. With `-o name` they print a pod named after the selector: `pod/rayhelm.dev/role=head`."""
_RECORDED = ("kubectl", "helm", "rayhelm", "curl")
_REPLACED = (*_RECORDED, "base64", "cmctl", "kill", "openssl")
"""Tools that do not run. All others do, on the output of the functions."""
_FUNCTIONS = """
set -u
record() { printf '%s\\0' "$#" "$@" >>commands; }
answer() {
  local text=OUTPUT
  if [[ " $* " == *" -o name "* && " $* " =~ \\ -l\\ ([^ ]+)\\  ]]; then text=pod/${BASH_REMATCH[1]}; fi
  echo "$text" 2>/dev/null
}
"""


@dataclass(frozen=True)
class Command:
    """A command with its arguments, as bash passes them."""

    words: tuple[str, ...]
    is_inline: bool = False
    """It is part of a sentence, so it may be a part of a command, such as `kubectl describe pod`."""

    def __str__(self) -> str:
        return " ".join(self.words)


def read_commands(page: str, folder: Path) -> tuple[list[Command], list[str]]:
    """Return the commands of a page in the order in which they run, and what bash reports. `folder` is empty."""
    blocks = list_blocks(page)
    spans = re.findall(rf"`((?:{'|'.join(_RECORDED)}) [^`]+)`", re.sub(r"```.*?```", "", page, flags=re.DOTALL))
    for part in (*blocks, *spans):
        if problem := check_syntax(part):
            return [], [problem]
    functions = [f'{name}() {{ record {name} "$@"; answer "$@"; }}' for name in _REPLACED]
    script = "\n".join([_FUNCTIONS, *functions, *blocks, "record inline", *spans, "wait"])
    done = subprocess.run(["bash", "-c", script], cwd=folder, capture_output=True, text=True, check=False)
    recorded = folder / "commands"
    words = recorded.read_text().split("\0")[:-1] if recorded.exists() else []
    return _split(words), done.stderr.splitlines()


def _split(words: list[str]) -> list[Command]:
    commands, is_inline = [], False
    while words:
        count = int(words[0])
        command, words = words[1 : count + 1], words[count + 1 :]
        is_inline = is_inline or command == ["inline"]
        if command[0] in _RECORDED:
            commands.append(Command(tuple(command), is_inline))
    return commands
