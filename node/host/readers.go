package host

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/shoalsearch/shoal/cluster/config"
)

// Readership is what a kind of host tells of who may read a repository: a
// property of its row.
type Readership uint8

// The readerships.
const (
	Untold   Readership = iota // nothing that can be used
	SomeTold                   // some of them: others may read it too
	AllTold                    // all of them
)

// Audience is a host that tells who may read the code of a repository.
type Audience interface {
	// Readers returns the host's own ids of people, which no rename changes,
	// each once and sorted. Who is blocked there is not among them. The path is
	// that of the repository at the host as it was listed last: an answer that
	// is of another repository is an error.
	Readers(ctx context.Context, externalID, path string) ([]string, error)
}

// ReadershipOf is what the host of a connection tells of readers; Untold for a
// connection that is not there.
func ReadershipOf(conn config.Connection) Readership {
	if conn == nil {
		return Untold
	}
	k, _ := kindOf(conn)
	return k.Readers
}

// people gathers ids of people.
type people map[string]bool

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

// another is the error of a path that leads to another repository now.
func another(path string) error {
	return fmt.Errorf("%s is another repository now: its readers are asked for after the next listing", path)
}
