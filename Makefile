# Everything here works on a machine with Go and make. Modules are found through go.work and programs through their cmd/
# folders, so a new service needs no line here.
SHELL := /bin/bash -o pipefail
.DEFAULT_GOAL := help

MODULES  := $(shell go list -m -f '{{.Dir}}')
PACKAGES := $(addsuffix /...,$(MODULES))
# Modules outside the workspace, because they have dependencies that no program needs: other drivers, servers for tests.
APART    := pkg/docstore/mongostore/mongotest tools/apitest deploy/k8s console/web/bundle sdk/go/internal/generate

export CGO_ENABLED ?= 0

# -trimpath makes compiled packages the same in every folder, so a fresh clone finds them in the build cache.
# nomsgpack leaves out gin's support of MessagePack, which no operation uses: 6 MB of each program, 8 MiB of its memory.
# Without DWARF, which only debuggers read, compiling takes 7 % less processor time and a fifth less of the build cache.
export GOFLAGS := $(sort $(GOFLAGS) -trimpath -tags=nomsgpack -buildvcs=false -gcflags=all=-dwarf=false)
PROGRAM := -ldflags '-s -w'

.PHONY: help build run check test race race-all verify k8s-test test-mongo test-twice test-simulated commands soak bench fuzz hostile load lint fmt isolated download tidy tour quickstart services run-services tour-services generate openapi sdk-go cli-operations console-operations sdk-typescript sdk-compare sdk-test types web console-test console-speed cli-test compose-test clean

