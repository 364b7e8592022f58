package host

import (
	"context"
	"fmt"

	"github.com/shoalsearch/shoal/cluster/config"
	"github.com/shoalsearch/shoal/shard/git"
)

// Repo is a repository as its host describes it.
type Repo struct {
	Name        string // <host>/<path>: unique in the catalog
	DisplayName string
	Remote      git.Remote
	HostType    string // codeHostType of the API: genericGitHost, github, ...
	WebURL      string // of the repository at its host; empty when there is none
	Topics      []string
	Fork        bool
	Archived    bool
	Public      bool
}

// Listing is the repositories of a connection, sorted by name, names unique.
type Listing struct {
	Repos    []Repo
	Complete bool     // nothing could be missing: only then may what is absent be let go
	Warnings []string // sentences about what was left out, without secrets
}

// Host lists the repositories of one connection.
type Host interface {
	// Repos asks the host. An error means that nothing is known; a listing
	// with Complete false that some is. It may be called from any goroutine
	// and keeps nothing of ctx.
	Repos(ctx context.Context) (Listing, error)
}

// NotSyncing is the error of Open for a kind of connection that is valid but
// has no sync yet. Its text is for the status of the connection.
type NotSyncing struct{ Kind config.Kind }

func (e *NotSyncing) Error() string {
	return fmt.Sprintf("connections of type %q are not yet syncing", e.Kind)
}

// Open returns the host of a connection. secret turns a token reference into
// the secret; it is called when the secret is needed.
func Open(conn config.Connection, secret func(ctx context.Context, t config.Token) (string, error)) (Host, error) {
	switch c := any(conn).(type) {
	case *config.Git:
		return &generic{url: c.URL}, nil
	default:
		return nil, &NotSyncing{Kind: conn.Kind()}
	}
}
