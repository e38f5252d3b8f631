"""Fourth round: the page has the attempts of each area, and what went through."""

from pathlib import Path

from attacks.kit.fourth_round import AREAS, read_attempts

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")


def test_page_has_the_attempts_of_each_area() -> None:
    for area in AREAS:
        attempts = read_attempts(area)
        held = sum(each.held for each in attempts)
        assert f"| [`{area}`](fourth_round/{area}.yaml) | {len(attempts)} | {held} |" in README


def test_page_names_every_attempt_that_went_through() -> None:
    open_ones = [each.name for area in AREAS for each in read_attempts(area) if not each.held]
    assert [name for name in open_ones if f"`{name}`" not in README] == []