help: ## Show this help
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: web ## Build every program into bin/
	@mkdir -p bin
	go build $(PROGRAM) -o bin/idp-standalone ./deploy/standalone
	@go build $(PROGRAM) -o bin/ $(addprefix ./,$(wildcard */cmd/* services/*/cmd/*))
	@ls bin

# Collecting garbage less often saves a fifth of the processor time of the compiler and of tests, and a tenth of the
# linker's. The largest package then takes 1.5 GB of memory to compile instead of 0.9.
build services web test commands race race-all lint download: export GOGC ?= 400

# On a fresh machine the programs' modules are downloaded while the bundler compiles.
web: ## Bundle the console's files into console/dist, which programs embed
	@go list -deps ./deploy/standalone >/dev/null & cd console/web/bundle && GOWORK=off go run . -out ../../dist && wait

run: build ## Start the whole platform in ./data (IDP_DATA_DIR, IDP_LISTEN)
	@bin/idp-standalone serve

run-services: services ## Start NATS, every service and the gateway as processes of their own, in ./data-services (IDP_BASE_PORT, IDP_MONGO_URI)
	@bin/tools/run-services

services: build ## Build every program, nats-server and run-services
	@go build $(PROGRAM) -o bin/ github.com/nats-io/nats-server/v2
	@go build -o bin/tools/ ./tools/run-services

CHANGED = $(shell git diff --name-only --diff-filter=d main -- '*.go'; git ls-files -o --exclude-standard '*.go')

check: ## Check in seconds what changed since main: form, vet, imports between parts, tests of its packages
	@unformatted=$$(printf '%s\n' $(CHANGED) | xargs -r gofmt -l); [ -z "$$unformatted" ] || { echo "gofmt would change:"; echo "$$unformatted"; exit 1; }
	go test -count=1 ./tools/architecture
	@packages=$$(go list -find -f '{{.Dir}}' $(PACKAGES) | grep -xF "$$(printf '%s\n' $(CHANGED) | xargs -r -n1 dirname | \
		sort -u | sed 's,^,$(CURDIR)/,')"); [ -z "$$packages" ] || { go vet $$packages && go test -count=1 $$packages; }

TOOL := bin/tools/gotestsum

$(TOOL): tools/lint/go.mod $(wildcard tools/lint/testreport/*.go)
	@GOWORK=off go build -C tools/lint -o $(CURDIR)/bin/tools/ gotest.tools/gotestsum ./testreport

# Apart from the tests' tools, because they take half a minute to compile.
LINTERS := bin/tools/analyse

$(LINTERS): tools/lint/go.mod $(wildcard tools/lint/*/*.go)
	@GOWORK=off go build -C tools/lint -o $(CURDIR)/bin/tools/ tool

# A test that fails runs again, alone, up to twice. What fails and then passes is told as FLAKY: a fault to mend. vet is
# make lint's. -count=1, because go test takes the result of an earlier run, of another folder too, when only files outside
# the test's module have changed, such as a README.
# $(1): name of the report, $(2): packages, $(3): flags of go test
define run-tests
$(CURDIR)/$(TOOL) --format pkgname --format-hide-empty-pkg --hide-summary skipped \
	--rerun-fails=2 --rerun-fails-max-failures=20 --rerun-fails-report=$(CURDIR)/bin/test/$(1).rerun \
	--jsonfile=$(CURDIR)/bin/test/$(1).json --packages="$(2)" -- -count=1 -vet=off -timeout 20m $(3)
endef

# Tests of processes wait more than they work: twice as many packages as processors run at a time, and those begin that
# take longest. Tests of modules apart run meanwhile; Ctrl-C would not end what a shell runs in the background, hence
# the trap.
AT_ONCE := -p $(shell echo $$((2 * $$(getconf _NPROCESSORS_ONLN))))
LONGEST := $(addprefix $(CURDIR)/,deploy/standalone tools/run-services services/organization)

# The tests of run-services and apitest play these programs.
BUILT := IDP_TEST_PROGRAMS=$(CURDIR)/bin

test: services $(TOOL) ## Run all tests but those of make verify; what fails runs again, and what passes then is told as FLAKY
	@rm -rf bin/test && mkdir -p bin/test
	@export $(BUILT); trap "kill 0" INT; $(call run-tests,test,$(LONGEST) $(PACKAGES),$(AT_ONCE)) & workspace=$$!; failed=0; \
	for module in $(filter-out deploy/k8s,$(APART)); do (cd $$module && export GOWORK=off && \
		$(call run-tests,$$(echo $$module | tr / -),./...,-parallel 8)) || failed=1; done; \
	wait $$workspace || failed=1; bin/tools/testreport bin/test/*.json || failed=1; exit $$failed

# The detector leaves SQLite out: only its own package touches its memory, and tests would take twice as long. Libraries
# with generic functions cannot be left out: the linker keeps one copy of a function that several packages instantiate,
# and if that is theirs, the detector misses its locks and reports races that there are not.
RACE     := -race -gcflags='github.com/ncruces/...=-race=false -dwarf=false'

# Packages whose goroutines share memory: their code starts goroutines or uses sync. The sandbox is left to race-all: its
# tests compile in child processes, which takes ten times as long with the detector.
SHARING   = $(shell git ls-files 'pkg/*.go' 'services/*/internal/*.go' 'gateway/*.go' 'console/internal/*.go' | \
	grep -v -e _test.go -e /mongotest/ -e /testdata/ -e /sandbox/ | xargs grep -lE '^\s+"sync(/atomic)?"$$|^\s+go [a-zA-Z.]+' | \
	xargs -n1 dirname | sort -u | sed 's,^,./,')

# What takes minutes. It is run before a capability is called done.
VERIFY := lint isolated sdk-compare sdk-test test race-all test-twice test-simulated console-test cli-test k8s-test hostile tour quickstart tour-services compose-test fuzz

verify: ## Run everything that needs no running Docker, an hour or two: with the race detector, faults, browsers, containers, hostile requests, fuzzing
	@export IDP_TEST_ROUNDS=many; failed=; for step in $(VERIFY); do echo; echo "== make $$step ($${SECONDS}s)"; \
		$(MAKE) --no-print-directory $$step || failed="$$failed $$step"; done; \
	echo; echo "== done ($${SECONDS}s)"; [ -z "$$failed" ] || { echo "failed:$$failed"; exit 1; }

race: web $(TOOL) ## Run the quick tests of packages whose goroutines share memory with the race detector; needs a C compiler
	@mkdir -p bin/test
	@CGO_ENABLED=1 $(call run-tests,race,$(SHARING),$(AT_ONCE) -short $(RACE)); failed=$$?; \
		bin/tools/testreport bin/test/race.json || failed=1; exit $$failed

race-all: services $(TOOL) ## Run all tests with the race detector; needs a C compiler
	@mkdir -p bin/test
	@export $(BUILT); CGO_ENABLED=1 $(call run-tests,race-all,$(PACKAGES),$(RACE)); failed=$$?; \
		bin/tools/testreport bin/test/race-all.json || failed=1; exit $$failed

k8s-test: ## Validate the Kubernetes manifests against the programs; compiles the libraries of Kubernetes
	cd deploy/k8s && GOWORK=off go test -count=1 ./...

test-mongo: ## Run storage and service tests on MongoDB 8 in Docker; fails where no Docker engine answers
	cd pkg/docstore/mongostore/mongotest && IDP_TEST_MONGO_REQUIRED=1 GOWORK=off go test -count=1 ./...
	cd pkg/docstore/mongostore/mongotest && GOWORK=off go run ./cmd/with-mongo env GOWORK= go test -C $(CURDIR) -count=1 -timeout 30m $(PACKAGES)

test-twice: ## Run the services' tests with every transaction run twice, as after a conflict
	IDP_TEST_TWICE=1 go test -count=1 -timeout 20m $(addprefix ./,$(addsuffix /...,$(wildcard services/*)))

test-simulated: ## Run the services' tests, and the example's, on the simulated replica set, with faults
	cd pkg/docstore/mongostore/mongotest && GOWORK=off go run ./cmd/with-mongo -simulated -faults 300 \
		env GOWORK= go test -C $(CURDIR) -count=1 -timeout 20m $(CURDIR)/pkg/service/example \
		$(addsuffix /...,$(wildcard $(CURDIR)/services/*))
	cd pkg/docstore/mongostore/mongotest && GOWORK=off go run ./cmd/with-mongo -simulated -wire 21 \
		env GOWORK= go test -C $(CURDIR) -count=1 -p 1 -run '^(TestCommands|TestAtOnce)' $(addsuffix /...,$(wildcard $(CURDIR)/services/*))

# Both wires: before and from MongoDB 8.0, which has one command for writes to several collections.
COUNTED := $(patsubst services/%/commands_test.go,%,$(wildcard services/*/commands_test.go))
commands: ## Count the commands that requests send to MongoDB, on the simulated replica set, and compare them with what is written down
	@mkdir -p bin/commands && go test -c -o bin/commands/ $(addprefix ./services/,$(COUNTED))
	@cd pkg/docstore/mongostore/mongotest && GOWORK=off go build -o $(CURDIR)/bin/tools/with-mongo ./cmd/with-mongo
	@for wire in "" "-wire 21"; do bin/tools/with-mongo -simulated $$wire xargs -n1 \
		-P$$([ "$$IDP_TEST_UPDATE" ] && echo 1 || getconf _NPROCESSORS_ONLN) sh -ec \
		'cd services/$$0 && ../../bin/commands/$$0.test -test.run "^TestCommands$$"' <<<"$(COUNTED)" || exit 1; done

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
			echo "$$package $$target"; log=$$(mktemp); \
			go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $${FUZZTIME:-10s} $$package 2>&1 | tee $$log; \
			grep -q '^ok' $$log || { grep -q '^    context deadline exceeded$$' $$log && ! grep -q 'Failing input' $$log || exit 1; \
				echo "no fault, but the end of the time (https://go.dev/issue/75804, until Go 1.27)"; }; rm -f $$log; \
		done; done) || exit 1; done

