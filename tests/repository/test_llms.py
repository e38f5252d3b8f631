"""`ci/llms.py` writes llms.txt from docs/README.md; `make lint` compares it."""

from pathlib import Path

import pytest

from ci import llms

ROOT = Path(__file__).parents[2]
INDEX = "# Documentation\n\n**Tasks**\n[One](one.md) ·\n[Two](two.md)\n"


def test_llms_has_sections_links_and_first_sentences(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "docs").mkdir()
    pages = {
        "README.md": "# p\n\nA **tool**. More.\n",
        "docs/README.md": INDEX,
        "docs/one.md": "<!-- Generated -->\n\n# One\n\n```sh\nno\n```\n\nSee [a\npage](x.md): it is v1.2 of `a`. No.\n",
        "docs/two.md": "# Two\n\n| a | b |\n|---|---|\n\n* no\n",
    }
    for name, text in pages.items():
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(llms, "ROOT", tmp_path)
    monkeypatch.setattr(llms, "INDEX", tmp_path / "docs/README.md")
    assert llms.main(["--check"]) == 1
    assert not (tmp_path / "llms.txt").exists()
    assert llms.main([]) == 0
    assert (tmp_path / "llms.txt").read_text().splitlines() == [
        *("# rayhelm", "", "> A tool.", "", "## Tasks", ""),
        "- [One](docs/one.md): See a page: it is v1.2 of `a`.",
        "- [Two](docs/two.md)",
    ]
    assert llms.main(["--check"]) == 0


def test_every_page_is_listed() -> None:
    listed = (ROOT / "llms.txt").read_text()
    pages = [page.relative_to(ROOT).as_posix() for page in (ROOT / "docs").rglob("*.md")]
    own = [page for page in pages if not page.startswith("docs/runbooks/") and page != "docs/README.md"]
    assert [page for page in own if f"]({page})" not in listed] == []
