"""CRDs out of Go modules: only what has the pinned checksum, and only CRDs."""

from pathlib import Path

import pytest

from rayhelm.errors import MissingError, UsageError
from shared.small_checkout import VERSION, SmallCheckout
from testbed.tools.__main__ import main
from testbed.tools.crds import crd_files

CRD = "# a comment\nkind: CustomResourceDefinition\nspec: {enum: [=]}\n"


@pytest.fixture
def small(tmp_path: Path) -> SmallCheckout:
    small = SmallCheckout.open(tmp_path)
    folder = tmp_path / "module" / "crds"
    folder.mkdir(parents=True)
    (folder / "b.yaml").write_text(CRD)
    (folder / "a.yaml").write_text(CRD)
    (folder / "kustomization.yaml").write_text("kind: Kustomization\nresources: [a.yaml]\n")
    (folder / "README.md").write_text("kind: CustomResourceDefinition\n")
    serves(small, "h1:good=")
    return small


def serves(small: SmallCheckout, checksum: str) -> None:
    small.go_downloads(f"""echo '{{"Dir": "{small.root}/module", "Sum": "{checksum}"}}'""")


def test_only_crds_are_taken_out_of_the_module(small: SmallCheckout) -> None:
    assert main(["delta"], small.checkout) == 0
    home = small.root / ".tools" / "crds" / "delta-3.4.5"
    assert crd_files("delta", checkout=small.checkout) == [home / "a.yaml", home / "b.yaml"]
    assert crd_files("delta", "3.4.5", small.checkout) == [home / "a.yaml", home / "b.yaml"]
    assert home.joinpath("a.yaml").read_text() == CRD
    assert small.go_log[-1] == "mod download -json example.org/delta@v3.4.5"


def test_what_is_here_is_not_fetched_again(small: SmallCheckout) -> None:
    assert main(["delta"], small.checkout) == 0
    asked = len(small.go_log)
    assert main(["delta"], small.checkout) == 0
    assert len(small.go_log) == asked


def test_module_with_another_checksum_is_refused_and_not_kept(
    small: SmallCheckout, capsys: pytest.CaptureFixture[str]
) -> None:
    serves(small, "h1:evil=")
    assert main(["delta"], small.checkout) == 3
    assert "has the sum h1:evil=, not h1:good=" in capsys.readouterr().err
    assert not list((small.root / ".tools" / "crds").iterdir())
    with pytest.raises(MissingError):
        crd_files("delta", checkout=small.checkout)


def test_bundle_of_a_tool_has_the_version_and_the_checksum_of_that_tool(small: SmallCheckout) -> None:
    serves(small, "h1:alpha=")
    assert main(["alphas"], small.checkout) == 0
    assert small.go_log[-1] == f"mod download -json example.org/alpha@v{VERSION}"
    assert crd_files("alphas", checkout=small.checkout)
    serves(small, "h1:good=")
    assert main(["delta"], small.checkout) == 0


def test_unavailable_module_is_reported_with_its_cause(
    small: SmallCheckout, capsys: pytest.CaptureFixture[str]
) -> None:
    small.go_downloads("""echo '{"Error": "reading https://mirror.example: 403 Forbidden"}'; exit 1""")
    assert main(["delta"], small.checkout) == 3
    error = capsys.readouterr().err
    assert "the CRDs of delta 3.4.5 could not be fetched: a Go module could not be downloaded" in error
    assert not small.unfinished()


def test_go_that_says_nothing_is_reported(small: SmallCheckout, capsys: pytest.CaptureFixture[str]) -> None:
    small.go_downloads("echo no such thing >&2; exit 1")
    assert main(["delta"], small.checkout) == 3
    assert "no such thing\nthe CRDs of delta 3.4.5 could not be fetched" in capsys.readouterr().err


def test_module_without_crds_in_its_folder_is_an_error(
    small: SmallCheckout, capsys: pytest.CaptureFixture[str]
) -> None:
    for path in (small.root / "module" / "crds").glob("?.yaml"):
        path.unlink()
    assert main(["delta"], small.checkout) == 3
    assert "has no CRDs in crds" in capsys.readouterr().err


def test_killed_fetch_is_removed_and_repeated(small: SmallCheckout) -> None:
    half = small.root / ".tools" / "crds" / ".fetching-half"
    half.mkdir(parents=True)
    (half / "a.yaml").write_text(CRD)
    with pytest.raises(MissingError, match=r"(?s)the CRDs of delta 3\.4\.5 are missing.*make tools"):
        crd_files("delta", checkout=small.checkout)
    assert main(["delta"], small.checkout) == 0
    assert not half.exists()


def test_crds_with_another_pinned_checksum_are_fetched_again(small: SmallCheckout) -> None:
    assert main(["delta"], small.checkout) == 0
    data = small.root / "ci" / "tools" / "tools.yaml"
    data.write_text(data.read_text().replace("h1:good=", "h1:better="))
    with pytest.raises(MissingError):
        crd_files("delta", checkout=small.checkout)
    serves(small, "h1:better=")
    assert main(["delta"], small.checkout) == 0
    assert crd_files("delta", checkout=small.checkout)


def test_unknown_bundle_is_refused_with_known_ones(small: SmallCheckout) -> None:
    with pytest.raises(UsageError, match="unknown CRDs cups; known: delta, alphas"):
        crd_files("cups", checkout=small.checkout)


# -- versions that no module serves ------------------------------------------------------------------------------------


def test_another_version_comes_from_the_folder_that_the_variable_names(small: SmallCheckout) -> None:
    folder = small.root / "given" / "delta-4.0.0"
    folder.mkdir(parents=True)
    (folder / "c.yaml").write_text(CRD)
    small.env["RAYHELM_CRDS"] = str(small.root / "given")
    assert crd_files("delta", "4.0.0", small.checkout) == [folder / "c.yaml"]


def test_another_version_without_the_variable_is_missing_by_its_name(small: SmallCheckout) -> None:
    with pytest.raises(MissingError, match=r"(?s)delta 4\.0\.0.*RAYHELM_CRDS=FOLDER .*delta-4\.0\.0/\*\.yaml"):
        crd_files("delta", "4.0.0", small.checkout)


def test_variable_whose_folder_lacks_the_version_is_an_error(small: SmallCheckout) -> None:
    small.env["RAYHELM_CRDS"] = str(small.root)
    with pytest.raises(MissingError, match=r"has no delta-4\.0\.0/\*\.yaml"):
        crd_files("delta", "4.0.0", small.checkout)
