"""The example of docs/tasks/serve-your-own-application.md: its module answers, and its fleet runs it."""

import importlib
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest
import yaml

from rayhelm.check.lint.fleet import check_fleet
from rayhelm.fleet.load import load_fleet
from rayhelm.planner.planner import plan_fleet

pytestmark = pytest.mark.serve

PAGE = Path(__file__).parents[2] / "docs/tasks/serve-your-own-application.md"
BLOCKS = dict(re.findall(r"^```(python|yaml)\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the files of the page; Python imports from it."""
    (tmp_path / "similarity.py").write_text(BLOCKS["python"])
    (tmp_path / "fleet.yaml").write_text(BLOCKS["yaml"])
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "similarity", raising=False)
    return tmp_path


def write_tiny_bert(folder: Path) -> Path:
    from transformers import BertConfig, BertModel, BertTokenizer

    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "cat", "sleeps", "."]
    (folder / "vocab.txt").write_text("\n".join(words))
    BertTokenizer(str(folder / "vocab.txt")).save_pretrained(folder / "model")
    sizes = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 64}
    BertModel(BertConfig(vocab_size=len(words), **sizes)).save_pretrained(folder / "model")
    return folder / "model"


def test_application_of_the_page_answers_with_the_arguments_of_the_plan(folder: Path) -> None:
    from ray import serve

    module: ModuleType = importlib.import_module("similarity")
    arguments = {"model": "similarity", "source": str(write_tiny_bert(folder)), "tokens": 256}
    handle = serve.run(module.build_app(arguments), _local_testing_mode=True)
    pair = module.Pair(model="similarity", texts=("A cat sleeps.", "A cat sleeps."))
    answer = handle.compare.remote(pair).result()
    assert answer == {"model": "similarity", "similarity": pytest.approx(1.0, abs=1e-5)}


def test_fleet_of_the_page_names_module_deployment_and_paths(folder: Path) -> None:
    written = yaml.safe_load(BLOCKS["yaml"])["models"]["similarity"]["application"]
    module: ModuleType = importlib.import_module(written["importPath"].partition(":")[0])
    assert written["deployment"] == module.Similarity.name
    assert {route.path for route in module.api.routes} >= set(written["paths"])
    (model,) = plan_fleet(load_fleet(folder / "fleet.yaml")).models.values()
    assert (model.gpu_fraction, model.replicas) == (0.3, 1)


def test_fleet_of_the_page_passes_lint_beside_its_module(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(folder))
    imported, read = (check_fleet(folder / "fleet.yaml", ask_ray=ask_ray) for ask_ray in (True, False))
    assert imported.problems == read.problems == []
    (skipped,) = {each.what for each in read.not_checked} - {each.what for each in imported.not_checked}
    assert "`similarity:build_app` was not imported" in skipped


def test_lint_refuses_a_module_that_cannot_be_imported(folder: Path) -> None:
    fleet = folder / "fleet.yaml"
    fleet.write_text(BLOCKS["yaml"].replace("similarity:build_app", "missing:build_app"))
    (problem,) = check_fleet(fleet, ask_ray=True).problems
    assert "missing:build_app cannot be imported" in problem.message
