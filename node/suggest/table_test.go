package suggest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/browse"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/node/search"
	"github.com/shoalsearch/shoal/node/symbols"
	"github.com/shoalsearch/shoal/shard/query"
)

// row is a query with | at the cursor, and the expected queries after each suggestion, with |
// after the inserted text.
type row struct{ typed, want string }

// shown returns suggestions in the form of a row.
func shown(typed string, list []Suggestion) string {
	text := strings.Replace(typed, "|", "", 1)
	var out []string
	for _, s := range list {
		out = append(out, text[:s.Start]+s.Insert+"|"+text[s.End:])
	}
	return strings.Join(out, "\n")
}

func (r row) check(t *testing.T, s *Suggester, v catalog.Viewer) {
	t.Helper()
	before, after, _ := strings.Cut(r.typed, "|")
	got, err := s.Complete(t.Context(), v, before+after, len(before))
	if err != nil {
		t.Errorf("%s: %v", r.typed, err)
		return
	}
	if text := shown(r.typed, got); text != strings.TrimSpace(r.want) {
		t.Errorf("%s\n\ngot\n%s\n\nwant\n%s", r.typed, text, strings.TrimSpace(r.want))
	}
}

// Suggestions are filters by prefix, values of each filter, and meanings of a word.
func TestQuerySuggestions_offerFiltersValuesAndMeanings(t *testing.T) {
	t.Parallel()
	s := suggester(&fake{})
	for _, r := range []row{
		// Filters.
		{"|", "repo:|\nfile:|\nlang:|\nsym:|\ndep:|\nrev:|\nat:|\ncontent:|\ncontext:|\nreposet:|\ncase:|\ntype:|"}, // the first twelve
		{"f|", "file:|\nfork:|"},
		{"a x F|", "a x file:|\na x fork:|"},
		{"-f| x", "-file:| x\n-fork:| x"},
		{"(v|)", "(visibility:|)"},
		{"x|", ""},                                       // no filter begins with it, and for one letter nothing else is searched
		{"x|y", "sym:^xying$ |\nfile:^cmd/main\\.go$ |"}, // the letters after the cursor belong to the word

		// Filters with few values.
		{"case:|", "case:yes |\ncase:no |\ncase:auto |"},
		{"a case:a| b", "a case:auto | b"},
		{"-archived:o|", "-archived:only |"},
		{"visibility:p|", "visibility:public |\nvisibility:private |"},
		{"type:x|", ""},
		{"count:1|", "count:100 |\ncount:1000 |\ncount:10000 |"},
		{"timeout:5|", "timeout:500ms |\ntimeout:5s |"},

		// Repositories, by any part of their names.
		{"repo:app|", "repo:^acme/app$ |"},
		{`repo:^acme/ap| rev:x`, `repo:^acme/app$ | rev:x`},
		{"r:app|", "r:^acme/app$ |"},
		{"reposet:x/y,app|", "reposet:x/y,acme/app |"},

		// Languages of files that are there, the short names first.
		{"lang:g|", "lang:Go |\nlang:GraphQL |"},
		{"lang:nosuch|", ""},
		{"lang:erl|", "lang:Erlang |"},
		{"l:Objective-c|", "l:Objective-C |\nl:Objective-C++ |"},
		{"lang:emacs|", `lang:"Emacs Lisp" |`},

		// Revisions of the query's only repository, else the indexed ones.
		{"rev:|", "rev:* |\nrev:HEAD |\nrev:main |"},
		{"repo:^acme/app$ rev:f|", "repo:^acme/app$ rev:feature/x |"},
		{"branch:MA|", "branch:main |"},
		{"repo:a repo:b rev:f|", ""}, // with two repositories it is unclear which one is meant

		// Contexts, files, symbols.
		{"context:e|", "context:web |"},
		{"context:|", "context:web |\ncontext:infra |"},
		{"file:|", ""},
		{"file:main|", `file:^cmd/main\.go$ |`},
		{"-f:ma|", `-f:^cmd/main\.go$ |`},
		{"sym:G|", ""}, // too many names begin with one letter
		{"sym:Greet|", "sym:^Greeting$ |"},

		// A word may be a repository, a symbol or a file.
		{"acme|", "repo:^acme/app$ |\nsym:^acmeing$ |\nfile:^cmd/main\\.go$ |"},

		// Places without suggestions.
		{`"re|`, ""},
		{`a "b c|`, ""},
		{`"a" f|`, "\"a\" file:|\n\"a\" fork:|"},
		{"content:fi|", ""},
		{"c:fi|", ""},
		{"count:none|", ""},
		{"at:2026|", ""},
	} {
		r.check(t, s, catalog.Guest())
	}
}

