package tool

import (
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/node/browse"
)

// TestDiffList_groupsFilesThatMovedWithTheirDirectory: files that only moved with their directory are one
// line of a list with counts, from three on.
func TestDiffList_groupsFilesThatMovedWithTheirDirectory(t *testing.T) {
	t.Parallel()
	renamed := func(from, to string, similarity int) browse.DiffFile {
		return browse.DiffFile{OldPath: from, NewPath: to, OldMode: "100644", NewMode: "100644", Similarity: similarity}
	}
	executable := renamed("lib/run", "src/lib/run", 100)
	executable.NewMode = "100755"
	files := []browse.DiffFile{
		renamed("lib/a.c", "src/lib/a.c", 100), renamed("lib/b/c.c", "src/lib/b/c.c", 100), renamed("lib/d.c", "src/lib/d.c", 100),
		renamed("lib/e.c", "src/lib/e.c", 90), renamed("lib/f.c", "src/lib/g.c", 100), executable,
		renamed("doc/a.md", "a.md", 100), renamed("doc/b.md", "b.md", 100),
	}
	for names, want := range map[bool]string{
		false: "R lib/ -> src/lib/ (3 files, unchanged)\nR lib/e.c -> src/lib/e.c +0 -0\nR lib/f.c -> src/lib/g.c +0 -0\nR lib/run -> src/lib/run (mode 100644 -> 100755) +0 -0\nR doc/a.md -> a.md +0 -0\nR doc/b.md -> b.md +0 -0\n",
		true: "R lib/a.c -> src/lib/a.c\nR lib/b/c.c -> src/lib/b/c.c\nR lib/d.c -> src/lib/d.c\nR lib/e.c -> src/lib/e.c\nR lib/f.c -> src/lib/g.c\n" +
			"R lib/run -> src/lib/run (mode 100644 -> 100755)\nR doc/a.md -> a.md\nR doc/b.md -> b.md\n",
	} {
		write := counted
		if names {
			write = named
		}
		var changes []changed
		for i := range files {
			changes = append(changes, diffBlock(&files[i]))
		}
		if got := strings.Join(write(changes), ""); got != want {
			t.Errorf("names %t: got\n%s\nwant\n%s", names, got, want)
		}
	}
}
