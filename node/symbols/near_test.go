package symbols

import (
	"fmt"
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/node/browse"
	"github.com/shoalsearch/shoal/node/coverage"
	"github.com/shoalsearch/shoal/shard"
)

// answered is an answer with files as "repo path line:column ...", in their order.
func answered(files ...string) *SymbolResponse {
	out := &SymbolResponse{Coverage: coverage.Of(coverage.Parts, 1, 1), Repositories: []browse.RepoInfo{{ID: 'a', Name: "a"}, {ID: 'b', Name: "b"}}}
	for _, text := range files {
		words := strings.Fields(text)
		f := SymbolFile{RepoID: uint32(words[0][0]), Repository: words[0], Path: words[1], Language: shard.Language(words[1], nil)}
		for _, at := range words[2:] {
			var m SymbolMatch
			if _, err := fmt.Sscanf(at, "%d:%d", &m.Range.Start.Line, &m.Range.Start.Column); err != nil {
				panic(err)
			}
			f.Matches = append(f.Matches, m)
		}
		out.Files, out.MatchCount = append(out.Files, f), out.MatchCount+len(f.Matches)
	}
	return out
}

func told(r *SymbolResponse) string {
	var b strings.Builder
	for _, f := range r.Files {
		fmt.Fprintf(&b, "; %s %s", f.Repository, f.Path)
		for _, m := range f.Matches {
			fmt.Fprintf(&b, " %d:%d", m.Range.Start.Line, m.Range.Start.Column)
		}
	}
	return strings.TrimPrefix(b.String(), "; ")
}

// What is near the place of a name comes first; the rest keeps its order.
func TestSymbolOrder_nearestToThePositionComesFirst(t *testing.T) {
	t.Parallel()
	files := []string{"a x/one.c 1:1", "b y/two.py 1:1", "a y/three.go 1:1", "b y/four.h 1:1", "b y/at.cc 1:1 5:2 5:9 7:1", "a y/at.cc 1:1"}
	for _, c := range []struct {
		place *Place
		want  string
	}{
		{nil, "a x/one.c 1:1; b y/two.py 1:1; a y/three.go 1:1; b y/four.h 1:1; b y/at.cc 1:1 5:2 5:9 7:1; a y/at.cc 1:1"},
		{&Place{Repo: "b", Path: "y/at.cc"}, "b y/at.cc 1:1 5:2 5:9 7:1; b y/four.h 1:1; b y/two.py 1:1; a x/one.c 1:1; a y/at.cc 1:1; a y/three.go 1:1"},
		{&Place{Repo: "b", Path: "y/at.cc", Line: 5, Column: 4}, "b y/at.cc 5:2 1:1 5:9 7:1; b y/four.h 1:1; b y/two.py 1:1; a x/one.c 1:1; a y/at.cc 1:1; a y/three.go 1:1"},
		{&Place{Repo: "b", Path: "y/at.cc", Line: 5}, "b y/at.cc 5:9 5:2 1:1 7:1; b y/four.h 1:1; b y/two.py 1:1; a x/one.c 1:1; a y/at.cc 1:1; a y/three.go 1:1"},
		{&Place{Path: "y/at.cc"}, "b y/at.cc 1:1 5:2 5:9 7:1; a y/at.cc 1:1; b y/four.h 1:1; b y/two.py 1:1; a y/three.go 1:1; a x/one.c 1:1"},
		{&Place{Repo: "a", Path: "z/odd"}, "a x/one.c 1:1; a y/three.go 1:1; a y/at.cc 1:1; b y/two.py 1:1; b y/four.h 1:1; b y/at.cc 1:1 5:2 5:9 7:1"},
	} {
		r := answered(files...)
		r.nearFirst(c.place)
		if got := told(r); got != c.want {
			t.Errorf("%+v:\n got %s\nwant %s", c.place, got, c.want)
		}
	}
}

// What is beyond the limit is gone from all that an answer says, and told of.
func TestReferences_beyondTheLimitTheBestFilesAreKept(t *testing.T) {
	t.Parallel()
	r := answered("a x 1:1 2:1", "b y 1:1", "b z 1:1")
	if r.best(0); r.MatchCount != 4 || len(r.Files) != 3 || !r.Coverage.Exhaustive() {
		t.Errorf("without a limit: %+v", r)
	}
	if r.best(3); len(r.Files) != 3 || !r.Coverage.Exhaustive() {
		t.Errorf("with just enough: %+v", r)
	}
	if r.best(1); told(r) != "a x 1:1 2:1" || r.MatchCount != 2 || r.Coverage.Exhaustive() || len(r.Repositories) != 1 || r.Repositories[0].Name != "a" {
		t.Errorf("with one: %s of %v, %d matches, exhaustive %t", told(r), r.Repositories, r.MatchCount, r.Coverage.Exhaustive())
	}
}
