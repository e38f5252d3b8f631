# The two commands to start with are `make demo` and `make test`. Both do their own set-up, once.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

bin := .venv/bin
uv := $(shell command -v .tools/uv/bin/uv || echo uv)
scripts := .ci/run ci/release ci/set-version ci/sign-charts ci/attest ci/publish ci/sign-pushed ci/set-up ci/stage ci/run-tests ci/generate ci/host.bash ci/control-plane ci/node ci/images/build ci/images/archive ci/lint-workflows $(addprefix ci/kind/,create up down test docker node-image host.bash) benchmarks/gateway/peers benchmarks/estimates/peers benchmarks/planning/peers
testbed := PYTHONPATH=. $(bin)/python -m testbed.tools
build-node := $(testbed) etcd kube-apiserver kube-controller-manager kube-scheduler kuberay-operator kuberay && $(testbed) --group node
build-kind := $(testbed) kind kubelet kubeadm kube-proxy containerd containerd-shim-runc-v2 ctr runc host-local loopback ptp portmap coredns umoci
build-live := $(build-node) && $(testbed) prometheus prometheus-operator
fits-live-tests := ci/node check --network 10.210.0.0/16 --clusters 2 >/dev/null 2>&1
compile := $(abspath $(uv)) pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url

.PHONY: help demo test test-skipped test-kind live-programs live-images test-live test-live-short lint lint-types lint-rest prose fmt generate setup tools control-plane node verify-mutations verify-memory verify-bodies verify-keda verify-argocd verify-kind verify-release verify-diff metrics-catalog metrics-recording lock bench fit-performance bench-gateway bench-gateway-tokens bench-estimates bench-autoscaling bench-tokens bench-data-path bench-failures bench-engine bench-plan bench-admission clean

help: ## list the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-20s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: ## plan, render and serve one fleet on this computer; leaves .venv/bin/rayhelm
	@ci/set-up demo
	@$(bin)/rayhelm plan values/single-gpu --no-reasons
	@$(bin)/rayhelm up values/single-gpu --share-imports --small-model $(or $(SMALL_MODEL),default)

test: setup lint ## run all tests but those with real pods (test-live)
	@ci/run-tests tests

test-skipped: tools ## build the tools, then run the tests that the last `make test` skipped
	@ci/stage actionlint ci/lint-workflows
	@ci/run-tests tests-skipped --except-completed .cache/tests.completed

test-kind: setup ## run the cluster tests on kind (needs Docker); ci/kind/down removes the cluster
	@ci/kind/test

lint: setup ## run ruff, mypy, import-linter, shellcheck, actionlint, hadolint, yamllint and yamale, and check that generated files are current
	@$(MAKE) --no-print-directory --jobs=2 lint-types lint-rest

# With an empty cache mypy takes half a minute of one core: it runs beside the others.
lint-types:
	@ci/stage mypy $(bin)/mypy

lint-rest:
	@ci/stage ruff $(bin)/ruff check python tests testbed ci benchmarks
	@ci/stage "ruff format" $(bin)/ruff format --check python tests testbed ci benchmarks
	@ci/stage imports $(bin)/lint-imports --no-logo --cache-dir .cache/imports
	@ci/stage shellcheck $(bin)/shellcheck --external-sources $(scripts)
	@ci/stage actionlint ci/lint-workflows
	@ci/stage hadolint $(bin)/hadolint ci/images/*/Dockerfile
	@ci/stage yamllint $(bin)/yamllint --strict -c ci/charts/yamllint.yaml charts/*/Chart.yaml charts/*/values.yaml
	@ci/stage Chart.yaml $(bin)/yamale -s ci/charts/chart.yamale.yaml -p PyYAML charts/*/Chart.yaml
	@PYTHONPATH=ci ci/stage prose $(bin)/python -m prose
	@PYTHONPATH=ci ci/stage names $(bin)/python -m prose.names
	@ci/stage "generated files" ci/generate --check

