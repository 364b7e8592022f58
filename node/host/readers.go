package host

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/shoalsearch/shoal/cluster/config"
)

// Readership is what a kind of host reports about readers of a repository.
type Readership uint8

// Readerships.
const (
	Untold   Readership = iota // the host reports no readers
	SomeTold                   // it reports some, but others may read too
	AllTold                    // it reports all readers
)

// Audience is a host that reports who may read a repository's code.
type Audience interface {
	// Readers returns the host's ids of people, sorted, without blocked ones. Renames do not change
	// the ids. The path is that of the last listing. If it now belongs to another repository,
	// Readers fails.
	Readers(ctx context.Context, externalID, path string) ([]string, error)
}

// ReadershipOf returns what the host of a connection reports about readers, or Untold for nil.
func ReadershipOf(conn config.Connection) Readership {
	if conn == nil {
		return Untold
	}
	k, _ := kindOf(conn)
	return k.Readers
}

// people is a set of people's ids.
type people map[string]bool

// add adds a person by number. It ignores an id that is not positive.
func (p people) add(id int64) {
	if id > 0 {
		p[strconv.FormatInt(id, 10)] = true
	}
}

func (p people) sorted() []string {
	out := make([]string, 0, len(p))
	for id := range p {
		out = append(out, id)
	}
	slices.Sort(out)
	return out
}

// errOtherRepo returns the error for a path of another repository.
func errOtherRepo(path string) error {
	return fmt.Errorf("%s is another repository now: its readers are asked for after the next listing", path)
}
