"""Find and builds what the cluster tests need: programs from pinned Go modules, and the CRDs that travel in them.

catalog  ci/tools/tools.yaml and the go.mod beside it, as typed records
find       a variable, PATH, KUBEBUILDER_ASSETS, what was built
build      `make tools`: one `go build` after the other, under a temporary name
toolchain  the Go that builds
crds       custom resource definitions out of Go modules
"""

from testbed.tools.crds import crd_files
from testbed.tools.find import Found, found, missing, program

__all__ = ["Found", "crd_files", "found", "missing", "program"]
