package shard

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/shard/query"
)

// rankedIn ranks the files of a repository, given by path and text, by words that all weigh 1.
func rankedIn(t *testing.T, texts map[string]string, tagged bool, r Request, words ...string) *Result {
	t.Helper()
	tree := map[string][]string{}
	for path, text := range texts {
		tree[path] = []string{text}
	}
	w := &world{repos: []Repository{{ID: 1, Name: "r", Revisions: []Revision{{Name: "HEAD", Commit: blobID("1")}}}}, trees: []map[string][]string{tree}}
	set, parts := w.built(t, t.TempDir(), tagged, BuildOptions{})
	v, _ := set.Acquire(parts)
	t.Cleanup(v.Release)

	if r.Q == nil {
		r.Q = query.Const(true)
	}
	for _, word := range words {
		r.Words = append(r.Words, Word{Expr: "(?i)" + word, Weight: 1})
	}
	res, err := v.Search(context.Background(), r)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func TestRelevance_ranksBetterMatchesHigher(t *testing.T) {
	t.Parallel()
	far := "retry" + strings.Repeat("\n", 30) + "replication"
	for _, c := range []struct {
		why        string
		more, less string
		path       string // of the file that scores higher
	}{
		{why: "that it has near each other", more: "retry\nreplication", less: far},
		{why: "that begin names, not stand within them", more: "doRetry", less: "xretry"},
		{why: "that it has often", more: "retry\nretry\nretry", less: "retry"},
		{why: "that people wrote", more: "retry replication", less: "retry replication " + strings.Repeat("x ", 300)},
		{why: "in its path", more: "retry", less: "retry replication", path: "a/replication.go"},
		{why: "in a file of source", more: "retry", less: "retry", path: "b.go"},
	} {
		better, worse := cmp.Or(c.path, "a/z.go"), "a/b.md"
		if c.path != "b.go" {
			worse = "a/b.go"
		}
		res := rankedIn(t, map[string]string{better: c.more + "\n", worse: c.less}, false, Request{Shown: 2}, "retry", "replication")
		if len(res.Files) != 2 || res.Files[0].Path != better || res.Files[0].Score <= res.Files[1].Score {
			t.Errorf("words %s: %+v", c.why, res.Files)
		}
	}
}

// The name of a symbol counts by how much of it the words are.
func TestRelevance_countsNamesOfSymbols(t *testing.T) {
	t.Parallel()
	p, err := newPlan(query.Const(true), []Word{{"(?i)retry", 1}, {"(?i)replication", 1}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	last := math.Inf(1)
	for _, name := range []string{"retryReplication", "retry", "retry_other", "retryOtherThings", "other"} {
		c := relevance{has: 3}
		c.scoreSymbol(p.words, []byte(name))
		if c.bestSymbol >= last || (c.bestSymbol == 0) != (name == "other") {
			t.Errorf("%s scores %v, the name before it %v", name, c.bestSymbol, last)
		}
		last = c.bestSymbol
	}
}

// naiveScore is the score of a text without symbols, read line by line.
func naiveScore(path, text string, words []string) (score float64, has uint64) {
	var lines []uint64 // by line: the words that begin a word of it, above those inside words
	for i, word := range words {
		expr := regexp.MustCompile("(?i)" + word)
		n := 0
		for at, line := range strings.Split(text, "\n") {
			if i == 0 {
				lines = append(lines, 0)
			}
			for _, m := range expr.FindAllStringIndex(line, -1) {
				n++
				has |= 1 << i
				if len(line) >= proseLine {
					continue
				}
				if lines[at] |= 1 << i; beginsPart([]byte(line), m[0]) {
					lines[at] |= 1 << (i + 32)
				}
			}
		}
		if n > 0 {
			score += perHas + float64(n)/(float64(n)+often)
		}
		if strings.Contains(path, word) {
			score += perName
			if n == 0 {
				score += perHas
			}
			has |= 1 << i
		}
	}

	best := 0.0
	for from := range lines {
		var together uint64
		for _, l := range lines[from:min(from+blockLines, len(lines))] {
			together |= l
		}
		sum := 0.0
		for i := range words {
			switch {
			case together>>(i+32)&1 != 0:
				sum++
			case together>>i&1 != 0:
				sum += insideWord
			}
		}
		best = max(best, sum)
	}
	return (score + best) * pathFactor(categoryOf(path), []byte(path)), has
}

// A ranking has each file with a word once, with the score of its whole text, however the text is cut into
// units. The counts of files by the postings are at least the true ones.
func TestRanking_scoresLikeItsTwin(t *testing.T) {
	t.Parallel()
	words := []string{"needle", "thread", "cloth", "nowhere"}
	for seed := range uint64(12) {
		r := rand.New(rand.NewPCG(seed, 3))
		texts := map[string]string{}
		for f := range 1 + r.IntN(12) {
			var text strings.Builder
			for range r.IntN(1 + r.IntN(3000)) {
				text.WriteString([]string{"needle ", "xthread", " thread", "Cloth\n", "\n", "\n", "a line of other words\n", strings.Repeat("long ", 90)}[min(r.IntN(60), 7)])
			}
			texts[fmt.Sprintf("d%d/%s%d.%s", f, []string{"f", "needle", "x_test"}[r.IntN(3)], f, []string{"go", "md", "json"}[r.IntN(3)])] = text.String()
		}

		shown := 1 + r.IntN(12)
		res := rankedIn(t, texts, false, Request{Shown: shown}, words...)
		counts, wanted := make([]int, len(words)), 0
		for path, text := range texts {
			score, has := naiveScore(path, text, words)
			at := slices.IndexFunc(res.Files, func(f File) bool { return f.Path == path })
			if has == 0 {
				if at >= 0 && res.Files[at].Words != 0 {
					t.Errorf("seed %d: %s has no word", seed, path)
				}
				continue
			}
			wanted++
			if at < 0 {
				t.Fatalf("seed %d: %s is missing", seed, path)
			}
			if f := res.Files[at]; math.Abs(f.Score-score) > 1e-9 || f.Words != has {
				t.Errorf("seed %d: %s scores %v and has %b, want %v and %b", seed, path, f.Score, f.Words, score, has)
			}
			for i := range words {
				counts[i] += int(has >> i & 1)
			}
		}

		// Files come in the order of scores. The first ones of different texts show lines with words.
		texted := map[string]bool{}
		for i, f := range res.Files {
			if i > 0 && f.Score > res.Files[i-1].Score {
				t.Errorf("seed %d: %s comes too late", seed, f.Path)
			}
			first := !texted[f.OID] && len(texted) < shown
			texted[f.OID] = true
			if inText := strings.ContainsAny(texts[f.Path], "nC") && regexp.MustCompile("(?i)needle|thread|cloth").MatchString(texts[f.Path]); first && inText != (len(f.Chunks) > 0) {
				t.Errorf("seed %d: %s has %d chunks", seed, f.Path, len(f.Chunks))
			}
			for _, c := range f.Chunks {
				for _, at := range c.Ranges {
					word := texts[f.Path][at.Start.Offset:at.End.Offset]
					if !slices.Contains(words, strings.ToLower(word)) || int(at.Start.Line) != 1+strings.Count(texts[f.Path][:at.Start.Offset], "\n") {
						t.Errorf("seed %d: %s line %d: %q", seed, f.Path, at.Start.Line, word)
					}
				}
			}
		}

		res = rankedIn(t, texts, false, Request{CountWords: true}, words...)
		if len(res.Files) > 0 || len(res.WordFiles) != len(words) {
			t.Fatalf("seed %d: %d files, counts %d", seed, len(res.Files), res.WordFiles)
		}
		for i, n := range counts {
			if res.WordFiles[i] < n || res.WordFiles[i] > len(texts) {
				t.Errorf("seed %d: %d files have %s, at least %d wanted", seed, res.WordFiles[i], words[i], n)
			}
		}
	}
}

// The conditions of a query hold for every file of a ranking, also those about its text.
func TestRanking_filtersFiles(t *testing.T) {
	t.Parallel()
	texts := map[string]string{"a.go": "retry", "b.go": "retry hidden", "c.md": "retry", "d.go": "other"}
	not := &query.Not{Sub: &query.Text{Pattern: "hidden", Field: query.Content}}
	code := &query.Text{Pattern: `\.go$`, Regexp: true, Field: query.Name}
	res := rankedIn(t, texts, false, Request{Q: &query.And{Subs: []query.Q{not, code}}, Shown: 3}, "retry")
	if len(res.Files) != 1 || res.Files[0].Path != "a.go" {
		t.Errorf("%+v", res.Files)
	}
	res = rankedIn(t, texts, false, Request{Q: &query.And{Subs: []query.Q{not, code}}, CountWords: true}, "retry", "other")
	if !slices.Equal(res.WordFiles, []int{1, 1}) {
		t.Errorf("%d", res.WordFiles)
	}
}

// Source code ranks before files that repeat what it says.
func TestPathFactor_ranksSourceCodeFirst(t *testing.T) {
	t.Parallel()
	for _, path := range []string{
		"CHANGELOG.md", "Changes", "docs/History.rst", "NEWS", "docs/releases.md", "changelogs/fragments/1.yml", "extras/catch_amalgamated.cpp", "single_include/json.hpp",
		"www/versioned_docs/version-10.x/a.md", "tests/approvals/cli.approved.txt", "okhttp/api/okhttp.api", "package-lock.json", "yarn.lock", "a/__snapshots__/x.snap",
		".github/workflows/ci.yml", "tsconfig.json", "CMakeLists.txt", "README.markdown", "ISSUE_TEMPLATE", "Doxyfile", "a.xcodeproj/project.pbxproj", "a.vcxproj", "META-INF/spring.properties", "src/a_test.go", "vendor/a.go",
	} {
		if factorOf(path) >= 1 {
			t.Errorf("%s counts like source", path)
		}
	}
	for _, path := range []string{"src/history.go", "lib/changes.rb", "release.py", "src/version.c", "api/routes.ts", "baseline.go"} {
		if factorOf(path) != 1 {
			t.Errorf("%s counts %v", path, factorOf(path))
		}
	}
	if factorOf("CHANGELOG.md") >= factorOf("docs/a.md") || factorOf("docs/a.md") >= factorOf("a.go") {
		t.Error("a change log, a page and source count alike")
	}
}

// A file among examples or documents ranks like source if a word of the query and of its path names them.
func TestLift_ofTheKindThatTheQueryNames(t *testing.T) {
	t.Parallel()
	texts := map[string]string{"src/chat.go": "chat", "examples/chat.go": "chat", "docs/chat.md": "chat", "tests/chat.go": "chat", "vendor/example/chat.go": "chat"}
	for _, tt := range []struct{ word, first string }{
		{"", "src/chat.go"}, {"example", "examples/chat.go"}, {"exampl", "examples/chat.go"}, {"doc", "docs/chat.md"},
		{"test", "src/chat.go"}, {"e", "src/chat.go"},
	} {
		words := []string{"chat", tt.word}
		if tt.word == "" {
			words = words[:1]
		}
		res := rankedIn(t, texts, false, Request{Shown: 1}, words...)
		if got := res.Files[0].Path; got != tt.first {
			t.Errorf("%q: %s is first, want %s", tt.word, got, tt.first)
		}
	}
}

func factorOf(path string) float64 { return pathFactor(categoryOf(path), []byte(path)) }

func TestBeginsPart_recognizesCamelCaseAndUnderscores(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{"|gc": true, "x.|gc": true, "do|Gc": true, "gc_|auto": true, "bu|gcheck": false, "X|GC": false, "é|gc": false, "7|gc": true} {
		at := strings.IndexByte(text, '|')
		if got := beginsPart([]byte(strings.Replace(text, "|", "", 1)), at); got != want {
			t.Errorf("%s: %t", text, got)
		}
	}
}
