# Every target is a line or two and runs alone. `make run` and `make test` need
# nothing but Debian and Go: they install the rest.

GO       ?= go
FUZZTIME ?= 10s
REPO     ?= .
PACKAGES := git universal-ctags haproxy nginx

export GOFLAGS += -trimpath

.PHONY: long-answers providers citations run build build-bench install-deps test test-portable race lint fuzz check bench chaos chaos-short seeds stories stories-rewrite soak oracle hostile noninterference noninterference-mutants replay test-mcp test-models test-oauth test-signin test-web test-web-budgets pictures test-colours test-hosts bench-hosts house clean

run: build
	@.ci/install git universal-ctags
	bin/shoal serve --demo .

build:
	@.ci/needs-go $(GO)
	$(GO) build -o bin/shoal ./cmd/shoal

build-bench: build
	$(GO) build -o bin/shoal-bench ./cmd/shoal-bench

install-deps:
	@.ci/install $(PACKAGES)

# Most tests of clusters wait, so more of them run at once than there are cores.
test: install-deps
	$(GO) test -parallel 4 ./...

test-portable:
	$(GO) test -tags purego ./trigram ./shard ./shard/lz ./shard/match ./shard/symbols

race: install-deps
	$(GO) test -race ./...

lint:
	.ci/lint

fuzz: install-deps
	.ci/fuzz $(FUZZTIME)

check: test lint

bench: install-deps build-bench
	@.ci/install codesearch ripgrep linux-source-6.1 git xz-utils
	bin/shoal-bench report --out bench/report

chaos: install-deps
	@.ci/install iproute2 nftables
	$(GO) test -count=1 -timeout 200m -run TestChaos_answersStayCorrectUnderFaults -v ./node/chaostest -chaos 2m -runs 60 -results chaos.jsonl

# Nodes of the last release and of this program in one cluster, and of this one and the next, whose index files have
# another form: FOR=1h TEXT=1G prints a table. Until there is a release the last one is a commit.
LAST ?= a1bb99e
.PHONY: pairs pairs-short chaos-pairs wrong-apply
pairs-short: install-deps
	.ci/pairs last $(LAST) 20s
pairs: install-deps
	.ci/pairs last $(LAST) $(or $(FOR),20s)
	.ci/pairs next $(or $(FOR),20s)

# Half of the nodes run the last release while they are broken: FOR=2m RUNS=20.
chaos-pairs: install-deps
	@.ci/install iproute2 nftables
	.ci/pairs chaos $(LAST) $(or $(FOR),2m) $(or $(RUNS),20)

# What may happen to a cluster of real processes: prints how long it takes until it serves again, and what is lost.
.PHONY: drills drills-short
drills: install-deps
	$(GO) test -count=1 -timeout 30m -parallel 1 -run TestDrills_serveAgainAfterEachDisaster -v ./cmd/shoal -drills | grep -av level=
drills-short: install-deps
	$(GO) test -count=1 -timeout 10m -run 'TestDrills_serveAgainAfterEachDisaster/(two_nodes_of_three|all_but_the_back-up),_root$$' ./cmd/shoal -drills

# A program that applies an entry wrongly, on the leader, on a follower, on most and on all nodes: what nodes and searches see.
wrong-apply: install-deps
	.ci/pairs wrong

chaos-short: install-deps
	@.ci/install iproute2 nftables
	$(GO) test -count=1 -timeout 5m -run TestChaos_answersStayCorrectUnderFaults -v ./node/chaostest -chaos 15s -faults kill,isolate,stop,flip-shard

hostile: install-deps
	SHOAL_HOSTILE=long $(GO) test -count=1 -timeout 60m -run TestHostileRepositories_needLessThanAGigabyte -v ./cmd/shoal
	SHOAL_HOSTILE=5000 $(GO) test -count=1 -timeout 60m -run TestRender_timeIsLinearInTheLength -v ./api/web/markdown

seeds: install-deps
	GOGC=800 $(GO) test -count=1 -timeout 400m -run TestRandomFaults_answersStillEqualAScan -v ./node -seeds 2000 -together 16