lint: $(LINTERS) ## Check formatting, vet, staticcheck, licences, known faults of imports (where vuln.go.dev answers), imports between parts, and sizes
	@unformatted=$$(gofmt -l $$(git ls-files '*.go')); [ -z "$$unformatted" ] || { echo "gofmt would change:"; echo "$$unformatted"; exit 1; }
	bin/tools/analyse $(PACKAGES)
	@bin/tools/licences $(PACKAGES)
	@if curl -sfI --max-time 10 -o /dev/null https://vuln.go.dev/index/modules.json.gz; then bin/tools/govulncheck $(PACKAGES); \
	else echo "govulncheck did not run: vuln.go.dev does not answer"; fi
	go test -count=1 -run '^Test(Imports|Lines|Sizes)$$' ./tools/architecture

hostile: build ## Send hostile requests to every operation of a running platform (HOSTILE=100000; SEED=n makes the same again)
	@go run ./tools/hostile -program bin/idp-standalone -requests $${HOSTILE:-100000} $${SEED:+-seed $$SEED}

load: build ## Load a platform with reads, checks and writes, and draw bin/load/*.svg (LOAD="-duration 10m -rate 500"; -help lists all)
	@go run ./tools/load -program bin/idp-standalone -svg bin/load $(LOAD)

isolated: ## Build every module alone, without the workspace, and the command line for other systems
	@for module in $(MODULES) $(APART) console/browsertest; do \
		echo "$$module"; (cd $$module && GOWORK=off go build ./...) || exit 1; done
	@for system in windows darwin; do echo "cli for $$system"; \
		GOOS=$$system go build -C cli -o /dev/null ./cmd/idp || exit 1; done

