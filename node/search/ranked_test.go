package search

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/shard/query"
)

func TestWordExpr_matchesFormsOfAWord(t *testing.T) {
	t.Parallel()
	for word, forms := range map[string][]string{
		"retried": {"retry", "Retries", "retried"}, "replication": {"replica", "Replicate", "replication"}, "files": {"file", "fileSystem"},
		"gc.auto": {"gc.auto", "gcAuto", "gc_auto"}, "NewServer": {"newserver", "new_server"}, "class": {"class"}, "Retries": {"retry", "retried"},
		"Über": {"über", "überall"}, "Поиск": {"поиск"}, "\u202e": {"\u202e"}, "--no-dereference": {"no_dereference", "noDereference"}, "retry_count": {"retryCount", "retry-count"}, "v1.2": {"v1.2"}, "TLS": {"tls"},
	} {
		re := regexp.MustCompile(wordExpr(word))
		for _, f := range forms {
			if !re.MatchString(f) {
				t.Errorf("%s: %s does not find %s", word, re, f)
			}
		}
	}
	for _, word := range []string{"gc.auto", "v1.2"} {
		if other := strings.ReplaceAll(word, ".", "X"); regexp.MustCompile(wordExpr(word)).MatchString(other) {
			t.Errorf("%s finds %s", word, other)
		}
	}
}

func TestMeaningfulWords_skipsStopWords(t *testing.T) {
	t.Parallel()
	if got, want := meaningfulWords([]string{"Where", "is", "the", "`retry`", "loader's", "(logic)?", "retry"}), []string{"retry", "loader", "logic"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got := meaningfulWords([]string{"what", "is", "this"}); len(got) != 3 {
		t.Errorf("%q: where nothing else is there, they are what is meant", got)
	}
}

// The type of a commit at the beginning of its subject is no word, since feat begins Features.tsx.
func TestWithoutType_removesTheTypeOfACommit(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"feat add server url": "add server url", "fix: bad import": "bad import", "Fixed bad import": "bad import", "chore!: use streams": "use streams",
		"fix": "fix", "prefix of a feat": "prefix of a feat", "fixture for chat": "fixture for chat",
	} {
		if got := strings.Join(withoutType(strings.Fields(text)), " "); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestRankedSearch_splitsAQueryIntoWordsAndFilters(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct {
		words  []string
		filter int
	}{
		"retry or replay the log":       {[]string{"retry", "replay", "the", "log"}, 0},
		"log (retry or replay)":         {[]string{"log", "retry", "replay"}, 0},
		"log (lang:go or lang:c)":       {[]string{"log"}, 1},
		"log (lang:go retry or replay)": {[]string{"log"}, 1},
		"retry -test lang:go":           {[]string{"retry"}, 2},
	} {
		parsed, err := query.Parse(text, query.Options{})
		if err != nil {
			t.Fatal(err)
		}
		r := &ranking{}
		if got := r.split(r.revision(parsed.Q)); !slices.Equal(got, want.words) || len(r.filter) != want.filter {
			t.Errorf("%s: words %q and %d filters", text, got, len(r.filter))
		}
	}

	parsed, err := query.Parse("log rev:v1.0", query.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := &ranking{}
	if words := r.split(r.revision(parsed.Q)); len(words) != 1 || r.filter != nil || r.req.Ref != "v1.0" {
		t.Errorf("words %q, filter %v, revision %q", words, r.filter, r.req.Ref)
	}

	// A second revision, or one inside an alternative, stays in the query.
	for _, text := range []string{"log rev:v1.0 rev:v1.1", "log (rev:v1.0 or rev:v1.1)"} {
		parsed, err := query.Parse(text, query.Options{})
		if err != nil {
			t.Fatal(err)
		}
		r := &ranking{}
		if words := r.split(r.revision(parsed.Q)); len(words) != 1 || len(r.filter) != 1 {
			t.Errorf("%s: words %q, filter %v", text, words, r.filter)
		}
	}
}

func TestWordWeight_isHigherForWordsOfCodeAndRareOnes(t *testing.T) {
	t.Parallel()
	for word, code := range map[string]bool{"retryCount": true, "retry_count": true, "gc.auto": true, "utf8": true, "Session::run": true, "retry": false, "Retry": false, "TLS": false, "end.": false, "1565": false, "12.5": false} {
		plain, own := weightOf("retry", 3, 100), weightOf(word, 3, 100)
		if (own > plain) != code {
			t.Errorf("%s weighs %v, a plain word %v", word, own, plain)
		}
	}
	common, rare := weightOf("a", 90, 100), weightOf("a", 1, 100)
	if rare < 5*common {
		t.Errorf("a rare word weighs %v, a common one %v", rare, common)
	}
}

// The search of a tool ends within seconds, however much matches.
func TestToolSearch_endsWithinSeconds(t *testing.T) {
	t.Parallel()
	q := (&Searcher{d: Deps{Time: toolTime}}).toolQuery([]query.Q{&query.Text{Pattern: "(?s).*", Regexp: true}})
	if q.Timeout != 5*time.Second || q.Count != query.NoCount || len(q.Q.(*query.And).Subs) != 1 {
		t.Errorf("%+v", q)
	}
}
