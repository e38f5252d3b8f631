"""`ci/node check|packages|up|load|down|status`."""

import sys
import time
from typing import Annotated

import typer

from rayhelm.cli.output import Format, FormatOption
from rayhelm.errors import MissingError, RayhelmError, UsageError
from rayhelm.kube.kubectl import Kubectl
from testbed.command import run, say, show
from testbed.control_plane.home import Record
from testbed.control_plane.status import State, state_of
from testbed.images.archive import layout_of
from testbed.node.down import alive, down, left_behind
from testbed.node.home import NodeHome, home
from testbed.node.host import check, packages
from testbed.node.images import give, wait_until_reported
from testbed.node.network import DEFAULT, Network
from testbed.node.running import ORDER, Node
from testbed.node.up import touches, up
from testbed.tools import program

app = typer.Typer(add_completion=False, no_args_is_help=True, help=__doc__, pretty_exceptions_enable=False)

NetworkOption = Annotated[str, typer.Option("--network", help="A private /16 that nothing here uses.")]


@app.command("check")
def check_command(
    network: NetworkOption = DEFAULT,
    clusters: Annotated[int, typer.Option(help="Ray clusters that it shall have room for.", min=0)] = 0,
) -> None:
    """Say what this computer lacks for it, and what `up` would touch; touches nothing."""
    addresses = Network.parse(network)
    if home().record() is None:
        check(home(), addresses, clusters)
    print(touches(home(), addresses))


@app.command("packages")
def packages_command() -> None:
    """Name the packages of Debian that are missing for it, and for images."""
    for name in packages():
        print(name)


@app.command("up")
def up_command(
    network: NetworkOption = DEFAULT,
    operator: Annotated[bool, typer.Option(help="Whether KubeRay's operator runs on it.")] = True,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask before this computer is touched.")] = False,
) -> None:
    """Make this computer a Kubernetes node, and return when pods can run. Linux, as root."""
    begin = time.monotonic()
    node = up(home(), Network.parse(network), operator=operator, agree=lambda text: _agree(text, yes), say=say)
    print(f"ready after {time.monotonic() - begin:.1f} s: {node.record.description}")
    print(f"export KUBECONFIG={node.home.kubeconfig}")


@app.command("load")
def load_command(
    image: Annotated[str, typer.Argument(help="One of ci/images/build, such as ray:cpu.")],
) -> None:
    """Give it an image, of which only the layers are copied that it has not; pods name it as printed."""
    place = home()
    if place.record() is None:
        raise MissingError("no node runs here", "make node")
    layout, tag = layout_of(image)
    begin = time.monotonic()
    reference = give(place, int((place.folder / "pid").read_text()), layout, tag)
    wait_until_reported(Kubectl(program("kubectl"), place.kubeconfig), reference)
    print(f"{reference}, imagePullPolicy: Never ({time.monotonic() - begin:.1f} s)")


@app.command("down")
def down_command(
    keep_images: Annotated[bool, typer.Option("--keep-images", help="For the next one.")] = False,
) -> None:
    """End it; nothing of it stays, also after a crash."""
    place = home()
    there = left_behind(place) or alive(place)
    kept = place.kept.exists() and not keep_images
    ended = down(place, say, keep_images=keep_images)
    print(f"ended: {ended} processes" if there else "no node runs here")
    if kept:
        print("the images that an earlier one had kept are gone, too")


@app.command("status")
def status_command(format: FormatOption = Format.text) -> None:
    """What runs; ends with 1 where something of it does not answer, with 3 where nothing is."""
    place = home()
    record = place.record()
    if record is None and (rest := left_behind(place)):
        raise RayhelmError(f"a node was here, and left {', '.join(rest)}: `ci/node down` takes it away")
    if record is None:
        raise MissingError("no node runs here", "make node")
    states = _states(place, record)
    show(place, record, states, format)
    if not record.complete:
        raise RayhelmError("its start did not come to its end: `up` begins again, `down` ends it")
    if ill := [state.name for state in states if state.state != "ready"]:
        raise RayhelmError(f"{', '.join(ill)} did not answer: `up` begins again")


def _states(place: NodeHome, record: Record) -> list[State]:
    node = Node(place, Network.of(record.server))
    return [state_of(node, name) for name in ORDER if name in record.parts]


def _agree(text: str, yes: bool) -> None:
    print(text, flush=True)
    if yes:
        return
    if not sys.stdin.isatty():
        raise UsageError("there is no terminal to confirm on: `ci/node up --yes`")
    if not typer.confirm("go on?"):
        raise UsageError("nothing was touched")


def main() -> None:
    run(app, "ci/node")


if __name__ == "__main__":
    main()
