package git

import (
	"bytes"
	"context"
	"fmt"

	"github.com/shoalsearch/shoal/shard/charset"
)

// git ends a line at each byte 0A. In UTF-16 and UTF-32 that byte also occurs within letters, such
// as U+0A05 and U+010A, and the other bytes of a newline begin the next line:
//
//	text       a     newline   b     newline        lines 1 and 2
//	UTF-16LE   61 00 0A | 00   62 00 0A | 00        git's lines 1, 2 and 3
//
// pieces lists, for each line of the text, git's lines that it consists of; nil if both kinds of
// lines are the same.
type pieces []piece

// piece is a run of git's lines, counted from 1, including the last one. identifying lists those that
// identify the line of the text: a line of ambiguousBytes or less occurs in many places and
// identifies no line.
type piece struct {
	first, last int
	identifying []int
}

// ambiguousBytes is the length in bytes of a part of a line that may occur anywhere.
const ambiguousBytes = 16

// pieces returns the pieces of a file.
func (f *files) pieces(ctx context.Context, commit, path string) (pieces, error) {
	head, err := f.Source(ctx, commit, path, SourceOptions{Lines: 1, MaxBytes: 4})
	if err != nil || head.Encoding <= charset.UTF8Mark {
		return nil, err
	}
	if head.Size > maxBlame {
		return nil, fmt.Errorf("%q is larger than %d MiB: %w", path, maxBlame>>20, ErrTooLarge)
	}
	file, err := f.Source(ctx, commit, path, SourceOptions{Raw: true})
	return piecesOf(file.Content, file.Encoding), err
}

// newlines maps each encoding whose lines differ from git's to its newline.
var newlines = map[charset.Encoding]string{
	charset.UTF16LE: "\n\x00", charset.UTF16BE: "\x00\n", charset.UTF32LE: "\n\x00\x00\x00", charset.UTF32BE: "\x00\x00\x00\n",
}

// piecesOf maps each line of a text to the lines that git counts for it: git splits at bytes of
// "\n", also within the characters of such an encoding.
func piecesOf(file []byte, encoding charset.Encoding) (out pieces) {
	newline := newlines[encoding]
	git := 1   // git's current line
	first := 0 // git's line in which the current line of the text begins; 0 between two lines
	for at := len(newline); at < len(file); at += len(newline) {
		if first == 0 {
			first = git
		}
		unit := file[at:min(at+len(newline), len(file))]
		if string(unit) == newline {
			out = append(out, piece{first: first, last: git})
			first = 0
		}
		git += bytes.Count(unit, []byte{'\n'})
	}
	if first != 0 {
		out = append(out, piece{first: first, last: git})
	}

	out.setIdentifying(bytes.SplitAfter(file, []byte{'\n'}))
	return out
}

// setIdentifying sets identifying for each line of the text: all of git's lines except short ones,
// or the longest if all are short. lines has git's lines.
func (p pieces) setIdentifying(lines [][]byte) {
	for i := range p {
		at := &p[i]
		longest := at.first
		for git := at.first; git <= at.last; git++ {
			if len(lines[git-1]) > ambiguousBytes {
				at.identifying = append(at.identifying, git)
			}
			if len(lines[git-1]) > len(lines[longest-1]) {
				longest = git
			}
		}
		if at.identifying == nil {
			at.identifying = []int{longest}
		}
	}
}

// gitLines converts the numbers of the first and last line of a part of the text to git's.
func (p pieces) gitLines(first, last int) (int, int) {
	if p == nil || first < 1 || first > len(p) {
		return first, last
	}
	return p[first-1].first, p[min(last, len(p))-1].last
}

// convertBlame converts a blame of git's lines into one of the text's lines from first to last. If
// several commits wrote a line, it belongs to the newest of them.
func (p pieces) convertBlame(b *Blame, first, last int) {
	if p == nil {
		return
	}
	wrote := map[int]BlameRange{} // by git's line
	for _, r := range b.Ranges {
		for i := range r.Lines {
			wrote[r.First+i] = r
		}
	}

	converted := &blameReader{}
	for line := first; line <= min(last, len(p)); line++ {
		var best BlameRange
		for _, git := range p[line-1].identifying {
			r, ok := wrote[git]
			if ok && (best.Commit == "" || b.Commits[r.Commit].AuthorTime.After(b.Commits[best.Commit].AuthorTime)) {
				best = r
			}
		}
		if best.Commit != "" {
			converted.blame.Ranges = append(converted.blame.Ranges, BlameRange{Commit: best.Commit, Path: best.Path, First: line, Lines: 1})
		}
	}
	converted.mergeRuns()
	b.Ranges = converted.blame.Ranges
}
