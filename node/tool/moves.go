package tool

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/shoalsearch/shoal/node/browse"
)

// named returns the head of each changed file.
func named(files []changed) (lines []string) {
	for i := range files {
		lines = append(lines, files[i].head)
	}
	return lines
}

// counted returns a line for each changed file, with counts of lines. Files that only moved with
// their directory share one line.
func counted(files []changed) (lines []string) {
	moves := map[string]*move{}
	of := make([]*move, len(files)) // the move of each file; nil where it is none
	for i := range files {
		from, to, below := files[i].move()
		if below == nil {
			continue
		}

		key := strings.Join(from, "/") + "\x00" + strings.Join(to, "/")
		if moves[key] == nil {
			moves[key] = &move{from: from, to: to, below: below[:len(below)-1]}
		}
		of[i] = moves[key]
		of[i].files++
		of[i].below = of[i].below[:sameStart(of[i].below, below)]
	}

	for i := range files {
		switch m := of[i]; {
		case m == nil || m.files < fewMoved:
			lines = append(lines, files[i].line())
		case !m.told:
			lines = append(lines, m.line())
			m.told = true
		}
	}
	return lines
}

// fewMoved is the number of moved files from which they share a line.
const fewMoved = 3

// move is a moved directory. Its paths are split into names:
//
//	lib/a.c, lib/b/c.c -> src/lib/a.c, src/lib/b/c.c    from: none, to: src, below: lib
type move struct {
	from, to []string
	below    []string // the directories in which all its files stand, on both sides
	files    int
	told     bool
}

func (m *move) line() string {
	from, to := directoryOf(slices.Concat(m.from, m.below)), directoryOf(slices.Concat(m.to, m.below))
	return fmt.Sprintf("R %s -> %s (%s, unchanged)\n", from, to, count(m.files, "file"))
}

// move returns the old and new parent directories of a file that only moved, and the part of the
// path that stayed the same. It returns nil for other files.
func (c *changed) move() (from, to, below []string) {
	if c.diff.OldPath == c.diff.NewPath || c.diff.Similarity != 100 || c.diff.OldMode != c.diff.NewMode {
		return nil, nil, nil
	}

	same := browse.SharedEnd(c.diff.OldPath, c.diff.NewPath)
	if same == 0 {
		return nil, nil, nil
	}
	from, to = strings.Split(c.diff.OldPath, "/"), strings.Split(c.diff.NewPath, "/")
	return from[:len(from)-same], to[:len(to)-same], from[len(from)-same:]
}

// sameStart returns how many names two paths share at the beginning.
func sameStart(a, b []string) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

// directoryOf joins names to a directory; "./" if there are none.
func directoryOf(names []string) string {
	return fileLabel(cmp.Or(strings.Join(names, "/"), ".")) + "/"
}
