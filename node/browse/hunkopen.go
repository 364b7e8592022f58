package browse

import (
	"cmp"
	"context"
	"strings"

	"github.com/shoalsearch/shoal/shard"
	"github.com/shoalsearch/shoal/shard/git"
	"github.com/shoalsearch/shoal/shard/lex"
)

// Bounds on the files that are read to know what is open at their hunks.
const (
	maxOpenedFile = 1 << 20  // bytes; hunks of a larger file say nothing
	maxOpened     = 16 << 20 // bytes of all files of one answer
)

// openHunks sets what is open at the start of each hunk of a page of files. A file that cannot be
// read as text keeps an empty Language.
func (s *site) openHunks(ctx context.Context, head string, files []DiffFile) {
	left := int64(maxOpened)
	for i := range files {
		f := &files[i]
		if len(f.Hunks) == 0 || f.Binary {
			continue
		}

		// Nothing is open at the first line, so a new or deleted file need not be read.
		last := &f.Hunks[len(f.Hunks)-1]
		if last.firstNew() <= 1 || f.NewPath == "" {
			f.Language = shard.Language(cmp.Or(f.NewPath, f.OldPath), nil)
			continue
		}
		src, err := s.mirror.Source(ctx, head, f.NewPath, git.SourceOptions{MaxBytes: min(maxOpenedFile, left)})
		if err != nil || src.Binary || src.Cut {
			continue
		}
		left -= int64(len(src.Content))
		f.Language = shard.Language(f.NewPath, src.Content)
		openAt(lex.For(f.Language), src.Content, f.Hunks)
	}
}

// openAt sets what is open at the start of each hunk, on both sides. Lines between hunks are the
// same on both sides, so the new text is enough.
func openAt(l *lex.Lang, text []byte, hunks []DiffHunk) {
	var before, after lex.State // of the old and the new side
	line, at := 1, 0            // of the new text
	skipLine := func() { at = min(endOfLine(text, at)+1, len(text)) }
	for i := range hunks {
		h, from := &hunks[i], at
		for ; line < h.firstNew() && at < len(text); line++ {
			skipLine()
		}
		between := text[from:at]
		before, after = l.After(between, before), l.After(between, after)
		h.OldOpen, h.NewOpen = before, after

		// The sides may leave different things open.
		for row := range strings.Lines(h.Body) {
			if row[0] != '+' {
				before = l.After([]byte(row[1:]), before)
			}
			if row[0] != '-' {
				after = l.After([]byte(row[1:]), after)
				skipLine()
			}
		}
		line = h.firstNew() + h.NewLines
	}
}

// firstNew is the number of the first line of the new text at or after the hunk. Git names the
// line before a hunk that has no lines.
func (h *DiffHunk) firstNew() int {
	if h.NewLines == 0 {
		return h.NewStart + 1
	}
	return h.NewStart
}