stories: install-deps
	$(GO) test -count=1 -run TestStories_playAsWritten -v ./node

stories-rewrite: install-deps
	$(GO) test -count=1 -run TestStories_playAsWritten ./node -rewrite

soak: install-deps build-bench
	bin/shoal-bench soak

oracle: install-deps
	SHOAL_ORACLE_CASES=10000 $(GO) test -count=1 -timeout 60m -run TestSearch_agreesWithAScan -v ./shard

# Clusters with repositories that a viewer may not see against clusters that never had them.
noninterference: install-deps
	$(GO) test -count=1 -timeout 400m -run 'TestNonInterference_hiddenRepositoriesChangeNoAnswer$$' -v ./api -worlds 1000 | grep -av level=

# One answer of two minutes on three nodes, and what turns that run take of memory:
# prints what it measures.
long-answers:
	$(GO) test -count=1 -timeout 30m -run TestLongAnswer_everyEventComesOnceInOrder -v ./node/ask -long 2m | grep -v -e '^=== ' -e level=

# What every provider of models does on its wire, each answer cut at every byte.
providers:
	$(GO) test -count=1 -timeout 30m -run TestEveryProvider_conversesRefusesAndNoticesCutAnswers -v ./node/model -cuts 1 | grep -v -e '^=== ' -e '--- PASS'

# What the check of citations makes of answers that are right, moved, invented and hostile.
citations:
	$(GO) test -count=1 -timeout 30m -run TestCitations_onlyTrueOnesOfRandomAnswersBecomeLinks -v ./node/ask -answers 1000 | grep -v -e '^=== ' -e level=

# So many requests of all kinds from people whom nobody knows are no entry of the log: make strangers REQUESTS=200000
.PHONY: strangers
strangers: install-deps
	$(GO) test -count=1 -timeout 120m -run TestRequestsOfStrangers_doNotGrowTheRaftLog -v ./api -strangers $(or $(REQUESTS),1000000) | grep -av level=

# Each flow of sign-in, consent and keys meets each fault of three nodes at each of its requests: prints a table.
.PHONY: flows
flows: install-deps
	$(GO) test -count=1 -timeout 200m -run TestSignInFlows_continueOrRestartAfterFaults -v ./api -faults | grep -av level=

# Takes each call of the gate away in turn: the comparison has to miss it.
noninterference-mutants: install-deps
	.ci/gatehole/run -count=1 -timeout 30m -run TestNonInterference_oracleDetectsEachRemovedPermissionCheck -v ./api | grep -av level=

# Random calls over a zoo of repositories against a plain scan: CASES=100000 SEED=1.
.PHONY: differential
differential: install-deps
	$(GO) test -count=1 -timeout 200m -run TestSearchAnswers_equalAPlainScanOfTheFiles -v ./api/difftest -cases $(or $(CASES),100000) -seed $(or $(SEED),1) | grep -av level=

# Random questions about commits against git log and a plain scan of git log -p: most over odd histories that the test
# makes, N/8 over one of 100,000 commits and those of MIRRORS. Histories with files that MIRRORS lacks are refused.
.PHONY: oracle-commits
oracle-commits: N ?= 10000
oracle-commits: install-deps
	SHOAL_CHANGE_WORLDS=$$(($(N) * 7 / 8 / 180 + 1)) SHOAL_ORACLE_QUESTIONS=$$(($(N) / 8)) SHOAL_ORACLE_MIRRORS="$(MIRRORS)" \
		$(GO) test -count=1 -timeout 300m -parallel 2 -run 'TestCommitSearch_' -v ./shard/change | grep -v -e '^=== '

# Random worlds of watches: pushes, killed nodes, moved mirrors, rights that come and go, and receivers that fail.
.PHONY: watch-worlds
watch-worlds: N ?= 2000
watch-worlds: install-deps
	$(GO) test -count=1 -timeout 120m -run TestWatches_tellEachMatchOnceInRandomWorlds -v ./node/watch -worlds $(N) | grep -v -e '^=== '

replay: install-deps
	SHOAL_REPLAY_REPO=$(abspath $(REPO)) $(GO) test -count=1 -timeout 60m -run TestBuild_replayedCommitsEqualAFreshIndex -v ./shard

