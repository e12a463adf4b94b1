# The commands for development; `make` lists them.

GO       ?= go
TAGS      = urfave_cli_no_template
BUILD     = env CGO_ENABLED=0 $(GO) build -trimpath -tags $(TAGS) -ldflags '-s -w'
PROGRAMS  = nized nizectl nize-toolbox
FUZZTIME ?= 5s
PREFIX   ?= /usr/local

# By default Go stops a package's tests after ten minutes, which is too short on a slow
# machine. Tests have their own timeouts.
PATIENCE = -timeout 60m

# The race detector needs cgo, and cgo a C compiler; nothing else here does.
# By default each test binary sleeps for a second before it exits.
CC_FOUND := $(shell command -v $$($(GO) env CC) 2>/dev/null)

.PHONY: help map build man install image test race torture demo bench eval lint fuzz release nightly clean

help: ## list the commands
	@awk -F ':.*## ' '/^[a-z]+:.*## /{printf "  make %-8s %s\n", $$1, $$2}' Makefile

map: ## print every package with the first sentence of its comment
	@$(GO) list -tags $(TAGS) -f '{{printf "%-36s %s" .ImportPath .Doc}}' ./...

build: ## build nized, nizectl and nize-toolbox into bin/
	@mkdir -p bin
	@scripts/progress $(BUILD) -v -o bin/ $(addprefix ./cmd/,$(PROGRAMS))

man: ## generate the manual pages from the commands, in bin/man
	@mkdir -p bin/man
	@$(GO) test -tags $(TAGS) -count=1 -run '^TestMan$$' ./cmd/nized ./cmd/nizectl -args -man $(CURDIR)/bin/man >/dev/null

install: build man ## install programs, manual pages and completion below PREFIX (/usr/local)
	install -d $(addprefix $(DESTDIR)$(PREFIX)/,bin share/man/man1 share/bash-completion/completions share/zsh/site-functions share/fish/vendor_completions.d)
	install -m 755 $(addprefix bin/,$(PROGRAMS)) $(DESTDIR)$(PREFIX)/bin
	install -m 644 bin/man/*.1 $(DESTDIR)$(PREFIX)/share/man/man1
	install -m 644 cmd/nizectl/completion/nizectl.bash $(DESTDIR)$(PREFIX)/share/bash-completion/completions/nizectl
	install -m 644 cmd/nizectl/completion/nizectl.zsh $(DESTDIR)$(PREFIX)/share/zsh/site-functions/_nizectl
	install -m 644 cmd/nizectl/completion/nizectl.fish $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d

image: build ## build the container image `nize` with docker, podman or buildah (BASE=scratch)
	@scripts/container/build $(BASE)

test: ## vet and run all tests
	@scripts/progress $(GO) vet -v -tags $(TAGS) ./...
	CGO_ENABLED=0 $(GO) test $(PATIENCE) -tags $(TAGS) ./...
	@echo 'passed. Not run: the race detector (make race), and tests that need npm: real MCP servers and clients, the conformance suite. .ci/run runs them.'
	@[ -n "$$NIZE_TEST_POSTGRES" ] || echo 'Also not run: tests that need a PostgreSQL (scripts/postgres.sh).'

race: ## run all tests with the race detector, which needs a C compiler (PACKAGES=, SHORT=1)
ifeq ($(CC_FOUND),)
	@echo 'the race detector needs a C compiler, and there is none: install gcc, or use make test'; exit 1
else
	CGO_ENABLED=1 GORACE="atexit_sleep_ms=100 $$GORACE" $(GO) test $(PATIENCE) -race $(if $(SHORT),-short) -tags $(TAGS) $(or $(PACKAGES),./...)
endif

torture: ## kill nized 1,000 times under load and at every test point, for at most an hour (KILLS=, TIME=, SEED=)
	CGO_ENABLED=0 $(GO) test -timeout 75m -tags $(TAGS) ./daemon -count=1 -run '^TestTorture$$' -v -kills $(or $(KILLS),1000) -torture $(or $(TIME),55m) $(if $(SEED),-seed $(SEED))

demo: build ## run the main use case: a chat on a terminal, else one turn; needs no key
	@scripts/demo

bench: build ## measure performance, compared with direct calls (FLOORS=1 fails below a floor; ROUNDS=, EVENTS=)
	$(GO) run -trimpath ./scripts/bench $(if $(FLOORS),-floors) $(if $(ROUNDS),-rounds $(ROUNDS)) $(if $(EVENTS),-events $(EVENTS))

eval: ## measure the quality of discovery (CORPORA=DIR instead of the built-in corpora, FLOORS=1)
	$(GO) run -trimpath ./mcp/index/eval $(if $(CORPORA),-corpora $(CORPORA)) $(if $(FLOORS),-floors)

lint: ## gofmt, vet and staticcheck
	@bad=$$(gofmt -l .) && [ -z "$$bad" ] || { echo "run gofmt -w on: $$bad"; exit 1; }
	$(GO) vet -tags $(TAGS) ./...
	$(GO) tool staticcheck -tags $(TAGS) ./...

fuzz: ## fuzz every decoder for FUZZTIME (5s) each
	@scripts/fuzz $(FUZZTIME)

release: ## build the release files in dist/, reproducibly (VERSION=x.y.z; KEY=FILE signs with minisign)
	@cd scripts/release && CGO_ENABLED=0 $(GO) run . -version "$(or $(VERSION),$(shell git describe --tags --abbrev=0 2>/dev/null | sed s/^v//))" -out "$(CURDIR)/dist" $(if $(KEY),-key "$(abspath $(KEY))")

nightly: ## run the long forms of all checks, for hours (ONLY="race fuzz torture compacting asks failover older upgrade eval bench pictures container release")
	@.ci/nightly

clean: ## remove all build results
	rm -rf bin dist
