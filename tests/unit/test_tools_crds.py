"""CRDs out of Go modules: only what has the pinned checksum, and only CRDs."""

from pathlib import Path

import pytest

from rayhelm.errors import MissingError, UsageError
from testbed.tools.__main__ import main
from testbed.tools.crds import crd_files
from unit.tool_shop import VERSION, Shop

CRD = "# a comment\nkind: CustomResourceDefinition\nspec: {enum: [=]}\n"


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    shop = Shop.open(tmp_path)
    folder = tmp_path / "module" / "crds"
    folder.mkdir(parents=True)
    (folder / "b.yaml").write_text(CRD)
    (folder / "a.yaml").write_text(CRD)
    (folder / "kustomization.yaml").write_text("kind: Kustomization\nresources: [a.yaml]\n")
    (folder / "README.md").write_text("kind: CustomResourceDefinition\n")
    serves(shop, "h1:good=")
    return shop


def serves(shop: Shop, checksum: str) -> None:
    shop.go_downloads(f"""echo '{{"Dir": "{shop.root}/module", "Sum": "{checksum}"}}'""")


def test_only_crds_are_taken_out_of_the_module(shop: Shop) -> None:
    assert main(["plates"], shop.site) == 0
    home = shop.root / ".tools" / "crds" / "plates-3.4.5"
    assert crd_files("plates", site=shop.site) == [home / "a.yaml", home / "b.yaml"]
    assert crd_files("plates", "3.4.5", shop.site) == [home / "a.yaml", home / "b.yaml"]
    assert home.joinpath("a.yaml").read_text() == CRD
    assert shop.go_log[-1] == "mod download -json example.org/plates@v3.4.5"


def test_what_is_here_is_not_fetched_again(shop: Shop) -> None:
    assert main(["plates"], shop.site) == 0
    asked = len(shop.go_log)
    assert main(["plates"], shop.site) == 0
    assert len(shop.go_log) == asked


def test_a_module_with_another_checksum_is_refused_and_nothing_of_it_is_kept(
    shop: Shop, capsys: pytest.CaptureFixture[str]
) -> None:
    serves(shop, "h1:evil=")
    assert main(["plates"], shop.site) == 3
    assert "has the sum h1:evil=, not h1:good=" in capsys.readouterr().err
    assert not list((shop.root / ".tools" / "crds").iterdir())
    with pytest.raises(MissingError):
        crd_files("plates", site=shop.site)


def test_a_bundle_of_a_tool_has_the_version_and_the_checksum_of_that_tool(shop: Shop) -> None:
    serves(shop, "h1:oven=")
    assert main(["ovens"], shop.site) == 0
    assert shop.go_log[-1] == f"mod download -json example.org/oven@v{VERSION}"
    assert crd_files("ovens", site=shop.site)
    serves(shop, "h1:good=")
    assert main(["plates"], shop.site) == 0


def test_a_module_that_is_not_served_is_told_with_its_cause(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    shop.go_downloads("""echo '{"Error": "reading https://mirror.example: 403 Forbidden"}'; exit 1""")
    assert main(["plates"], shop.site) == 3
    error = capsys.readouterr().err
    assert "the CRDs of plates 3.4.5 could not be fetched: a Go module could not be downloaded" in error
    assert not shop.unfinished()


def test_go_that_says_nothing_is_told(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    shop.go_downloads("echo no such thing >&2; exit 1")
    assert main(["plates"], shop.site) == 3
    assert "no such thing\nthe CRDs of plates 3.4.5 could not be fetched" in capsys.readouterr().err


def test_a_module_without_crds_in_its_folder_is_an_error(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    for path in (shop.root / "module" / "crds").glob("?.yaml"):
        path.unlink()
    assert main(["plates"], shop.site) == 3
    assert "has no CRDs in crds" in capsys.readouterr().err


def test_a_fetch_that_was_killed_does_not_count_and_is_cleared_up(shop: Shop) -> None:
    half = shop.root / ".tools" / "crds" / ".fetching-half"
    half.mkdir(parents=True)
    (half / "a.yaml").write_text(CRD)
    with pytest.raises(MissingError, match=r"(?s)the CRDs of plates 3\.4\.5 are not here.*make tools"):
        crd_files("plates", site=shop.site)
    assert main(["plates"], shop.site) == 0
    assert not half.exists()


def test_a_checksum_that_was_pinned_anew_is_fetched_anew(shop: Shop) -> None:
    assert main(["plates"], shop.site) == 0
    data = shop.root / "ci" / "tools" / "tools.yaml"
    data.write_text(data.read_text().replace("h1:good=", "h1:better="))
    with pytest.raises(MissingError):
        crd_files("plates", site=shop.site)
    serves(shop, "h1:better=")
    assert main(["plates"], shop.site) == 0
    assert crd_files("plates", site=shop.site)


def test_an_unknown_bundle_is_refused_with_those_that_there_are(shop: Shop) -> None:
    with pytest.raises(UsageError, match="no CRDs cups; there are plates, ovens"):
        crd_files("cups", site=shop.site)


# -- versions that no module serves ------------------------------------------------------------------------------------


def test_another_version_comes_from_the_folder_that_the_variable_names(shop: Shop) -> None:
    folder = shop.root / "given" / "plates-4.0.0"
    folder.mkdir(parents=True)
    (folder / "c.yaml").write_text(CRD)
    shop.env["RAYHELM_CRDS"] = str(shop.root / "given")
    assert crd_files("plates", "4.0.0", shop.site) == [folder / "c.yaml"]


def test_another_version_without_the_variable_is_missing_by_its_name(shop: Shop) -> None:
    with pytest.raises(MissingError, match=r"(?s)plates 4\.0\.0 .*RAYHELM_CRDS=folder, with plates-4\.0\.0/\*\.yaml"):
        crd_files("plates", "4.0.0", shop.site)


def test_a_variable_whose_folder_lacks_the_version_is_an_error(shop: Shop) -> None:
    shop.env["RAYHELM_CRDS"] = str(shop.root)
    with pytest.raises(MissingError, match=r"has no plates-4\.0\.0/\*\.yaml"):
        crd_files("plates", "4.0.0", shop.site)
