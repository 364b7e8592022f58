package search

import (
	"cmp"
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/shard"
)

// relevanceOf returns the score of a text for words that all have weight 1.
func relevanceOf(path, text string, names []string, words ...string) float64 {
	r := &ranking{forms: map[string][]place{}}
	chunk := shard.Chunk{Content: []byte(text), Start: shard.Position{Line: 1}}
	tally := &shard.Tally{Matches: map[string]int{}, Names: names}
	for _, w := range words {
		word, err := newRankedWord(w)
		if err != nil {
			panic(err)
		}
		word.files, word.weight = 1, 1
		r.words = append(r.words, word)
		for _, span := range word.m.Append(nil, chunk.Content, -1) {
			start := shard.Position{Offset: uint32(span.Start), Line: uint32(1 + strings.Count(text[:span.Start], "\n"))}
			chunk.Ranges = append(chunk.Ranges, shard.Range{Start: start, End: shard.Position{Offset: uint32(span.End), Line: start.Line}})
			tally.Matches[word.expr]++
		}
	}

	c := &candidate{}
	c.factor = pathFactor(path)
	c.scorePath(r.words, path)
	c.bestBlock = bestBlock(r.linesOf(c, []shard.Chunk{chunk}), r.words).weight
	c.takeTally(r.words, tally)
	return c.score(r.words)
}

func TestRelevance_ranksBetterMatchesHigher(t *testing.T) {
	t.Parallel()
	far := "retry" + strings.Repeat("\n", 30) + "replication"
	for _, c := range []struct {
		why                 string
		more, less          string
		symbol, otherSymbol string
		path                string // of the file that scores higher
	}{
		{why: "that it has near each other", more: "retry\nreplication", less: far},
		{why: "that begin names, not stand within them", more: "doRetry", less: "xretry"},
		{why: "that it has often", more: "retry\nretry\nretry", less: "retry"},
		{why: "that are the name of a symbol", more: "retry", less: "retry", symbol: "retryReplication", otherSymbol: "retryOther"},
		{why: "that people wrote", more: "retry replication", less: "retry replication " + strings.Repeat("x ", 300)},
		{why: "that are all of the name of a symbol", more: "retry", less: "retry", symbol: "retry", otherSymbol: "retryOtherThings"},
		{why: "in its path", more: "retry", less: "retry replication", path: "a/replication.go"},
	} {
		more := relevanceOf(cmp.Or(c.path, "a/b.go"), c.more, []string{c.symbol}, "retry", "replication")
		less := relevanceOf("a/b.go", c.less, []string{c.otherSymbol}, "retry", "replication")
		if more <= less {
			t.Errorf("words %s: %.2f, not more than %.2f", c.why, more, less)
		}
	}
}

// Source code ranks before files that repeat what it says.
func TestPathFactor_ranksSourceCodeFirst(t *testing.T) {
	t.Parallel()
	for _, path := range []string{
		"CHANGELOG.md", "Changes", "docs/History.rst", "NEWS", "docs/releases.md", "changelogs/fragments/1.yml", "extras/catch_amalgamated.cpp", "single_include/json.hpp",
		"www/versioned_docs/version-10.x/a.md", "tests/approvals/cli.approved.txt", "okhttp/api/okhttp.api", "package-lock.json", "yarn.lock", "a/__snapshots__/x.snap",
		".github/workflows/ci.yml", "tsconfig.json", "CMakeLists.txt", "README.markdown", "src/a_test.go", "vendor/a.go",
	} {
		if pathFactor(path) >= 1 {
			t.Errorf("%s counts like source", path)
		}
	}
	for _, path := range []string{"src/history.go", "lib/changes.rb", "release.py", "src/version.c", "api/routes.ts", "baseline.go"} {
		if pathFactor(path) != 1 {
			t.Errorf("%s counts %v", path, pathFactor(path))
		}
	}
	if pathFactor("CHANGELOG.md") >= pathFactor("docs/a.md") || pathFactor("docs/a.md") >= pathFactor("a.go") {
		t.Error("a change log, a page and source count alike")
	}
}

func TestWordWeight_isHigherForWordsOfCodeAndRareOnes(t *testing.T) {
	t.Parallel()
	for word, code := range map[string]bool{"retryCount": true, "retry_count": true, "gc.auto": true, "utf8": true, "Session::run": true, "retry": false, "Retry": false, "TLS": false, "end.": false} {
		plain, w := rankedWord{text: "retry", files: 3}, rankedWord{text: word, files: 3}
		plain.weigh(100)
		w.weigh(100)
		if (w.weight > plain.weight) != code {
			t.Errorf("%s weighs %v, a plain word %v", word, w.weight, plain.weight)
		}
	}
	common, rare := rankedWord{files: 90}, rankedWord{files: 1}
	common.weigh(100)
	rare.weigh(100)
	if rare.weight < 5*common.weight {
		t.Errorf("a rare word weighs %v, a common one %v", rare.weight, common.weight)
	}
}

func TestBeginsPart_recognizesCamelCaseAndUnderscores(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{"|gc": true, "x.|gc": true, "do|Gc": true, "gc_|auto": true, "bu|gcheck": false, "X|GC": false, "é|gc": false, "7|gc": true} {
		at := strings.IndexByte(text, '|')
		if got := beginsPart([]byte(strings.Replace(text, "|", "", 1)), at); got != want {
			t.Errorf("%s: %t", text, got)
		}
	}
}
