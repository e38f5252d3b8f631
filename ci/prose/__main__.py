"""Check the language of the repository: `python -m prose [PATH...]` from ci/, or `make prose`.

codespell reads every tracked file with its own dictionaries (typos, British spelling) and with words.txt; the words of
identifiers count too. phrases.txt has patterns of several words. A finding fails unless `allowed` has it with a reason.
"""

import re
import subprocess
import sys
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).parent
WORD = "[A-Z]?[a-z]+(?:n't)?"
"""A word in prose, or a part of a snake_case or camelCase identifier."""


@dataclass(frozen=True)
class Finding:
    """A word or phrase that should not be there."""

    file: str
    line: int
    found: str
    instead: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.found!r}: write {self.instead}"


@dataclass
class Row:
    """A row of `allowed` or `skip`."""

    glob: str
    word: str
    is_used: bool = field(default=False)


def main(arguments: list[str]) -> int:
    """Print every finding that is not allowed; 1 if there is one, or if an allowed row is not needed."""
    files = select_files(arguments)
    allowed = [Row(parts[0], parts[1].lower()) for parts in read_rows("allowed", 3)]
    findings = [each for each in (*check_words(files), *check_phrases(files)) if not is_allowed(each, allowed)]
    unused = [] if arguments else [row for row in allowed if not row.is_used]
    for each in sorted(findings, key=lambda finding: (finding.file, finding.line)):
        print(each)
    for row in unused:
        print(f"ci/prose/allowed: `{row.glob} | {row.word}` allows nothing: remove the row")
    return 1 if findings or unused else 0


def select_files(paths: list[str]) -> list[str]:
    """Return tracked text files below `paths` (all without), without those of `skip`."""
    listed = subprocess.check_output(["git", "ls-files", "--", *paths], cwd=ROOT, text=True).splitlines()
    globs = [parts[0] for parts in read_rows("skip", 2)]
    return [
        name
        for name in listed
        if (ROOT / name).is_file() and not any(fnmatchcase(name, glob) for glob in globs) and read_text(name)
    ]


def check_words(files: list[str]) -> list[Finding]:
    """What codespell finds, in names of files too."""
    if not files:
        return []  # without a file codespell reads the whole folder
    command = [
        sys.executable, "-m", "codespell_lib", "--disable-colors", "--check-filenames", "--check-hidden",
        "--regex", WORD, "--builtin", "clear,en-GB_to_en-US",
        f"--dictionary=-,{HERE / 'words.txt'}", *files,
    ]  # fmt: skip
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if ended.returncode not in (0, 65):  # 65: it found something
        raise SystemExit(f"codespell ended with {ended.returncode}: {ended.stderr.strip()}")
    output = ended.stdout
    pattern = re.compile(r"^(?:\./)?(?P<file>[^:]+):(?:(?P<line>\d+):)? (?P<found>\S+) ==> (?P<instead>.*)$")
    matches = (pattern.match(line) for line in output.splitlines())
    return [
        Finding(match["file"], int(match["line"] or 0), match["found"], match["instead"]) for match in matches if match
    ]


def check_phrases(files: list[str]) -> list[Finding]:
    """Return the patterns of several words; a phrase across a line break is found on its first line."""
    rows = [
        line.split(" -> ", 1) for line in (HERE / "phrases.txt").read_text().splitlines() if line[:1] not in ("", "#")
    ]
    phrases = [(re.compile(rf"\b(?:{row[0].replace(' ', chr(92) + 's+')})\b", re.IGNORECASE), row[1]) for row in rows]
    findings = []
    for name in files:
        text = read_text(name)
        for pattern, instead in phrases:
            for match in pattern.finditer(text):
                line = text.count("\n", 0, match.start()) + 1
                findings.append(Finding(name, line, " ".join(match[0].split()), instead))
    return findings


def is_allowed(finding: Finding, rows: list[Row]) -> bool:
    """Return whether a row allows it; every such row counts as used."""
    fitting = [row for row in rows if row.word == finding.found.lower() and fnmatchcase(finding.file, row.glob)]
    for row in fitting:
        row.is_used = True
    return bool(fitting)


def read_rows(name: str, columns: int) -> list[list[str]]:
    """Return the rows of a table of this folder, each with a reason in its last column."""
    rows = []
    for number, line in enumerate((HERE / name).read_text().splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        parts = [part.strip() for part in line.split(" | ")]
        if len(parts) != columns or not parts[-1]:
            raise SystemExit(
                f"ci/prose/{name}:{number}: {columns} columns with ` | ` between them, a reason in the last"
            )
        rows.append(parts)
    return rows


def read_text(name: str) -> str:
    """Return the text of a tracked file; empty for one that is no text."""
    try:
        return (ROOT / name).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