prose: setup ## check the language: words, phrases, names
	@PYTHONPATH=ci $(bin)/python -m prose
	@PYTHONPATH=ci $(bin)/python -m prose.names

fmt: setup ## format the code, and fix what ruff can fix
	@$(bin)/ruff format python tests testbed ci benchmarks
	@$(bin)/ruff check --fix python tests testbed ci benchmarks

generate: setup ## write all generated files that are committed
	@ci/generate

setup: ## install .venv from all locks, helm 3 and 4, kubectl
	@ci/set-up test

tools: setup ## build what the cluster tests start, once: a control plane, KubeRay, KWOK, CRDs
	@$(testbed)
	@$(bin)/python ci/fetch_npm.py

control-plane: tools ## start a control plane with KubeRay and simulated nodes; ci/control-plane down stops it
	@ci/control-plane up

node: setup ## make this computer a Kubernetes node with real pods (Linux, root; YES=1 to not ask); ci/node down removes it
	@ci/node check
	@$(build-node)
	@ci/node up $(if $(YES),--yes)

live-programs: setup
	@if $(fits-live-tests); then $(build-live); fi

live-images: setup
	@if $(fits-live-tests); then $(build-live) && ci/images/build; fi

test-live: live-programs ## run the tests with real pods, on a node of their own (Linux, root)
	@if $(fits-live-tests); then $(testbed) --group verify-argocd; fi
	@$(bin)/pytest tests/pods -m live --junitxml .cache/tests-live.xml

test-live-short: live-programs ## run those that .ci/run runs: a fleet becomes Ready and is upgraded under load; the page of chart quickstart
	@$(bin)/pytest tests/pods -m "live and short" --junitxml .cache/tests-live.xml

verify-mutations: setup ## check that the tests notice small faults in COMMITS (default HEAD); resumes; up to an hour each
	@$(bin)/python ci/mutate.py $(or $(COMMITS),HEAD)

verify-memory: setup ## compare weights and cache of 60 shapes with those of the classes of vLLM, built without memory (2 minutes)
	@RAYHELM_ALL_SHAPES=1 $(bin)/pytest tests/serve/test_weights_against_vllm.py

verify-bodies: setup ## compare two million mutated bodies as the gateway and Python read them, and write the result; resumes
	@PYTHONPATH=tests $(bin)/python -m gateway.verify_bodies

verify-diff: tools ## make all edits of a RayService with the real operator, and random ones, and write what it did (12 minutes)
	@RAYHELM_VERIFY_DIFF=1 ci/stage "edits" $(bin)/pytest tests/cluster/test_edits.py
	@RAYHELM_VERIFY_DIFF=1 ci/stage "random edits" $(bin)/pytest tests/cluster/test_random_edits.py

verify-keda: tools ## check that KEDA scales the gateway from a real Prometheus, and write the result (build 7 minutes, once)
	@$(testbed) --group verify-keda
	@PYTHONPATH=. $(bin)/python ci/verify_keda.py

verify-argocd: tools ## run a real Argo CD on the test control plane, and write what it did (20 minutes; build 6 minutes, once)
	@$(testbed) --group verify-argocd
	@PYTHONPATH=.:tests $(bin)/python -m gitops.verification

verify-kind: tools ## install a fleet on a new cluster of kind, edit and remove it, and write the result (Linux, root; 20 minutes; build 20 minutes, once)
	@$(build-kind)
	@ci/images/build
	@PYTHONPATH=.:tests $(bin)/python ci/verify_kind.py

verify-release: tools ## publish two releases to a registry and an index on this computer, install and verify them, and write the result (build 10 minutes, once)
	@$(testbed) --group verify-release
	@PYTHONPATH=. $(bin)/python ci/verify_release.py

