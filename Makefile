# Every target is a line or two and runs alone. `make run` and `make test` need
# nothing but Debian and Go: they install the rest.

GO       ?= go
FUZZTIME ?= 10s
REPO     ?= .
PACKAGES := git universal-ctags haproxy nginx

export GOFLAGS += -trimpath

.PHONY: run build install-deps test race lint fuzz check bench chaos chaos-short seeds stories stories-rewrite soak oracle replay test-mcp clean

run: install-deps build
	bin/shoal serve --demo .

build:
	$(GO) build -o bin/shoal ./cmd/shoal

install-deps:
	@.ci/install $(PACKAGES)

test: install-deps
	$(GO) test ./...

race: install-deps
	$(GO) test -race ./...

lint:
	.ci/lint

fuzz: install-deps
	.ci/fuzz $(FUZZTIME)

check: test lint

bench: install-deps build
	@.ci/install codesearch ripgrep linux-source-6.1 git xz-utils
	bin/shoal bench report --out bench/report

chaos: install-deps
	@.ci/install iproute2 nftables
	$(GO) test -count=1 -timeout 200m -run TestChaos -v ./node/chaostest -chaos 2m -runs 60 -results chaos.jsonl

chaos-short: install-deps
	@.ci/install iproute2 nftables
	$(GO) test -count=1 -timeout 5m -run TestChaos -v ./node/chaostest -chaos 15s -faults kill,isolate,stop,flip-shard

seeds: install-deps
	GOGC=800 $(GO) test -count=1 -timeout 400m -run TestSeeds -v ./node -seeds 2000 -together 16

stories: install-deps
	$(GO) test -count=1 -run TestStories -v ./node

stories-rewrite: install-deps
	$(GO) test -count=1 -run TestStories ./node -rewrite

soak: install-deps build
	bin/shoal bench soak

oracle: install-deps
	SHOAL_ORACLE_CASES=10000 $(GO) test -count=1 -timeout 60m -run TestSearchAgreesWithAScan -v ./shard

replay: install-deps
	SHOAL_REPLAY_REPO=$(abspath $(REPO)) $(GO) test -count=1 -timeout 60m -run TestReplay -v ./shard

test-mcp: install-deps build
	.ci/test-mcp

clean:
	rm -rf bin data
