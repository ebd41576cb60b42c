.DEFAULT_GOAL := help
SHELL := bash

GOLANGCI := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
BENCHSTAT := golang.org/x/perf/cmd/benchstat@v0.0.0-20260908200009-22c9c6c9d4da
HELM := helm.sh/helm/v4/cmd/helm@v4.3.2
GOVULNCHECK := golang.org/x/vuln/cmd/govulncheck@v1.9.0
FUZZTIME ?= 10m
FUZZ ?= .*
BIN := bin/stopgate
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)

# What the demo needs beside Go, and the tests for the race detector, as
# program:package,package.
SYSTEM := bwrap:bubblewrap jq:jq python3:python3 bash:bash
test: SYSTEM += gcc:gcc,libc6-dev strace:strace
# Debian keeps PostgreSQL's programs out of the path.
test chaos: SYSTEM += $(lastword initdb $(wildcard /usr/lib/postgresql/*/bin/initdb)):postgresql

.PHONY: help
help: ## List what this Makefile can do
	@awk -F':.*## ' '/^[a-z][a-z0-9-]*:.*## / {printf "  make %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: system
system: # Install the system programs that are missing, else say which to install
	@missing=""; for p in $(SYSTEM); do command -v "$${p%%:*}" >/dev/null || { p="$${p##*:}"; missing="$$missing $${p//,/ }"; }; done; \
	if [ -n "$$missing" ]; then \
	  if command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ]; then \
	    echo "installing$$missing …"; apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq $$missing >/dev/null; \
	  elif command -v apt-get >/dev/null && command -v sudo >/dev/null && sudo -n true 2>/dev/null; then \
	    echo "installing$$missing …"; sudo apt-get update -qq && sudo DEBIAN_FRONTEND=noninteractive apt-get install -y -qq $$missing >/dev/null; \
	  else echo "please install:$$missing (Debian: sudo apt-get install$$missing)"; exit 1; fi; fi

.PHONY: build
build: ## Build bin/stopgate, and bin/stopgate-hook beside it
	@echo "building $(BIN) (the first time takes a few minutes: it compiles SQLite and the model SDKs) …"
	@go build -trimpath -ldflags "-s -w -X main.version=$(VERSION)" -o $(BIN) ./cmd/stopgate
	@go build -trimpath -ldflags "-s -w -X main.version=$(VERSION)" -o $(BIN)-hook ./cmd/stopgate-hook
	@echo "built $(BIN) and $(BIN)-hook"

.PHONY: demo
demo: system build ## See a final answer refused, corrected and allowed
	@$(BIN) demo

# The race detector has each of the tests' many processes sleep a second before it
# ends; GORACE says not to.
.PHONY: test
test: system ## Run every test under the race detector
	@echo "running every test under the race detector: about five minutes on two idle cores …"
	go vet ./...
	GORACE=atexit_sleep_ms=0 go test -race -shuffle=on -timeout 25m ./...

.PHONY: e2e
e2e: ## Gate the real agents (from npm, 650 MB), without a network
	@bash e2e/run

.PHONY: lint
lint: ## gofmt, go mod tidy, golangci-lint
	@test -z "$$(gofmt -l .)" || { gofmt -l .; echo "run: make fmt"; exit 1; }
	go mod tidy -diff
	go run $(GOLANGCI) run --allow-parallel-runners --build-tags e2e ./...

.PHONY: deploy
deploy: SYSTEM := promtool:prometheus
deploy: system ## Hold deploy/ to Helm's and Prometheus' own tools
	@mkdir -p bin; command -v helm >/dev/null || test -x bin/helm || { echo "building helm …"; GOBIN="$(CURDIR)/bin" go install $(HELM); }
	PATH="$(CURDIR)/bin:$$PATH" DEPLOY_TOOLS=required go test ./cmd/stopgate -run 'Chart|Manifests|Alerts'

# Its exit code is 3 for findings; 1 is an error of its own, as where its database
# is out of reach.
.PHONY: vulnerabilities
vulnerabilities: ## Look for known vulnerabilities in what is linked
	@mkdir -p bin; GOBIN="$(CURDIR)/bin" go install $(GOVULNCHECK); \
	bin/govulncheck ./... || { code=$$?; [ $$code != 3 ] || exit 3; echo "not checked: vuln.go.dev cannot be reached from here"; }

.PHONY: fmt
fmt: ## Format the code
	gofmt -w .

.PHONY: update
update: ## Rewrite the golden files from what the code does now
	go test $$(grep -rl --include='*_test.go' 'flag.Bool("update"' . | xargs -n1 dirname | sort -u) -update

# Go's fuzzer now and then calls the end of its own time a failure, without an
# input that fails: that is none.
.PHONY: fuzz
fuzz: ## Run every fuzz target, or those that FUZZ matches, for FUZZTIME (10m)
	@set -e -o pipefail; mkdir -p bin; for pkg in $$(go list ./...); do \
	  for f in $$(go test -list '^Fuzz' $$pkg | grep -E '^Fuzz($(FUZZ))$$' || true); do \
	    echo "fuzz $$pkg $$f $(FUZZTIME)"; go test -run '^$$' -fuzz "^$$f$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 1x $$pkg 2>&1 | tee bin/fuzz.log || \
	      { grep -q '^ *context deadline exceeded$$' bin/fuzz.log && ! grep -q 'Failing input' bin/fuzz.log; } || exit 1; done; done

.PHONY: chaos
chaos: system ## Load real servers, kill them, check what is stored (docs/proof.md); ROUNDS=1000 SEED= FIRST=
	@echo "building the server with a clock that can be moved (a few minutes), then $(or $(ROUNDS),1000) rounds of about two seconds …"
	go test -run '^TestChaos$$' -v -timeout 0 ./chaos -chaos.clock -chaos.rounds $(or $(ROUNDS),1000) -chaos.seed $(or $(SEED),0) -chaos.first $(or $(FIRST),0)

.PHONY: bench
bench: ## Run the benchmarks (docs/benchmarks.md); BASE=rev compares with a revision
	@mkdir -p bin; go test -run '^$$' -bench . -benchmem -count $(or $(COUNT),1) ./... | tee bin/bench.txt
	@if [ -n "$(BASE)" ]; then \
	  rm -rf bin/base && git worktree add -f bin/base "$(BASE)" && \
	  (cd bin/base && go test -run '^$$' -bench . -benchmem -count $(or $(COUNT),1) ./...) > bin/bench-base.txt; \
	  git worktree remove --force bin/base; go run $(BENCHSTAT) bin/bench-base.txt bin/bench.txt; fi

# A module of its own, so that OPA is no dependency; building it takes minutes once.
.PHONY: bench-opa
bench-opa: system ## Ask a rule hook, a command hook and OPA's server the same (docs/benchmarks.md)
	@echo "building stopgate and OPA (a few minutes the first time) …"
	cd bench/opa && go vet . && go test -run '^$$' -bench . -benchtime $(or $(TURNS),20)x -timeout 20m

# Both search 64 MiB, as what is stored did. ripgrep is what GrepSearch is held to.
bench-short bench-renew: export STOPGATE_BENCH_MIB := 64
bench-short bench-renew: SYSTEM := rg:ripgrep
.PHONY: bench-short
bench-short: system ## Fail if a ratio in bench/ratios.txt has fallen by more than a quarter
	@echo "measuring what bench/ratios.txt holds: about a minute and a half on two idle cores …"
	@go run ./bench short

.PHONY: bench-renew
bench-renew: system ## Measure those ratios eight times and store them (some ten minutes)
	@go run ./bench renew

.PHONY: bench-report
bench-report: SYSTEM += rg:ripgrep
bench-report: system ## Measure anew what docs/charts.md shows (some ten minutes), and draw it
	@mkdir -p docs/charts; go run ./bench measure && go run ./bench draw

.PHONY: ci
ci: ## Everything that .ci/run does
	bash .ci/run
