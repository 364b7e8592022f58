package git

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/shoalsearch/shoal/shard/charset"
)

// encodings are ways to encode a text with a byte order mark.
var encodings = []struct {
	name string
	of   charset.Encoding
	file func(text string) string
}{
	{"mark", charset.UTF8Mark, func(text string) string { return "\ufeff" + text }},
	{"utf-16le", charset.UTF16LE, func(text string) string { return units16(binary.LittleEndian, text) }},
	{"utf-16be", charset.UTF16BE, func(text string) string { return units16(binary.BigEndian, text) }},
	{"utf-32le", charset.UTF32LE, func(text string) string { return units32(binary.LittleEndian, text) }},
	{"utf-32be", charset.UTF32BE, func(text string) string { return units32(binary.BigEndian, text) }},
}

func units16(order binary.AppendByteOrder, text string) string {
	var b []byte
	for _, u := range utf16.Encode([]rune("\ufeff" + text)) {
		b = order.AppendUint16(b, u)
	}
	return string(b)
}

func units32(order binary.AppendByteOrder, text string) string {
	var b []byte
	for _, r := range "\ufeff" + text {
		b = order.AppendUint32(b, uint32(r))
	}
	return string(b)
}

// Reading a file in UTF-16 or UTF-32 gives the same as the file in UTF-8: as a whole, in parts, and
// in its blame. Some letters contain the byte of a newline.
func TestSourceAndBlame_convertOtherEncodingsToUTF8(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(7, 7))
	r, h := newRepo(t), &stream{}
	lines := []string{"the first line stays", "", "ਅ second"}
	for commit := range 9 {
		at := 1 + rnd.IntN(len(lines))
		line := fmt.Sprintf("Ċ line %d 😀 ऊ", commit)
		if commit%3 == 2 && at < len(lines) {
			lines[at] = line
		} else {
			lines = slices.Insert(lines, at, line)
		}
		text := strings.Join(lines, "\r\n") + "\r\n"
		files := []string{"plain", text}
		for _, e := range encodings {
			files = append(files, e.name, e.file(text))
		}
		h.commit("refs/heads/main", commit, "Ann", fmt.Sprint("Change ", commit), files...)
	}
	r.load(h)
	m, head := fetched(t, r.url()), r.git("rev-parse", "main")

	ranges := func(b Blame) (out []string) {
		for _, x := range b.Ranges {
			out = append(out, fmt.Sprintf("%d+%d %s", x.First, x.Lines, b.Commits[x.Commit].Summary))
		}
		return out
	}
	for _, e := range encodings {
		for _, o := range []SourceOptions{{}, {FirstLine: 2, Lines: 3}, {FirstLine: 2, Lines: 3, Count: true}, {MaxBytes: 11}, {FirstLine: 99, Count: true}} {
			want, err := m.Source(within(t), head, "plain", o)
			got, err2 := m.Source(within(t), head, e.name, o)
			if err != nil || err2 != nil {
				t.Fatal(err, err2)
			}
			if got.Encoding != e.of || got.Binary || !bytes.Equal(got.Content, want.Content) || got.Total != want.Total || got.Lines != want.Lines || got.Cut != want.Cut {
				t.Errorf("%s, %+v: %+v\nwant %+v", e.name, o, got, want)
			}
		}
		if raw, err := m.Source(within(t), head, e.name, SourceOptions{Raw: true}); err != nil || string(raw.Content) != e.file(strings.Join(lines, "\r\n")+"\r\n") || raw.Encoding != e.of || raw.Binary {
			t.Errorf("%s: raw is %q, %v", e.name, raw.Content, err)
		}

		want, err := m.Blame(within(t), BlameQuery{Commit: head, Path: "plain"})
		got, err2 := m.Blame(within(t), BlameQuery{Commit: head, Path: e.name})
		if err != nil || err2 != nil || !slices.Equal(ranges(got), ranges(want)) {
			t.Errorf("%s: blame %q, want %q; %v, %v", e.name, ranges(got), ranges(want), err, err2)
		}
		want, err = m.Blame(within(t), BlameQuery{Commit: head, Path: "plain", First: 2, Last: 5, Within: time.Minute})
		got, err2 = m.Blame(within(t), BlameQuery{Commit: head, Path: e.name, First: 2, Last: 5, Within: time.Minute})
		if err != nil || err2 != nil || !slices.Equal(ranges(got), ranges(want)) {
			t.Errorf("%s: blame of lines 2-5 %q, want %q; %v, %v", e.name, ranges(got), ranges(want), err, err2)
		}
	}
}
