package tool

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/shoalsearch/shoal/node/browse"
)

// named is a line with the name of each file of a difference.
func named(files []changed) (lines []string) {
	for i := range files {
		lines = append(lines, files[i].head)
	}
	return lines
}

// counted is a line with the counts of each file of a difference. Files that only moved with
// their directory are told together: of each their names would say the same.
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

// fewMoved is how many files that moved together are worth to be told together.
const fewMoved = 3

// move is a directory that was moved, by the names of which its path is made:
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

// move tells where a file only moved from, to, and what both paths end in; nil for any
// other file.
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

// sameStart is how many names two paths have in common from their beginning.
func sameStart(a, b []string) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

// directoryOf is a directory by its names, ./ for none.
func directoryOf(names []string) string {
	return fileLabel(cmp.Or(strings.Join(names, "/"), ".")) + "/"
}
