"""Find and build the tools of the cluster tests: programs from pinned Go modules, and the CRDs in these modules.

catalog    ci/tools/tools.yaml and the go.mod beside it, as typed records
find       a variable, PATH, KUBEBUILDER_ASSETS, built programs
build      `make tools`: one `go build` after the other, under a temporary name
toolchain  the Go toolchain
crds       custom resource definitions from Go modules
"""

from testbed.tools.crds import crd_files
from testbed.tools.find import Found, found, missing, program

__all__ = ["Found", "crd_files", "found", "missing", "program"]
