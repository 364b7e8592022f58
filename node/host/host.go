package host

import (
	"context"
	"fmt"

	"github.com/shoalsearch/shoal/cluster/config"
	"github.com/shoalsearch/shoal/shard/git"
)

// Repo is a repository as its host describes it.
type Repo struct {
	Name        string // <host>/<path>, or local/<directory>: unique in the listing
	DisplayName string
	Remote      git.Remote // without any credential, see [Credential]
	HostType    string     // codeHostType of the API: genericGitHost, github, ...
	WebURL      string     // of the repository at its host; empty when there is none
	Topics      []string
	Fork        bool
	Archived    bool
	Public      bool
}

// Listing is the repositories of a connection, sorted by name, names unique.
type Listing struct {
	Repos    []Repo
	Complete bool     // nothing could be missing: only then may what is absent be let go
	Warnings []string // sentences about what was left out or renamed, without secrets
}

// Host lists the repositories of one connection.
type Host interface {
	// Repos asks the host. An error means that nothing is known; a listing
	// with Complete false that some is. It may be called from any goroutine
	// and keeps nothing of ctx.
	Repos(ctx context.Context) (Listing, error)
}

// Secret turns a token reference into the secret.
type Secret func(ctx context.Context, t config.Token) (string, error)

// NotSyncing is the error of Open for a kind of connection that is valid but
// has no sync yet. Its text is for the status of the connection.
type NotSyncing struct{ Kind config.Kind }

// Error says that, and what to do meanwhile.
func (e *NotSyncing) Error() string {
	return fmt.Sprintf("not yet syncing: the configuration of this %s connection is valid, but repositories of %s are not listed by this version; "+
		"single ones can be had through connections of type git", e.Kind, products[e.Kind])
}

// products are the names that people know the kinds by.
var products = map[config.Kind]string{
	config.KindGitHub:      "GitHub",
	config.KindGitLab:      "GitLab",
	config.KindGitea:       "Gitea and Forgejo",
	config.KindGerrit:      "Gerrit",
	config.KindBitbucket:   "Bitbucket",
	config.KindAzureDevOps: "Azure DevOps",
}

// Open returns the host of a connection. secret is called when a secret is
// needed.
func Open(conn config.Connection, secret Secret) (Host, error) {
	switch c := conn.(type) {
	case *config.Git:
		return &generic{url: c.URL}, nil
	default:
		return nil, &NotSyncing{Kind: conn.Kind()}
	}
}

// Credential is what opens a repository of a connection when it is fetched.
// The catalog keeps addresses without credentials; they are found again in
// the connection, on the node that fetches.
func Credential(ctx context.Context, conn config.Connection, cloneURL string, secret Secret) (git.Credential, error) {
	switch c := conn.(type) {
	case *config.Git:
		if repo, err := repoAt(c.URL); err == nil && repo.Remote.URL == cloneURL {
			return userOf(c.URL), nil
		}
	}
	return git.Credential{}, nil
}
