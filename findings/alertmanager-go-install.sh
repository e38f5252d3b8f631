#!/usr/bin/env bash
# Alertmanager: `go install` of a release from its Go module.
#
# Software: github.com/prometheus/alertmanager v0.32.1.
# A good guess: the module has all that its program embeds, as those of amtool and of most Go programs have, so that
# `go install .../cmd/alertmanager@v0.32.1` builds it.
# What happens: the module has no `ui/app/dist`, the web pages that its own build makes before, so the program does not
# build: "pattern app/dist: no matching files found". amtool of the same module does not import them.
# Why it matters: a test that wants the real Alertmanager has to build from Git with npm, take a binary, or put a page there.
set -euo pipefail
command -v go >/dev/null || { echo "needs go" >&2; exit 3; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
export GOPATH="$folder/go" GOCACHE="$folder/cache" GOFLAGS=-modcacherw
version=v0.32.1

if GOBIN="$folder/bin" go install "github.com/prometheus/alertmanager/cmd/alertmanager@$version" 2>errors; then
    echo "changed: it builds" >&2
    exit 1
fi
grep -F "ui/web.go" errors | grep -F "pattern app/dist: no matching files found"

go mod init example.com/reads-it 2>/dev/null
go get "github.com/prometheus/alertmanager@$version" 2>/dev/null
pages=github.com/prometheus/alertmanager/ui
for program in alertmanager amtool; do
    imports=$(go list -mod=mod -e -deps "github.com/prometheus/alertmanager/cmd/$program" 2>/dev/null | grep -cx "$pages" || true)
    echo "$program imports the pages: $imports"
    [ "$imports" = "$([ "$program" = alertmanager ] && echo 1 || echo 0)" ] || { echo "changed: $program" >&2; exit 1; }
done
