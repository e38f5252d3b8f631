"""The commands and files of pages that a live test runs: their extraction, and the texts that it replaces."""

from pathlib import Path

import pytest
import yaml
from pydantic import ValidationError

from shared.page_commands import Substitution, list_commands, list_files, read_substitutions, substitute

ROOT = Path(__file__).parents[2]
FILE = ROOT / "tests/pods/substitutions.yaml"
PAGE = """
# Install

```sh
# the namespace of the service
kubectl create namespace llm
key=sk-change-me   # yours
kubectl create secret generic keys \\
  --from-literal=keys="$(printf %s "$key" | sha256sum | cut -d' ' -f1) first"
```

```yaml
kind: Namespace
```

1. In a list:

   ```sh
   for name in a b; do
     echo $name
   done
   ```

   ```yaml
   kind: Secret
   metadata:
     name: keys
   ```
"""


def of_page(text: str, run: str) -> Substitution:
    return Substitution(page="docs/page.md", text=text, run=run, reason="no registry")


def test_page_commands_are_the_statements_of_its_shell_blocks() -> None:
    namespace, key, secret, loop = list_commands(PAGE)
    assert namespace == "kubectl create namespace llm"
    assert key == "key=sk-change-me   # yours"
    assert secret.startswith("kubectl create secret generic keys \\\n  --from-literal=")
    assert loop.splitlines()[0] == "for name in a b; do"
    assert loop.splitlines()[-1].strip() == "done"


def test_page_files_are_its_yaml_blocks_without_their_indentation() -> None:
    assert list_files(PAGE) == ["kind: Namespace\n", "kind: Secret\nmetadata:\n  name: keys\n"]


def test_block_that_bash_cannot_parse_is_refused() -> None:
    with pytest.raises(ValueError, match="bash cannot parse: echo"):
        list_commands('```sh\necho "open\n```\n')


def test_command_without_a_substitution_runs_as_written() -> None:
    first, second = substitute(["helm repo add x y", "kubectl get pods"], [of_page("helm repo add x y", "")])
    assert (first.run, first.is_as_written) == ("", False)
    assert (second.run, second.is_as_written) == ("kubectl get pods", True)


def test_substitutions_of_one_command_add_up() -> None:
    (command,) = substitute(["helm install a oci://b --values c"], [of_page("oci://b", "b"), of_page("c", "d")])
    assert command.run == "helm install a b --values d"


def test_substitution_that_nothing_contains_is_refused() -> None:
    with pytest.raises(ValueError, match=r"docs/page.md: nothing contains 'oci://b' \(no registry\)"):
        substitute(["helm install a oci://c"], [of_page("oci://b", "b")])


def test_substitution_without_a_reason_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "substitutions.yaml"
    file.write_text(yaml.safe_dump([{"page": "docs/page.md", "text": "a", "run": "b", "reason": ""}]))
    with pytest.raises(ValidationError, match="reason"):
        read_substitutions(file)


@pytest.mark.parametrize("page", sorted({each.page for each in read_substitutions(FILE)}))
def test_substitutions_of_the_live_test_match_the_page(page: str) -> None:
    """Without a node too: a changed page is noticed at once."""
    text = (ROOT / page).read_text()
    assert substitute(
        [*list_commands(text), *list_files(text)], (each for each in read_substitutions(FILE) if each.page == page)
    )