test-mcp: install-deps build
	.ci/test-mcp

# A conversation with each provider of models as another program plays it.
test-models: install-deps
	.ci/test-models

# The official clients and the conformance suite are let in by OAuth.
test-oauth: install-deps
	.ci/test-oauth

# People sign in by a certified OpenID provider from npm, and by a real Gitea where one is built.
test-signin: install-deps
	.ci/test-signin

# The pages in Debian's Chromium, with axe-core from npm.
test-web:
	.ci/test-web

# Draws the pictures of docs/pages.md anew.
pictures:
	SHOAL_TEST_PICTURES=$(abspath docs/pictures) .ci/test-web pictures

# The same browser measures them with the repositories below REPOS on so many NODES, and prints the table.
NODES ?= 1
test-web-budgets:
	SHOAL_TEST_REPOS=$(abspath $(REPOS)) SHOAL_TEST_NODES=$(NODES) .ci/test-web budgets

# The colours of code beside those of a highlighter with a grammar for each language, over the
# files below SOURCES: prints a table.
test-colours:
	SHOAL_TEST_SOURCES="$(SOURCES)" $(GO) test -count=1 -v -run "agreesWithAGrammar|SourceRows_renderingSpeed" ./shard/lex ./api/web

# The code hosts of the tests in the flesh: builds a Gitea at the first run.
test-hosts: install-deps
	SHOAL_TEST_GITEA=$$(.ci/gitea) $(GO) test -count=1 -timeout 10m -run Real -v ./node/host ./node ./api ./cmd/shoal

# From a push at a real Gitea until a search finds it, with a webhook and without: 200 pushes each.
bench-hosts: install-deps
	SHOAL_BENCH_HOSTS=1 SHOAL_TEST_GITEA=$$(.ci/gitea) $(GO) test -count=1 -timeout 40m -p 1 -v -run 'TestPushToSearchable' ./api

.PHONY: bench-listings chaos-hosts

# Three nodes follow a real Gitea while nodes crash, the server stops and fails, and its repositories change. FOR=30m is the long form.
chaos-hosts: install-deps
	SHOAL_CHAOS_HOSTS=$(or $(FOR),2m) SHOAL_TEST_GITEA=$$(.ci/gitea) $(GO) test -count=1 -timeout 60m -v -run TestRealGitea_catalogMatchesItAfterRandomFaults ./node | grep -av level=

# Calls of a listing of 10,000 repositories at each kind of host; time, memory and the log for 100,000. Two minutes.
bench-listings:
	SHOAL_BENCH_LISTINGS=1 $(GO) test -count=1 -timeout 20m -v -run TestListings_ofManyRepositoriesAreMeasured ./node/job

# 5,000 people and 100,000 repositories in one catalog: memory, snapshot, sets of viewers, and the log of a day. A minute or two.
.PHONY: bench-people
bench-people:
	SHOAL_BENCH_PEOPLE=1 $(GO) test -count=1 -timeout 20m -v -run TestPermissions_ofALargeCompanyAreMeasured ./node/job

# What people install, in dist/: packages, tarballs, image, chart, sums. packaging/README.md says more.
.PHONY: dist test-packaging
dist:
	GO="$(GO)" packaging/build

# Every command of the tutorials and how-tos, as their reader types them.
.PHONY: test-pages
test-pages: install-deps
	$(GO) test -count=1 -timeout 20m -run TestDocumentationCommands_runAsWritten -v ./cmd/shoal -pages

# The cluster of docs/how-to/cluster.md, typed on five bare Debian machines: SUITE=trixie.
.PHONY: bare-debian
bare-debian:
	.ci/bare-debian dist/shoal_*_amd64.deb $(or $(SUITE),bookworm)

# The chart against the kinds of Kubernetes, and the compose files against their schema.
test-packaging:
	cd packaging/assemble && CGO_ENABLED=0 $(GO) test ./...

# Sizes, to be read: no limit.
house:
	$(GO) run ./.ci/house

clean:
	rm -rf bin data dist
