package search

import (
	"cmp"
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/node/browse"
)

// relevanceOf scores a text for words, all of weight 1.
func relevanceOf(path, text string, names []string, words ...string) float64 {
	var list []rankedWord
	for _, w := range words {
		word, err := newRankedWord(w)
		if err != nil {
			panic(err)
		}
		word.files, word.weight = 1, 1
		list = append(list, word)
	}

	var c relevance
	for i := range list {
		if list[i].m.Matches([]byte(text)) {
			c.has |= 1 << i
		}
	}
	c.named(list, path)
	for i, line := range strings.Split(text, "\n") {
		c.line(list, browse.Line{Number: i + 1, Text: []byte(line)})
	}
	for _, name := range names {
		c.name(list, name)
	}
	return c.score(list, path)
}

func TestAFileHasMoreToDoWithWords(t *testing.T) {
	t.Parallel()
	far := "retry" + strings.Repeat("\n", 30) + "replication"
	for _, c := range []struct {
		why                 string
		more, less          string
		symbol, otherSymbol string
		path                string // of the one with more
	}{
		{why: "that it has side by side", more: "retry replication", less: "retry\nreplication"},
		{why: "that it has near each other", more: "retry\nreplication", less: far},
		{why: "that begin names, not stand within them", more: "doRetry", less: "xretry"},
		{why: "that it has often", more: "retry\nretry\nretry", less: "retry"},
		{why: "that are the name of a symbol", more: "retry", less: "retry", symbol: "retryReplication", otherSymbol: "retryOther"},
		{why: "that people wrote", more: "retry replication", less: "retry replication " + strings.Repeat("x ", 300)},
		{why: "in its path", more: "retry", less: "retry replication", path: "a/replication.go"},
	} {
		more := relevanceOf(cmp.Or(c.path, "a/b.go"), c.more, []string{c.symbol}, "retry", "replication")
		less := relevanceOf("a/b.go", c.less, []string{c.otherSymbol}, "retry", "replication")
		if more <= less {
			t.Errorf("words %s: %.2f, not more than %.2f", c.why, more, less)
		}
	}
}

func TestWhereAPartOfANameBegins(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{"|gc": true, "x.|gc": true, "do|Gc": true, "gc_|auto": true, "bu|gcheck": false, "X|GC": false, "é|gc": false, "7|gc": true} {
		at := strings.IndexByte(text, '|')
		if got := beginsPart([]byte(strings.Replace(text, "|", "", 1)), at); got != want {
			t.Errorf("%s: %t", text, got)
		}
	}
}
