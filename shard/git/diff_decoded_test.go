package git

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/shard/charset"
)

// The difference of files in UTF-16 and UTF-32 equals the difference of the same texts in UTF-8,
// which git compares in a second repository.
func TestDiff_ofUTF16EqualsThatOfUTF8(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(9, 9))
	coded, plain := newRepo(t), newRepo(t)
	ours, twins := &stream{}, &stream{}
	texts := map[string][]string{}
	for commit := range 5 {
		var files, twin []string
		for i, e := range encodings {
			name := fmt.Sprintf("d %d/%s.sql", i, e.name)
			lines := texts[name]
			for range 1 + rnd.IntN(3) {
				at := rnd.IntN(len(lines) + 1)
				line := []string{"SELECT ਅ 😀", "", "\tĊ one  two", "Ċ\tone two ", "漢字"}[rnd.IntN(5)] + []string{"", "\r"}[rnd.IntN(2)]
				if at < len(lines) && rnd.IntN(2) == 0 {
					lines[at] = line
				} else {
					lines = slices.Insert(lines, at, line)
				}
			}
			texts[name] = lines
			text := strings.Join(lines, "\n") + []string{"", "\n"}[rnd.IntN(2)]
			switch {
			case e.of == charset.UTF8Mark: // git can read this encoding; add a file that is binary in both repositories
				files, twin = append(files, name, "\x00"+text), append(twin, name, "\x00"+text)
			case commit == 3 && i%2 == 0:
				files, twin = append(files, name, "D"), append(twin, name, "D")
				texts[name] = nil
			case commit == 4 && i == 1: // change the encoding
				files, twin = append(files, name, text), append(twin, name, text)
			default:
				files, twin = append(files, name, e.file(text)), append(twin, name, text)
			}
		}
		ours.commit("refs/heads/main", commit, "Ann", "change", files...)
		twins.commit("refs/heads/main", commit, "Ann", "change", twin...)
	}
	coded.load(ours)
	plain.load(twins)

	m, twin := fetched(t, coded.url()), fetched(t, plain.url())
	commits := func(r *repo) []string { return strings.Fields(r.git("rev-list", "--reverse", "main")) }
	a, b := commits(coded), commits(plain)
	lines := 0
	for from := range a {
		for to := range a[from+1:] {
			to += from + 1
			for _, o := range []DiffOptions{{}, {Context: 9}, {Context: -1}, {Stat: true}, {IgnoreBlanks: true}, {IgnoreBlanks: true, Stat: true}, {Skip: 1, Limit: 2}, {Path: "d 2"}} {
				got, err := m.Diff(t.Context(), a[from], a[to], o)
				want, err2 := twin.Diff(t.Context(), b[from], b[to], o)
				if err != nil || err2 != nil || !reflect.DeepEqual(got, want) {
					t.Fatalf("commits %d and %d, %+v: %v, %v\n%+v\nwant\n%+v", from, to, o, err, err2, got, want)
				}
				for _, f := range got.Files {
					lines += f.Added + f.Removed
				}
			}
		}
	}
	if lines == 0 {
		t.Error("no line has changed")
	}
}

// The byte order mark of a UTF-8 text is not a part of its first line. A difference shows it only
// if a commit added or removed it.
func TestDiff_showsAByteOrderMarkOnlyIfItChanged(t *testing.T) {
	t.Parallel()
	const mark = "\ufeff"
	for _, tt := range []struct{ name, old, now, want string }{
		{"added", "D", mark + "a\nb\n", "+a\n+b\n"},
		{"deleted", mark + "a\n", "D", "-a\n"},
		{"first line changed", mark + "a\nb\n", mark + "c\nb\n", "-a\n+c\n b\n"},
		{"second line changed", mark + "a\nb\n", mark + "a\nc\n", " a\n-b\n+c\n"},
		{"line put first", mark + "a\n", mark + "b\na\n", "-a\n+b\n+a\n"},
		{"line removed", mark + "a\nb\n", mark + "b\n", "-a\n-b\n+b\n"},
		{"mark came", "a\n", mark + "a\n", "-a\n+" + mark + "a\n"},
		{"mark went", mark + "a\n", "a\n", "-" + mark + "a\n+a\n"},
		{"two marks", mark + mark + "a\n", mark + mark + "b\n", "-" + mark + "a\n+" + mark + "b\n"},
		{"further down", "1\n2\n3\n4\n5\n" + mark + "a\n", "1\n2\n3\n4\n5\n" + mark + "b\n", " 3\n 4\n 5\n-" + mark + "a\n+" + mark + "b\n"},
	} {
		r, h := newRepo(t), &stream{}
		h.commit("refs/heads/main", 0, "Ann", "one", slices.DeleteFunc([]string{"g", "g", "f", tt.old}, func(s string) bool { return tt.old == "D" && (s == "f" || s == "D") })...)
		h.commit("refs/heads/main", 1, "Ann", "two", "f", tt.now)
		r.load(h)
		d, err := fetched(t, r.url()).Diff(t.Context(), r.git("rev-parse", "main~1"), r.git("rev-parse", "main"), DiffOptions{})
		if err != nil || len(d.Files) != 1 || len(d.Files[0].Hunks) != 1 || d.Files[0].Hunks[0].Body != tt.want {
			t.Errorf("%s: %+v, %v, want %q", tt.name, d.Files, err, tt.want)
		}
	}
}

// Files that are too large to decode stay binary, and the size limit of a difference applies to
// decoded texts too.
func TestDiff_ofDecodedTextsIsCutAtItsByteLimit(t *testing.T) {
	t.Parallel()
	r, h := newRepo(t), &stream{}
	text := strings.Repeat("a line of some length\n", 50_000)
	h.commit("refs/heads/main", 0, "Ann", "one", "a.sql", encodings[1].file("x\n"), "b.sql", encodings[1].file("x\n"))
	h.commit("refs/heads/main", 1, "Ann", "two", "a.sql", encodings[1].file(text), "b.sql", encodings[3].file(strings.Repeat(text, 8)))
	r.load(h)
	m := fetched(t, r.url())
	d, err := m.Diff(t.Context(), r.git("rev-parse", "main~1"), r.git("rev-parse", "main"), DiffOptions{MaxBytes: 1000})
	if err != nil || len(d.Files) != 2 {
		t.Fatalf("%+v, %v", d, err)
	}
	size := 0
	for _, h := range d.Files[0].Hunks {
		size += len(h.Body)
	}
	if f := d.Files[0]; f.Binary || !f.Cut || !d.Cut || f.Added != 50_000 || size > 1000 {
		t.Errorf("%d bytes of %d lines, binary %v, cut %v", size, f.Added, f.Binary, f.Cut)
	}
	if !d.Files[1].Binary {
		t.Errorf("35 MB were decoded: %d lines", d.Files[1].Added)
	}
}