metrics-catalog: setup ## compare the metric catalog with a live endpoint under load, and write what changed (4 minutes)
	@$(testbed) prometheus
	@PYTHONPATH=. $(bin)/python -m testbed.live_metrics.catalog
	@ci/generate

metrics-recording: setup ## record a live endpoint under load for the replay of rules and the pictures of dashboards (30 minutes)
	@$(testbed) prometheus
	@PYTHONPATH=. $(bin)/python -m testbed.live_metrics.recording
	@PYTHONPATH=. $(bin)/python -m ci.pictures -o docs/images/dashboards

lock: setup ## resolve requirements/*.in into the locks
	@cd requirements && for name in uv go build core dev doctor bench estimates cp-sat; do $(compile) $$name.in -o $$name.txt; done
	@cd requirements && $(compile) --no-deps tools.in -o tools.txt
	@cd requirements && $(compile) --overrides serve.overrides --excludes serve.excludes serve.in -o serve.txt

bench: setup ## measure the speed of the commands on this computer
	@$(bin)/python ci/bench.py

fit-performance: setup ## fit the speed model to the measured rows, and write coefficients, intervals and errors
	@PYTHONPATH=benchmarks $(bin)/python -m performance

bench-estimates: setup ## compare the estimates of speed with those of AIConfigurator on the measured rows (30 minutes)
	@benchmarks/estimates/peers
	@PYTHONPATH=benchmarks $(bin)/python -m estimates --write benchmarks/estimates/result.json

bench-engine: ## start vLLM with random weights on the GPU that GPU names (its id in the catalog), and compare memory and speed
	@PYTHONPATH=benchmarks:python/src $(or $(PYTHON),$(bin)/python) -m engine --gpu $(GPU) --write benchmarks/engine/result.json

bench-plan: setup ## measure the planner on large fleets, its gap to the optimum, and what small edits move (15 minutes)
	@benchmarks/planning/peers
	@PYTHONPATH=benchmarks $(bin)/python -m planning --write benchmarks/planning/result.json

bench-gateway: setup ## compare the gateway with vllm-router and LiteLLM (15 minutes)
	@$(testbed) bombardier
	@benchmarks/gateway/peers
	@PYTHONPATH=benchmarks:. $(bin)/python -m gateway --write benchmarks/gateway/result.json

bench-gateway-tokens: setup ## compare tokens of an identity provider with API keys at the gateway (3 minutes)
	@$(testbed) bombardier
	@PYTHONPATH=benchmarks:. $(bin)/python -m gateway.beside_keys --write benchmarks/gateway/result-tokens.json

bench-autoscaling: setup ## compare Ray's scaling rule with ours on a simulated hour of arrivals (5 minutes)
	@PYTHONPATH=benchmarks $(bin)/python -m autoscaling --write benchmarks/autoscaling/result.json

bench-tokens: setup ## measure what counting tokens by tenant costs (6 minutes)
	@$(testbed) prometheus
	@PYTHONPATH=benchmarks:. $(bin)/python -m token_counting --write benchmarks/token_counting/result.json

bench-data-path: setup ## compare the ways of a request inside Ray, and vLLM alone (12 minutes)
	@PYTHONPATH=benchmarks:. $(bin)/python -m data_path --write benchmarks/data_path/result.json

bench-admission: tools ## compare the latency of admission with and without the policies (2 minutes)
	@PYTHONPATH=benchmarks:. $(bin)/python -m admission --write benchmarks/admission/result.json

bench-failures: setup ## count failed requests while pods are killed and services changed, on the node of `make node`
	@ci/images/build && for image in ray:cpu ray:haproxy ray:redis; do ci/node load $$image; done
	@PYTHONPATH=benchmarks $(bin)/python -m failures --write benchmarks/failures/result.json

clean: ## remove caches and build outputs, but not .venv and .tools
	@rm -rf .cache .mypy_cache .ruff_cache build dist python/dist
	@find python tests testbed ci benchmarks -name __pycache__ -prune -exec rm -rf {} +
