"""Write the files that are generated from each policies/<name>/policy.yaml.in.

It writes policy.yaml, the table of policies/README.md, and policies.json for the values model and the chart `platform`.

python -m rayhelm.check.admission.assemble [--check]

Each policy.yaml.in has two YAML documents: its settings (description, lists of exceptions, policies that it requires)
and the ValidatingAdmissionPolicy. Parts that several policies share are in policies/shared.yaml.
"""

import json
import re
import sys
from pathlib import Path

import yaml

from rayhelm.deploy.charts.helm import charts_dir
from rayhelm.deploy.values.platform.policy_catalog import AboutPolicy
from rayhelm.errors import UsageError

__all__ = ["assemble_policies"]

SHARED_ITEM = re.compile(r"^(?P<indent> *)- shared: (?P<name>\S+)\n", re.MULTILINE)
SHARED_TEXT = re.compile(r"\$\((?P<name>[a-z-]+)\)")
TABLE = ("<!-- policies: generated -->\n", "<!-- /policies -->\n")


def assemble_policies(folder: Path) -> dict[Path, str]:
    """Return the text of each generated file by its path. Raises UsageError for a shared part that does not exist."""
    shared: dict[str, str] = yaml.safe_load((folder / "shared.yaml").read_text())
    sources = {file.parent.name: file.read_text() for file in sorted(folder.glob("*/policy.yaml.in"))}
    texts = {name: source.partition("\n---\n") for name, source in sources.items()}
    about = {name: AboutPolicy.model_validate(yaml.safe_load(text[0])) for name, text in texts.items()}
    return {
        **{folder / name / "policy.yaml": _build_policy(name, text[2], shared) for name, text in texts.items()},
        folder / "README.md": _build_readme((folder / "README.md").read_text(), about),
        charts_dir().parent / "python/src/rayhelm/data/policies.json": _format_about(about),
        charts_dir() / "platform/files/policies.json": _format_about(about),
    }


def _build_policy(name: str, body: str, shared: dict[str, str]) -> str:
    comment = f"# Generated from policies/{name}/policy.yaml.in by `make generate`. Do not edit.\n"
    words = {**shared, "name": name}
    text = SHARED_ITEM.sub(lambda found: _indent(_get_part(found["name"], words), found["indent"]), body)
    return f"{comment}{_insert_texts(text, words)}---\n{_insert_texts(shared['binding'], words)}"


def _insert_texts(text: str, shared: dict[str, str]) -> str:
    """Replace each `$(name)`, also those inside the texts that are inserted."""
    return SHARED_TEXT.sub(lambda found: _insert_texts(_get_part(found["name"], shared).rstrip("\n"), shared), text)


def _get_part(name: str, shared: dict[str, str]) -> str:
    if name not in shared:
        raise UsageError(f"policies/shared.yaml has no part {name}: {', '.join(shared)}")
    return shared[name]


def _indent(text: str, indent: str) -> str:
    return "".join(indent + line if line.strip() else line for line in text.splitlines(keepends=True))


def _build_readme(text: str, about: dict[str, AboutPolicy]) -> str:
    begin, end = TABLE
    rows = [f"| [`{name}`]({name}/README.md) | {each.description} |\n" for name, each in about.items()]
    before, _, rest = text.partition(begin)
    return f"{before}{begin}| policy | what it requires |\n|---|---|\n{''.join(rows)}{end}{rest.partition(end)[2]}"


def _format_about(about: dict[str, AboutPolicy]) -> str:
    data = {name: each.model_dump(exclude_defaults=True) for name, each in about.items()}
    return json.dumps(data, indent=1, ensure_ascii=False) + "\n"


def main(arguments: list[str]) -> int:
    """Write stale files, or with `--check` name them and return 1."""
    files = assemble_policies(charts_dir().parent / "policies")
    stale = {path: text for path, text in files.items() if not path.is_file() or path.read_text() != text}
    removed = [
        copy for copy in _list_copies() if charts_dir().parent / "policies" / copy.stem / "policy.yaml" not in files
    ]
    if "--check" in arguments:
        for path in (*stale, *removed):
            print(f"stale: {path}: run `make generate`")
        return 1 if stale or removed else 0
    for path, text in stale.items():
        path.write_text(text)
        print(f"wrote {path}")
    for path in removed:
        path.unlink()
        print(f"removed {path}")
    return 0


def _list_copies() -> list[Path]:
    """Return the chart's copies of policies, including copies of policies that were removed."""
    return sorted((charts_dir() / "platform/files/policies").glob("*.yaml"))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
