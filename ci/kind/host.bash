# What the scripts of this folder share. Sourced by them, in the root of the checkout.

# shellcheck disable=SC2034  # used by those who source this
name=${KIND_NAME:-kind}  # of the testbed: other clusters can run beside it
cluster=rayhelm-$name
state=$PWD/.state/kind/$name
kubeconfig=$state/kubeconfig
kind=${KIND:-$(command -v kind || echo ".tools/go/kind/$(<ci/kind/version)/kind")}

lacks=()

lack() { lacks+=("$1"$'\n'"      $2"); }

# Exits 3 with all that is missing.
check_host() {
    local pinned
    pinned=$(<ci/kind/version)
    [ -x .venv/bin/python ] && [ -x .tools/bin/kubectl ] || lack "the set-up of this checkout" "make setup"
    if ! command -v docker >/dev/null; then
        lack "Docker" "docs.docker.com/engine/install; or ci/kind/docker run ci/kind/up, after apt-get install docker.io iptables"
    elif ! timeout 60 docker info >/dev/null 2>&1; then
        lack "a Docker daemon that answers \`docker info\`" "start it, or let this user reach its socket"
    fi
    command -v "$kind" >/dev/null ||
        lack "kind $pinned" "PYTHONPATH=. .venv/bin/python -m testbed.tools --group kind; or KIND=path where it is not on PATH"
    if [ "${#lacks[@]}" -gt 0 ]; then
        echo "error: kind needs from this computer:" >&2
        printf '  - %s\n' "${lacks[@]}" >&2
        exit 3
    fi
    [[ $("$kind" version) == "kind v$pinned "* ]] ||
        echo "note: this is $("$kind" version); $pinned is the release that the node image was made for" >&2
}

# Does nothing where the cluster answers.
create() {
    mkdir -p "$state" || return
    if "$kind" get clusters 2>/dev/null | grep -xF "$cluster" >/dev/null; then
        "$kind" export kubeconfig --name "$cluster" --kubeconfig "$kubeconfig" 2>/dev/null &&
            kubectl get --raw=/readyz --request-timeout=15s >/dev/null 2>&1 && return
        echo "    the one that is there does not answer: making it again"
        "$kind" delete cluster --name "$cluster" --kubeconfig "$kubeconfig" || return
    fi
    "$kind" create cluster --name "$cluster" --config ci/kind/cluster.yaml ${KIND_IMAGE:+--image "$KIND_IMAGE"} \
        --kubeconfig "$kubeconfig" --wait 5m
}

kubectl() { .tools/bin/kubectl --kubeconfig "$kubeconfig" --cache-dir "$state/cache" "$@"; }