// file::open is a name in C++.
func TestQuerySuggestions_twoColonsAreNoFilter(t *testing.T) {
	t.Parallel()
	got, err := suggester(&fake{}).Complete(t.Context(), catalog.Guest(), "file::op", 8)
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range got {
		if strings.Contains(g.Insert, "file:^cmd") && g.Start != 0 || strings.HasPrefix(g.Insert, "file::") {
			t.Errorf("%+v", g)
		}
	}
	if len(got) == 0 || got[0].Kind == File {
		t.Errorf("it was taken for the filter: %+v", got)
	}
}

// Every filter is suggested by its name, and its values after any of its names.
func TestQuerySuggestions_offerEveryFilter(t *testing.T) {
	t.Parallel()
	s := suggester(&fake{})
	suggested := func(text, insert string) bool {
		list, err := s.Complete(t.Context(), catalog.Guest(), text, len(text))
		if err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(list, func(g Suggestion) bool { return g.Insert == insert })
	}
	for _, f := range query.Filters() {
		if usual := f.Names[0]; !suggested(usual[:len(usual)-1], usual+":") {
			t.Errorf("%s: is not suggested", usual)
		}
		for _, name := range f.Names {
			for _, value := range f.Values {
				if !suggested(name+":"+value[:1], name+":"+value+" ") {
					t.Errorf("%s:%s is not suggested", name, value)
				}
			}
		}
	}
}

// A hidden repository is not suggested: neither by name, nor by a revision, nor in counts.
func TestQuerySuggestions_hideHiddenRepositories(t *testing.T) {
	t.Parallel()
	s := suggester(&fake{})
	for _, r := range []row{
		{"repo:secret|", ""},
		{"repo:^acme/secret$ rev:f|", ""},
		{"reposet:sec|", ""},
		{"secret|", "sym:^secreting$ |\nfile:^cmd/main\\.go$ |"},
	} {
		r.check(t, s, catalog.Guest())
	}

	// For a viewer with access it is there.
	for _, r := range []row{
		{"repo:secret|", "repo:^acme/secret$ |"},
		{"repo:^acme/secret$ rev:f|", "repo:^acme/secret$ rev:feature/x |"},
	} {
		r.check(t, s, catalog.Operator())
	}
}

// The error is a sentence.
func TestQuerySuggestions_refuseInvalidRequests(t *testing.T) {
	t.Parallel()
	s := suggester(&fake{})
	for _, tt := range []struct {
		text   string
		cursor int
		want   string
	}{
		{strings.Repeat("a", MaxQuery+1), 0, "at most 4096"},
		{"abc", 4, "from 0 to the 3 bytes"},
		{"abc", -1, "from 0 to the 3 bytes"},
	} {
		if _, err := s.Complete(t.Context(), catalog.Guest(), tt.text, tt.cursor); !errors.Is(err, call.ErrInvalid) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%d bytes, at %d: %v, want %q", len(tt.text), tt.cursor, err, tt.want)
		}
	}
	if _, err := s.Complete(t.Context(), catalog.Guest(), strings.Repeat("a", MaxQuery), MaxQuery); err != nil {
		t.Errorf("the longest query: %v", err)
	}

	for _, req := range []FilesRequest{{Repo: "acme/app", Limit: -1}, {Repo: "acme/app", Limit: MaxPaths + 1}, {Repo: "acme/app", Query: strings.Repeat("a", 257)}} {
		if _, err := s.Files(t.Context(), catalog.Guest(), req); !errors.Is(err, call.ErrInvalid) {
			t.Errorf("%+v: %v", req, err)
		}
	}
}

// busy is a node with many results that answers slowly.
type busy struct {
	fake
	slow time.Duration
}

func (b *busy) Repos(_ context.Context, _ catalog.Viewer, req browse.ReposRequest) (*browse.ReposResponse, error) {
	r := &browse.ReposResponse{Total: 1000}
	for i := range min(1000, req.PerPage) {
		r.Repos = append(r.Repos, browse.RepoInfo{Name: fmt.Sprintf("acme/app%d", i)})
	}
	return r, nil
}

func (b *busy) Search(ctx context.Context, _ catalog.Viewer, req search.Request) (*search.Response, error) {
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(b.slow):
	}
	return b.fake.Search(ctx, catalog.Guest(), req)
}

