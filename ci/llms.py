"""Write llms.txt, the list of pages for language models (https://llmstxt.org): `python ci/llms.py [--check]`.

Its sections and links are those of docs/README.md; each link has the first sentence of its page.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
INDEX = ROOT / "docs/README.md"
LINK = re.compile(r"\[([^\]]+)\]\(([^)]+)\)")


def main(arguments: list[str]) -> int:
    """Write the file, or with `--check` return 1 if it is stale."""
    path = ROOT / "llms.txt"
    text = "\n".join(list_lines()) + "\n"
    if path.is_file() and path.read_text() == text:
        return 0
    if "--check" in arguments:
        print("llms.txt: is stale\n    fix: make generate")
        return 1
    path.write_text(text)
    print("wrote llms.txt")
    return 0


def list_lines() -> Iterator[str]:
    yield from ("# rayhelm", "", f"> {first_sentence(ROOT / 'README.md')}")
    for section in re.split(r"^\*\*", INDEX.read_text(), flags=re.MULTILINE)[1:]:
        title, _, rest = section.partition("**")
        yield from ("", f"## {title}", "")
        for name, target in LINK.findall(rest):
            page = (INDEX.parent / target).resolve()
            about = first_sentence(page)
            yield f"- [{name}]({page.relative_to(ROOT)})" + (f": {about}" if about else "")


def first_sentence(page: Path) -> str:
    """Return the first sentence of the first paragraph, without links; empty if the page has only tables and lists."""
    text = re.sub(r"<!--.*?-->|^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    paragraphs = [" ".join(each.split()) for each in text.split("\n\n")]
    prose = next((each for each in paragraphs if re.match(r"[\w`*\[]", each) and not each.startswith("* ")), "")
    sentence = re.split(r"(?<=[.:])\s+(?=[A-Z`*\[])", LINK.sub(r"\1", prose))[0]
    return sentence.replace("**", "").rstrip(":")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