# The standard library is compiled meanwhile, also for the race detector: the network leaves the processors idle.
download: ## Download the modules that building and testing need; fails if a module alone would lack one
	@{ go build std; CGO_ENABLED=1 go build $(RACE) std; } >/dev/null 2>&1 & missing=0; \
	go list -deps -test $(PACKAGES) >/dev/null || missing=1; \
	for module in $(MODULES) $(APART) console/browsertest; do \
		(cd $$module && GOWORK=off go list -deps -test ./... >/dev/null) || missing=1; done; \
	GOWORK=off go list -C tools/lint -deps tool >/dev/null || missing=1; \
	wait; exit $$missing

tidy: ## Tidy every module
	@for module in $(MODULES); do echo "$$module"; (cd $$module && GOWORK=off go mod tidy) || exit 1; done

fmt: ## Format the code
	gofmt -w $$(git ls-files '*.go')
	@cd console/web && [ ! -x node_modules/.bin/prettier ] || node_modules/.bin/prettier --write --log-level warn 'src/**/*.{ts,tsx,css}'

generate: ## Rewrite the checked-in OpenAPI documents, golden files, the Go SDK, the table of the command line and, with Node, the TypeScript SDK
	IDP_TEST_UPDATE=1 go test -count=1 -run 'Golden|OpenAPI' $(PACKAGES)
	@$(MAKE) --no-print-directory sdk-go cli-operations console-operations
	@if command -v npm >/dev/null 2>&1; then $(MAKE) --no-print-directory sdk-typescript; \
	else echo "without the TypeScript SDK: it needs Node"; fi

openapi: ## Write the OpenAPI document of all services to bin/openapi.json, as version 3.0 to bin/openapi-3.0.json, and for the gateway
	@mkdir -p bin
	@go run ./tools/openapi services/*/api/openapi.yaml

# Node and npm are needed to make the SDK and to check types; nothing that is built or run needs them.
NODE_MODULES := sdk/typescript/node_modules/.package-lock.json

$(NODE_MODULES): sdk/typescript/package-lock.json
	@npm ci --prefix sdk/typescript --no-progress >/dev/null
	@touch $@

console/web/node_modules/.package-lock.json: console/web/package-lock.json
	@npm ci --prefix console/web --no-progress >/dev/null
	@touch $@

types: console/web/node_modules/.package-lock.json ## Check the console's TypeScript, and its form; needs Node
	console/web/node_modules/.bin/tsc -p console/web
	@cd console/web && node_modules/.bin/prettier --check --log-level warn 'src/**/*.{ts,tsx,css}' || { echo "run make fmt"; exit 1; }

sdk-compare: sdk-go cli-operations sdk-typescript ## Fail if the gateway's document, the SDKs and the command line's table are not what the services' documents make; needs Node
	@changed=$$(git status --short -- gateway/openapi.json.gz sdk/typescript/src sdk/typescript/runtime/events.gen.ts sdk/testdata/events.json \
		sdk/go/models.go sdk/go/enums.go sdk/go/events/types.go 'sdk/go/calls_*.go' cli/internal/operations/operations.json); \
		[ -z "$$changed" ] || { echo "$$changed"; echo "run make generate, and commit what it changes"; exit 1; }

