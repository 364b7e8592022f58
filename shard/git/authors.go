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

// Limits of a list of authors.
const (
	maxCachedAuthors = 50_000   // authors in the longest list that is cached
	maxAuthorBytes   = 64 << 20 // bytes of memory for a list
	authorCost       = 200      // bytes of memory for an author, besides the texts
)

// Author is an author with the number of their commits.
type Author struct {
	Name, Email string
	Commits     int
}

// authors counts the commits of each author.
type authors struct {
	*base
	lists *lru.Cache[string, []Author] // by filter

	counted *lru.Cache[string, together] // results of Together by mirror and filter, shared by all mirrors
}

// authorID identifies an author.
type authorID struct{ name, email string }

// Authors counts the commits of each author that changed a path, or all commits if path is empty.
// The result is sorted by commits, most first, then by name and e-mail. people maps names and
// addresses to authors; nil uses those in the commits.
func (h *authors) Authors(ctx context.Context, commit, path string, people *Mailmap) ([]Author, error) {
	q := LogQuery{Commit: commit, Path: path}
	filter, err := q.arguments()
	if err != nil {
		return nil, err
	}

	key := strings.Join(filter, "\x00")
	if people != nil {
		key = people.oid + "\x00" + key
	}
	if known, ok := h.lists.Get(key); ok {
		return slices.Clone(known), nil
	}

	c := h.git("log", "-z", "--no-show-signature", "--no-patch", "--format=%an%x00%ae")
	c.Args = append(c.Args, filter...)
	c.Timeout, c.Limit = time.Minute, 4<<30

	counts := map[authorID]int{}
	err = c.Stream(ctx, func(r io.Reader) error { return countAuthors(r, people, counts) })
	if err != nil {
		return nil, fmt.Errorf("count authors: %w", err)
	}

	out := sortAuthors(counts)

	if len(out) < maxCachedAuthors {
		h.lists.Put(key, out, 1)
	}
	return slices.Clone(out), nil
}

// countAuthors reads the name and the address of the author of each commit, with a NUL after each,
// and adds the commits to counts.
func countAuthors(r io.Reader, people *Mailmap, counts map[authorID]int) error {
	in, size := newRecords(r), 0 // size is the memory of counts in bytes
	for {
		name, err := in.readField(maxPerson)
		if err != nil {
			return ignoreEOF(err)
		}

		// A name without an address means that the output was truncated.
		email, err := in.readInnerField(maxPerson)
		if err != nil {
			return err
		}

		name, email = people.Author(name, email)
		id := authorID{name, email}
		if counts[id] == 0 {
			if size += len(name) + len(email) + authorCost; size > maxAuthorBytes {
				return fmt.Errorf("the list of authors takes more than %d MB; ask for those of a path: %w", maxAuthorBytes>>20, ErrTooLarge)
			}
		}
		counts[id]++
	}
}

// sortAuthors returns the authors in counts, sorted as Authors says.
func sortAuthors(counts map[authorID]int) []Author {
	out := make([]Author, 0, len(counts))
	for id, n := range counts {
		out = append(out, Author{Name: id.name, Email: id.email, Commits: n})
	}

	slices.SortFunc(out, func(a, b Author) int {
		return cmp.Or(cmp.Compare(b.Commits, a.Commits), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Email, b.Email))
	})
	return out
}
