# Everything here works on a machine with Go and make. Modules are found through go.work and programs through their cmd/
# folders, so a new service needs no line here.
SHELL := /bin/bash -o pipefail
.DEFAULT_GOAL := help

MODULES  := $(shell go list -m -f '{{.Dir}}')
PACKAGES := $(addsuffix /...,$(MODULES))
# Modules outside the workspace, because they have dependencies that no program needs: other drivers, servers for tests.
APART    := pkg/docstore/sqlitestore/moderncdriver pkg/docstore/mongostore/mongotest deploy/apitest

export CGO_ENABLED ?= 0

# nomsgpack leaves out gin's support of MessagePack, which no operation uses: 6 MB of each program, 8 MiB of its memory.
PROGRAM := -trimpath -tags nomsgpack -ldflags '-s -w'

.PHONY: help build run test test-mongo test-simulated soak bench fuzz lint fmt isolated tidy tour services run-services tour-services generate clean

help: ## Show this help
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## Build every program into bin/
	@mkdir -p bin
	go build $(PROGRAM) -o bin/idp-standalone ./deploy/standalone
	@for dir in gateway services/*/; do for cmd in $$dir/cmd/*/; do \
		[ -d "$$cmd" ] || continue; \
		(cd $$dir && go build $(PROGRAM) -o $(CURDIR)/bin/$$(basename $$cmd) ./cmd/$$(basename $$cmd)) || exit 1; \
		done; done
	@ls bin

run: build ## Start the whole platform in ./data (IDP_DATA_DIR, IDP_LISTEN)
	@bin/idp-standalone serve

run-services: services ## Start NATS, every service and the gateway as processes of their own, in ./data-services (IDP_BASE_PORT, IDP_MONGO_URI)
	@bin/tools/run-services

services: build ## Build every program, nats-server and run-services
	@go build -C deploy/standalone -trimpath -ldflags '-s -w' -o $(CURDIR)/bin/nats-server github.com/nats-io/nats-server/v2
	@go build -trimpath -o bin/tools/ ./deploy/standalone/run-services

# The race detector leaves SQLite out: only its own package touches its memory, and tests would take twice as long.
RACE := -race -gcflags='github.com/ncruces/...=-race=false'

test: ## Run all tests, with the race detector where a C compiler is there for it
	@if command -v $${CC:-gcc} >/dev/null 2>&1; then echo "with the race detector"; CGO_ENABLED=1 go test $(RACE) -timeout 20m $(PACKAGES); \
	else echo "without the race detector: it needs a C compiler"; go test -timeout 20m $(PACKAGES); fi
	@for module in $(APART); do (cd $$module && GOWORK=off go test -timeout 20m -parallel 8 ./...) || exit 1; done

test-mongo: ## Run storage and service tests on MongoDB 8 in Docker; fails where no Docker engine answers
	cd pkg/docstore/mongostore/mongotest && IDP_TEST_MONGO_REQUIRED=1 GOWORK=off go test -count=1 ./...
	cd pkg/docstore/mongostore/mongotest && GOWORK=off go run ./cmd/with-mongo env GOWORK= go test -C $(CURDIR) -count=1 -timeout 30m $(PACKAGES)

test-simulated: ## Run the services' tests, and the example's, on the simulated replica set, with faults
	cd pkg/docstore/mongostore/mongotest && GOWORK=off go run ./cmd/with-mongo -simulated -faults 300 \
		env GOWORK= go test -C $(CURDIR) -count=1 -timeout 20m $(CURDIR)/pkg/service/example \
		$(addsuffix /...,$(wildcard $(CURDIR)/services/*))
	cd pkg/docstore/mongostore/mongotest && GOWORK=off go run ./cmd/with-mongo -simulated -wire 21 \
		env GOWORK= go test -C $(CURDIR) -count=1 -run '^(TestCommands|TestAtOnce)' $(addsuffix /...,$(wildcard $(CURDIR)/services/*))

# Races with faults. The seed of a failure is in the test's name; IDP_TEST_MONGO_SEED=<seed> SOAK=1 runs it again.
soak: ## Run the storage suite's races by SOAK=1000 seeds, and 100,000 random questions to the permissions engine
	cd pkg/docstore/mongostore/mongotest && GOWORK=off go test -c -o $(CURDIR)/bin/tools/soak.test . && \
		IDP_TEST_MONGO_SEEDS=$${SOAK:-1000} $(CURDIR)/bin/tools/soak.test -test.timeout 10h -test.parallel 16 \
		-test.run 'TestSimulatedBySeed/./^(absence|concurrency|messages|transactions|unique)$$'
	IDP_SOAK_QUESTIONS=100000 go test -count=1 -run NaiveEvaluator ./services/permissions/internal/engine

bench: ## Run every benchmark and print the figures (IDP_BENCH_NODES=1000000, IDP_BENCH_USERS=1000000: that many, an hour; IDP_BENCH_DIR keeps the files)
	go test -run '^$$' -bench . -benchmem -timeout 60m $(PACKAGES)

fuzz: ## Fuzz every parser for a while (FUZZTIME=10s each)
	@for module in $(MODULES); do (cd $$module && for package in $$(grep -rl --include='*_test.go' '^func Fuzz' . | xargs -r -n1 dirname | sort -u); do \
		for target in $$(grep -rhoE --include='*_test.go' '^func (Fuzz\w+)' $$package/*_test.go | awk '{print $$2}'); do \
			echo "$$package $$target"; go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $${FUZZTIME:-10s} $$package || exit 1; \
		done; done) || exit 1; done

lint: ## Check formatting, vet, staticcheck, imports between parts, and the length of lines
	@unformatted=$$(gofmt -l $$(git ls-files '*.go')); [ -z "$$unformatted" ] || { echo "gofmt would change:"; echo "$$unformatted"; exit 1; }
	go vet $(PACKAGES)
	@GOWORK=off go build -C deploy/tools -o $(CURDIR)/bin/tools/ tool
	bin/tools/staticcheck $(PACKAGES)
	go test -count=1 -run '^Test(Imports|Lines)$$' ./deploy/standalone

isolated: ## Build and vet every module alone, without the workspace
	@for module in $(MODULES) $(APART); do \
		echo "$$module"; (cd $$module && GOWORK=off go build ./... && GOWORK=off go vet ./...) || exit 1; done

tidy: ## Tidy every module
	@for module in $(MODULES); do echo "$$module"; (cd $$module && GOWORK=off go mod tidy) || exit 1; done

fmt: ## Format the code
	gofmt -w $$(git ls-files '*.go')

generate: ## Rewrite the checked-in OpenAPI documents and golden files
	IDP_TEST_UPDATE=1 go test -count=1 -run 'Golden|OpenAPI' $(PACKAGES)

TOUR = go run ./deploy/standalone/tour -program bin/idp-standalone
TOURS = $$(grep -l '^```console tour' README.md services/*/README.md)

tour: build ## Play the tours of all READMEs against the running platform, or a fresh one
	@$(TOUR) $(TOURS)

tour-services: services ## Play them against fresh processes
	@dir=$$(mktemp -d) && trap "rm -rf $$dir" EXIT && \
		bin/tools/run-services --data-dir $$dir --base-port 0 -- $(TOUR) $(TOURS)

clean: ## Remove what build made
	rm -rf bin
