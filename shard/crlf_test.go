package shard

import (
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/shoalsearch/shoal/shard/query"
)

// foundLines returns where a query matches, as path:line:column-column. It leaves out the end of a
// match over several lines.
func foundLines(t *testing.T, v *View, q *query.Text) map[string]int {
	t.Helper()
	res, err := v.Search(context.Background(), Request{Q: q, MaxMatches: 1 << 30, CountAll: true})
	if err != nil || res.Cut {
		t.Fatalf("%s: cut %v, %v", q, res.Cut, err)
	}
	out := map[string]int{}
	for _, f := range res.Files {
		for _, c := range f.Chunks {
			for _, r := range c.Ranges {
				at := fmt.Sprintf("%s%s:%d:%d", f.Path, strings.Join(f.Revisions, ","), r.Start.Line, r.Start.Column)
				if r.End.Line == r.Start.Line {
					at += fmt.Sprintf("-%d", r.End.Column)
				}
				out[at]++
			}
		}
	}
	return out
}

// Files with "\r\n" give the same answers as the same files with "\n", wherever the units of the
// index end.
func TestSearch_crlfAndLfGiveTheSameMatches(t *testing.T) {
	t.Parallel()
	shapes := []string{`%s$`, `^%s$`, `[a-z]+_%s$`, `%s.*$`, `(%s|%s)$`, `\b%s\b$`, `^$`, `[a-z]{4,}$`, `%s$\n%s`, `%s$\n^$\n`, `\(\)$|^%s`, `%s\n.*%s`, `\n%s`, `%s[^a]+%s`, `%s\s%s`, `%s(?s:.)%s`, `^.{1,3}$`, `[;{]\n\s*%s`, `\n\n`, `%s\n\n+[a-z]`}
	for seed := range uint64(6) {
		r := rand.New(rand.NewPCG(seed, 21))
		w := randomWorld(r)
		dos := &world{repos: w.repos}
		for _, tree := range w.trees {
			other := map[string][]string{}
			for path, versions := range tree {
				for _, text := range versions {
					if text != absent {
						text = strings.ReplaceAll(text, "\n", "\r\n")
					}
					other[path] = append(other[path], text)
				}
			}
			dos.trees = append(dos.trees, other)
		}

		var views [2]*View
		for i, x := range []*world{w, dos} {
			set, parts := x.built(t, t.TempDir(), seed%2 == 0, BuildOptions{})
			views[i], _ = set.Acquire(parts)
			defer views[i].Release()
		}

		for range 60 {
			expr := shapes[r.IntN(len(shapes))]
			for strings.Contains(expr, "%s") {
				expr = strings.Replace(expr, "%s", regexp.QuoteMeta(words[r.IntN(len(words))]), 1)
			}
			q := &query.Text{Pattern: expr, Regexp: true, WordBegins: r.IntN(4) == 0, WordEnds: r.IntN(4) == 0}
			if lit := w.randomLiteral(r); r.IntN(3) == 0 && utf8.ValidString(lit) {
				q = &query.Text{Pattern: lit, Fold: r.IntN(2) == 0, WordBegins: r.IntN(3) == 0, WordEnds: r.IntN(3) == 0}
			}
			if unix, dos := foundLines(t, views[0], q), foundLines(t, views[1], q); !reflect.DeepEqual(unix, dos) {
				t.Fatalf("seed %d, %s: %d places with \\n, %d with \\r\\n\n%v\n%v", seed, q, len(unix), len(dos), unix, dos)
			}
		}
	}
}
