package git

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/shoalsearch/shoal/node/lru"
)

// FileCount is a file with the number of commits that changed it.
type FileCount struct {
	Path    string
	Commits int
	Gone    bool // the given commit lacks the file; Together does not set it
}

// together is the result of Together for a path.
type together struct {
	files   []FileCount
	commits int
	cut     bool
}

// togetherCommits is how many commits Together reads, newest first.
const togetherCommits = 1000

// TogetherFiles is the greatest number of files in a commit that Together counts: a larger commit
// says nothing about any two of its files.
const TogetherFiles = 100

// Together counts how often each file changed in the commits that changed a path, and returns the
// files, the most frequent first. commits is the number of these commits; cut reports whether it left
// out older ones. Merges and commits of more than TogetherFiles files do not count.
func (h *authors) Together(ctx context.Context, commit, path string) (files []FileCount, commits int, cut bool, err error) {
	q := LogQuery{Commit: commit, Path: path, NoMerges: true}
	filter, err := q.arguments()
	if err != nil {
		return nil, 0, false, err
	}

	// The key contains a commit, so the answer never changes.
	key := h.dir + "\x00" + strings.Join(filter, "\x00")
	if known, ok := h.counted.Get(key); ok {
		return slices.Clone(known.files), known.commits, known.cut, nil
	}

	// A mark separates the files of two commits.
	c := h.git("log", "-z", "--no-show-signature", "--name-only", "--full-diff", "--no-renames", "--format=%x01", fmt.Sprintf("--max-count=%d", togetherCommits))
	c.Args = append(c.Args, filter...)
	c.Timeout, c.Limit = time.Minute, 1<<30

	counts, read := map[string]int{}, 0
	err = c.Stream(ctx, func(r io.Reader) (err error) {
		commits, read, err = countTogether(r, counts)
		return err
	})
	if err != nil {
		return nil, 0, false, fmt.Errorf("count what changed together: %w", err)
	}
	size := int64(lru.Cost + len(key))
	for path, n := range counts {
		files = append(files, FileCount{Path: path, Commits: n})
		size += int64(len(path) + 32)
	}
	slices.SortFunc(files, func(a, b FileCount) int {
		return cmp.Or(cmp.Compare(b.Commits, a.Commits), cmp.Compare(a.Path, b.Path))
	})
	cut = read >= togetherCommits
	h.counted.Put(key, together{files, commits, cut}, size)
	return slices.Clone(files), commits, cut, nil
}

// countTogether reads commits, each a mark and then its files. It adds the files to counts, and
// returns how many of the commits count, and how many it has read.
func countTogether(r io.Reader, counts map[string]int) (commits, read int, err error) {
	in, size := newRecords(r), 0
	var files []string
	end := func() {
		if len(files) > 0 && len(files) <= TogetherFiles {
			commits++
			for _, path := range files {
				counts[path]++
			}
		}
		files = files[:0]
	}
	for {
		field, err := in.readField(maxField)
		if err != nil {
			end()
			return commits, read, ignoreEOF(err)
		}
		if field == "\x01" {
			read++
			end()
			continue
		}
		if size += len(field); size > maxAuthorBytes {
			return 0, 0, fmt.Errorf("the files of these commits take more than %d MB: %w", maxAuthorBytes>>20, ErrTooLarge)
		}
		files = append(files, strings.TrimPrefix(field, "\n"))
	}
}