// The number is limited, and the time: slow parts are left out.
func TestQuerySuggestions_limitNumberAndTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, tt := range []struct {
			typed string
			slow  time.Duration
			count int
			kinds string
		}{
			{"repo:app", 0, most, "repository"},
			{"app", 0, 5, "repository symbol file"}, // three, one, one
			{"app", time.Second, 4, "repository symbol"},
			{"file:app", time.Second, 0, ""},
			{"lang:", 0, 7, "language"},
			{"lang:", time.Second, 0, ""},
		} {
			b := &busy{slow: tt.slow}
			s := New(Deps{Search: b, Browse: b, Within: Within})
			began := time.Now()
			got, err := s.Complete(t.Context(), catalog.Guest(), tt.typed, len(tt.typed))
			if err != nil || len(got) != tt.count {
				t.Errorf("%s: %d suggestions, %v; want %d", tt.typed, len(got), err, tt.count)
			}
			var kinds []string
			for _, g := range got {
				if len(kinds) == 0 || kinds[len(kinds)-1] != string(g.Kind) {
					kinds = append(kinds, string(g.Kind))
				}
			}
			if text := strings.Join(kinds, " "); text != tt.kinds {
				t.Errorf("%s: %s, want %s", tt.typed, text, tt.kinds)
			}
			if took := time.Since(began); took > Within {
				t.Errorf("%s: took %v, at most %v", tt.typed, took, Within)
			}
		}
	})
}

// asked is a node that records the last query of a search.
type asked struct {
	fake
	query string
}

func (a *asked) Search(ctx context.Context, v catalog.Viewer, req search.Request) (*search.Response, error) {
	a.query = req.Query
	return a.fake.Search(ctx, v, req)
}

// The search for files has part of the time, so that its results arrive in time.
func TestQuerySuggestions_giveTheFileSearchPartOfTheTime(t *testing.T) {
	t.Parallel()
	for within, want := range map[time.Duration]string{
		Within:      "type:file timeout:100ms file:",
		time.Minute: "type:file timeout:40s file:",
	} {
		a := &asked{}
		s := New(Deps{Search: a, Browse: a, Within: within})
		if _, err := s.Complete(t.Context(), catalog.Guest(), "file:ma", len("file:ma")); err != nil || !strings.HasPrefix(a.query, want) {
			t.Errorf("within %v: %q, %v; want %s", within, a.query, err, want)
		}
	}
}

// failing is a node on which nothing works.
type failing struct{ fake }

var errBroken = errors.New("broken")

func (f *failing) Repos(context.Context, catalog.Viewer, browse.ReposRequest) (*browse.ReposResponse, error) {
	return nil, errBroken
}

func (f *failing) Search(context.Context, catalog.Viewer, search.Request) (*search.Response, error) {
	return nil, errBroken
}

func (f *failing) Definitions(context.Context, catalog.Viewer, symbols.SymbolRequest) (*symbols.SymbolResponse, error) {
	return nil, errBroken
}

// The user gets what there is, and no error.
func TestQuerySuggestions_leaveOutFailedParts(t *testing.T) {
	t.Parallel()
	f := &failing{}
	s := New(Deps{Search: f, Browse: f, Within: Within, Contexts: func(context.Context, catalog.Viewer) ([]Context, error) { return nil, errBroken }})
	for _, r := range []row{
		{"fi|", "file:|"}, {"repo:a|", ""}, {"rev:|", "rev:* |"}, {"context:|", ""}, {"file:a|", ""}, {"sym:ab|", ""}, {"reposet:a|", ""},
	} {
		r.check(t, s, catalog.Guest())
	}
}

// The limit is eight lists.
func TestSuggestionListCache_keepsEightLists(t *testing.T) {
	t.Parallel()
	l := newLists()
	reads := 0
	read := func() (list, error) { reads++; return list{}, nil }
	for i := range maxLists + 1 {
		if _, err := l.getOrRead(fmt.Sprint(i), read); err != nil {
			t.Fatal(err)
		}
	}
	for _, key := range []string{"8", "1", "0", "0"} { // the least recently used one is gone
		if _, err := l.getOrRead(key, read); err != nil {
			t.Fatal(err)
		}
	}
	if reads != maxLists+2 || l.cache.Size() != maxLists {
		t.Errorf("%d reads, %d kept; want %d and %d", reads, l.cache.Size(), maxLists+2, maxLists)
	}

	// Errors are not cached.
	if _, err := l.getOrRead("x", func() (list, error) { return list{}, errBroken }); err == nil {
		t.Error("a failure is hidden")
	}
	if _, err := l.getOrRead("x", read); err != nil || reads != maxLists+3 {
		t.Errorf("%v, %d reads", err, reads)
	}
}

// scattered is a node whose files only match letters that are apart.
type scattered struct{ fake }

func (s *scattered) Search(ctx context.Context, v catalog.Viewer, req search.Request) (*search.Response, error) {
	if !strings.Contains(req.Query, "m[^/]*n[^/]*g[^/]*$") {
		return &search.Response{}, nil
	}
	return s.fake.Search(ctx, v, req)
}

// A file is found by some letters of its name, as a value of the filter.
func TestFileSuggestions_matchByFewLetters(t *testing.T) {
	t.Parallel()
	s := suggester(&fake{})
	s.d.Search = &scattered{}
	for _, r := range []row{{"file:mng|", `file:^cmd/main\.go$ |`}, {"file:mn|", ""}, {"file:m/ng|", ""}} {
		r.check(t, s, catalog.Guest())
	}
}
