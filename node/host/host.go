package host

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/shoalsearch/shoal/cluster/config"
	"github.com/shoalsearch/shoal/shard/git"
)

// Visibility is who may see a repository at its host.
type Visibility uint8

// The visibilities.
const (
	Unknown  Visibility = iota
	Public              // everybody
	Internal            // whoever has an account there
	Private             // whom it is granted to
)

// Repo is a repository as its host describes it. What a host does not say is
// zero.
type Repo struct {
	ExternalID    string // <kind>:<host>:<the host's own id>; no rename changes it
	Name          string // <host>/<path>, or local/<directory>: unique in the listing
	OwnName       string // of a local repository whose Name is what it says of itself: the name by its directory, for when a host lists the other
	DisplayName   string
	Remote        git.Remote // without any credential, see [Credential]
	HostType      string     // codeHostType of the API: genericGitHost, github, ...
	WebURL        string     // of the repository at its host; empty when there is none
	Description   string
	DefaultBranch string
	Topics        []string // in lower case
	Fork          bool
	Archived      bool
	Empty         bool
	Visibility    Visibility
	PushedAt      time.Time
	Stars         uint32
	SizeBytes     int64  // as the host computes it
	Unfetchable   string // why it cannot be fetched now; empty where it can
	Target        string // the selection of the connection that listed it first

	leftOut Reason // why its kind alone leaves it out; empty where it does not
}

// Host lists the repositories of one connection. Its methods may be called
// from any goroutine, and keep nothing of ctx.
type Host interface {
	// List passes every repository that the connection chooses to sink. An
	// error means that nothing is known; an issue that is Partial, that
	// repositories of its target may be missing.
	List(ctx context.Context, sink Sink) error
}

// Finder is a host that can be asked for a repository by the id that no
// rename changes.
type Finder interface {
	// Lookup returns the repository as it is now, and whether the connection
	// still chooses it. The error is ErrGone where the host does not have it,
	// or does not show it any more; any other error says nothing.
	Lookup(ctx context.Context, externalID string) (r Repo, chosen bool, err error)
}

// Metered is a host that tells what its credential may still ask.
type Metered interface {
	Allowance() Allowance
}

// Secret turns a token reference into the secret.
type Secret func(ctx context.Context, t config.Token) (string, error)

// Kind is a kind of code host: all that the product knows of it is its row.
type Kind struct {
	Name    config.Kind
	Product string // as people call it
	Open    func(config.Connection, Tools) (Host, error)
	// Credential is what opens a repository of a connection when git fetches
	// it from an address.
	Credential func(ctx context.Context, conn config.Connection, cloneURL string, t Tools) (git.Credential, error)
	Hook       Hook   // how its webhooks are signed and named
	Signal     Signal // how it tells of pushes when it is asked; the zero value where it does not
	Readers    Readership
}

// kinds is the table of kinds, which nobody changes.
var kinds = [...]Kind{
	{config.KindGit, "git", openGeneric, genericCredential, hookGeneric, Signal{}, Untold},
	{config.KindGitHub, "GitHub", openGitHub, githubCredential, hookGitHub, githubSignal, AllTold},
	{config.KindGitLab, "GitLab", openGitLab, gitlabCredential, hookGitLab, gitlabSignal, AllTold},
	{config.KindGitea, "Gitea and Forgejo", openGitea, giteaCredential, hookGitea, giteaSignal, AllTold},
	{config.KindGerrit, "Gerrit", openGerrit, gerritCredential, hookGerrit, gerritSignal, Untold},
	{config.KindBitbucket, "Bitbucket", openBitbucket, bitbucketCredential, hookBitbucket, bitbucketSignal, SomeTold},
	{config.KindAzureDevOps, "Azure DevOps", openAzure, azureCredential, hookAzure, Signal{}, Untold},
}

// kindOf is the row of a connection.
func kindOf(conn config.Connection) (Kind, bool) {
	name := conn.Kind()
	for i := range kinds {
		if kinds[i].Name == name {
			return kinds[i], true
		}
	}
	return Kind{}, false
}

// Open returns the host of a connection. Secrets are read when they are
// needed, each time anew.
func Open(conn config.Connection, t Tools) (Host, error) {
	k, ok := kindOf(conn)
	if !ok {
		return nil, fmt.Errorf("there is no kind of host called %s", conn.Kind())
	}
	return k.Open(conn, t)
}

// Within is the directory that a local repository of a connection must not
// lead out of: the fixed beginning of its address. It is empty for other
// connections, and for repositories that are not local.
func Within(conn config.Connection, cloneURL string) string {
	c, ok := conn.(*config.Git)
	if !ok || !strings.HasPrefix(cloneURL, "file://") {
		return ""
	}
	pattern, ok := c.Directory()
	if !ok {
		return ""
	}
	base, _ := config.FixedDirectory(pattern)
	return base
}

// Credential is what opens a repository of a connection when it is fetched.
// The catalog keeps addresses without credentials; they are found again in
// the connection, on the node that fetches.
func Credential(ctx context.Context, conn config.Connection, cloneURL string, t Tools) (git.Credential, error) {
	k, ok := kindOf(conn)
	if !ok {
		return git.Credential{}, nil
	}
	return k.Credential(ctx, conn, cloneURL, t)
}
