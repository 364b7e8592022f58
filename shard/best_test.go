package shard

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/shard/match"
	"github.com/shoalsearch/shoal/shard/query"
)

// answered runs a search for two words. It returns one text for each file: its path, its number of
// matches, and the lines that are shown.
func answered(t *testing.T, v *View, most, perFile int) (files []string, res *Result) {
	t.Helper()
	q := &query.And{Subs: []query.Q{&query.Text{Pattern: "func", Fold: true}, &query.Text{Pattern: "tree", Fold: true}}}
	res, err := v.Search(context.Background(), Request{Q: q, MaxMatches: most, MaxPerFile: perFile})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range res.Files {
		text := fmt.Sprintf("%s %d:", f.Path, f.Matches)
		for _, c := range f.Chunks {
			text += " " + strings.ReplaceAll(strings.TrimSpace(string(c.Content)), "\n", " / ")
		}
		files = append(files, text)
	}
	return files, res
}

// A file with many matches leaves room for other files, and shows its best lines. Its number of
// matches is reported, and the answer does not count as cut.
func TestMaxPerFile_leavesRoomForOtherFiles(t *testing.T) {
	t.Parallel()
	w := &world{
		repos: []Repository{{ID: 1, Name: "r", Revisions: []Revision{{Name: "HEAD", Commit: blobID("1")}}}},
		trees: []map[string][]string{{
			"a.go": {strings.Repeat("func a\n\n", 300) + "func Tree\n\nend\n" + strings.Repeat("\ntree\n", 300)},
			"b.go": {"func b\n\ntree\n"},
			"c.go": {"func tree func Tree FUNC\n"},
		}},
	}
	set, parts := w.built(t, t.TempDir(), false, BuildOptions{})
	v, _ := set.Acquire(parts)
	defer v.Release()

	got, res := answered(t, v, 100, 3)
	want := []string{"a.go 602: func a func Tree", "b.go 2: func b tree", "c.go 5: func tree func Tree FUNC"}
	for i := range want {
		found := false
		for _, g := range got {
			found = found || g == want[i]
		}
		if !found {
			t.Errorf("the answer lacks %q: %q", want[i], got)
		}
	}
	if len(got) != 3 || res.Cut || res.Stats.TotalMatches != 609 || res.Stats.ActualMatches != 8 {
		t.Errorf("%d files, cut %t, %+v", len(got), res.Cut, res.Stats)
	}

	// The limit over all files cuts the answer.
	if got, res := answered(t, v, 4, 3); len(got) != 2 || !res.Cut || res.Stats.ActualMatches != 4 {
		t.Errorf("%d files, cut %t, %+v", len(got), res.Cut, res.Stats)
	}

	// A limit that no file reaches changes nothing.
	with, _ := answered(t, v, 1000, 700)
	without, _ := answered(t, v, 1000, 0)
	if !reflect.DeepEqual(with, without) {
		t.Errorf("with a limit of 700 %.300q, without %.300q", with, without)
	}
}

// A text that is rare in its file adds more weight to its line.
func TestBestLines_rareTextsWeighMore(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, content string // matches stand in brackets
		n             int
		want          string // the shown texts of the heaviest lines
	}{
		{"both words", "[func] a\n[tree]\n[func] b\n[Func] [Tree]\n[func]\n", 2, "Func Tree"},
		{"the rare word", "[void] a\n[void] b\n[trim]\n[void] c\n", 1, "trim"},
		{"the first of equal lines", "[a]\n[A]\n[a]\n", 2, "a A"},
		{"a word twice on a line is one", "[a] [a] [a]\n[b]\n", 1, "b"},
		{"a line that is too long for it", "[a] [b] [c]\n[a]\n", 2, "a b"},
		{"a match over lines", "x [a\nb] [c]\n[d]\n", 2, "a\nb c"},
		{"less than may be shown", "[a]\n", 5, "a"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var content []byte
			var spans []match.Span
			for _, b := range []byte(tt.content) {
				switch b {
				case '[':
					spans = append(spans, match.Span{Start: len(content)})
				case ']':
					spans[len(spans)-1].End = len(content)
				default:
					content = append(content, b)
				}
			}

			var got []string
			for _, sp := range bestSpans(spans, weighLines(content, spans), tt.n) {
				got = append(got, string(content[sp.Start:sp.End]))
			}
			if text := strings.Join(got, " "); text != tt.want {
				t.Errorf("got %q, want %q", text, tt.want)
			}
		})
	}
}

// A line of minified code may have as many different matches as the file has bytes.
func TestBestLines_takesLinearTimeForALineWithManyMatches(t *testing.T) {
	t.Parallel()
	const words, width = 200_000, 7
	var content []byte
	spans := make([]match.Span, words)
	for i := range spans {
		spans[i] = match.Span{Start: len(content), End: len(content) + width - 1}
		content = fmt.Appendf(content, "%06d ", i)
	}

	began := time.Now()
	lines := weighLines(content, spans)
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("%d texts on a line took %v", words, took)
	}
	if len(lines) != 1 || lines[0].end != words || lines[0].weight != 2*words-1 {
		t.Errorf("%d lines, the first %+v", len(lines), lines[0])
	}
}