sdk-test: $(NODE_MODULES) ## Pack and install the TypeScript SDK, check its types as users do, and play it against a server; needs Node
	@npm test --silent --prefix sdk/typescript

console-test: build types $(NODE_MODULES) ## Check the console's types, and play it in Chromium with axe, and the TypeScript SDK; needs Node and Chromium (IDP_TEST_SCREENSHOTS=folder keeps pictures)
	@npm run --silent build --prefix sdk/typescript
	cd console/browsertest && $(BROWSERTEST) -timeout 20m -parallel 4 -skip '^TestSpeed$$' ./...
	cd console/browsertest && IDP_TEST_CONSOLE_SCALE=1 $(BROWSERTEST) -v -run '^TestScale$$' .
	@$(MAKE) --no-print-directory console-speed

BROWSERTEST := IDP_TEST_BROWSER_REQUIRED=1 IDP_TEST_PROGRAM=$(CURDIR)/bin/idp-standalone GOWORK=off go test -count=1

console-speed: build ## Measure the console in Chromium: bytes, calls and movement of the layout are demanded; times are told, and only a multiple of them demanded
	@cd console/browsertest && $(BROWSERTEST) -v -run '^TestSpeed$$' . | grep -vE '^(=== |PASS$$)'

cli-test: build ## Play the command line's files on the real platform
	cd cli && IDP_TEST_PROGRAM=$(CURDIR)/bin/idp-standalone go test -count=1 ./internal/commands

sdk-go: openapi ## Rewrite sdk/go from the OpenAPI document, and the types of events of both SDKs
	@cd sdk/go/internal/generate && GOWORK=off go run . -document $(CURDIR)/bin/openapi-3.0.json \
		-events $(CURDIR)/services/events/internal/catalogue/types -out $(CURDIR)/sdk

cli-operations: openapi ## Rewrite the command line's table of operations from the OpenAPI document
	@go run ./cli/internal/operations/generate bin/openapi.json cli/internal/operations/operations.json

console-operations: ## Rewrite the console's list of operations that want a recent sign-in
	@IDP_TEST_UPDATE=1 go test -count=1 -run '^TestFreshOperations$$' ./console/internal/proxy

sdk-typescript: openapi $(NODE_MODULES) ## Rewrite sdk/typescript from the OpenAPI document
	@npm run --silent --prefix sdk/typescript generate

TOUR = go run ./tools/tour -program bin/idp-standalone
TOURS = $$(grep -l '^```console tour' README.md cli/README.md services/*/README.md)

tour: build ## Play the tours of all READMEs against a fresh platform, or a running one (IDP=its address)
	@$(TOUR) $(TOURS)

quickstart: build $(NODE_MODULES) ## Play the quick starts of the SDKs' READMEs against fresh platforms; needs Node
	@npm run --silent build --prefix sdk/typescript
	@go run ./tools/quickstart -program bin/idp-standalone

tour-services: services ## Play them against fresh processes
	@dir=$$(mktemp -d) && trap "rm -rf $$dir" EXIT && \
		bin/tools/run-services --data-dir $$dir --base-port 0 -- $(TOUR) $(TOURS)

# The engine and its network are this target's own: it needs root and the packages docker.io, iptables and busybox-static.
compose-test: services ## Build and run docker-compose.yml in a Docker engine of its own: play the tours, kill each process under writes; needs root
	@go build -o bin/tools/ ./tools/composetest ./tools/tour
	@cd pkg/docstore/mongostore/mongotest && GOWORK=off go build -o $(CURDIR)/bin/tools/ ./cmd/mongod
	@GOWORK=off go build -C tools/lint/compose -o $(CURDIR)/bin/tools/docker-compose github.com/docker/compose/v2/cmd
	@bin/tools/composetest -- bin/tools/tour -program bin/idp-standalone $(TOURS)

clean: ## Remove what build made
	rm -rf bin console/dist/assets console/dist/manifest.json
