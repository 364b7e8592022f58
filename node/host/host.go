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

// Visibilities.
const (
	Unknown  Visibility = iota
	Public              // everybody
	Internal            // everybody with an account there
	Private             // only people with a grant
)

// Repo is a repository as its host describes it. Unknown fields are zero.
type Repo struct {
	ExternalID    string // <kind>:<host>:<the host's id>; renames do not change it
	Name          string // <host>/<path>, or local/<directory>; unique in the listing
	OwnName       string // name by directory, for a local repository whose Name is from its origin; used if a host lists that Name
	DisplayName   string
	Remote        git.Remote // without a credential, see [Credential]
	HostType      string     // codeHostType of the API: genericGitHost, github, ...
	WebURL        string     // page of the repository at its host; "": none
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
	Unfetchable   string // why it cannot be fetched now; "": it can
	Target        string // target of the connection that listed it first

	leftOut Reason // why the host's own rules leave it out; "": they do not
}

// Host lists the repositories of one connection. Its methods are safe for concurrent use, and do
// not keep ctx.
type Host interface {
	// List passes each selected repository to sink. After an error, nothing is known. After a
	// Partial issue, repositories of its target may be missing.
	List(ctx context.Context, sink Sink) error
}

// Finder is a host that finds a repository by its external id.
type Finder interface {
	// Lookup returns the repository's present state. chosen reports whether the connection still
	// selects it and does not exclude it. The error is ErrGone if the host does not have the
	// repository, or does not show it. Any other error means that nothing is known.
	Lookup(ctx context.Context, externalID string) (r Repo, chosen bool, err error)
}

// Metered is a host that reports the limit of its credential.
type Metered interface {
	Allowance() Allowance
}

// Secret returns the secret of a token reference.
type Secret func(ctx context.Context, t config.Token) (string, error)

// Kind describes a kind of code host.
type Kind struct {
	Name    config.Kind
	Product string // display name
	Open    func(config.Connection, Tools) (Host, error)
	// Credential returns the credential with which git fetches a connection's repository.
	Credential func(ctx context.Context, conn config.Connection, cloneURL string, t Tools) (git.Credential, error)
	Hook       Hook   // how its webhooks are signed and named
	Signal     Signal // how it reports pushes when polled; zero: it does not
	Readers    Readership
}

// kinds lists all kinds. It is never changed.
var kinds = [...]Kind{
	{config.KindGit, "git", openGeneric, genericCredential, hookGeneric, Signal{}, Untold},
	{config.KindGitHub, "GitHub", openGitHub, githubCredential, hookGitHub, githubSignal, AllTold},
	{config.KindGitLab, "GitLab", openGitLab, gitlabCredential, hookGitLab, gitlabSignal, AllTold},
	{config.KindGitea, "Gitea and Forgejo", openGitea, giteaCredential, hookGitea, giteaSignal, AllTold},
	{config.KindGerrit, "Gerrit", openGerrit, gerritCredential, hookGerrit, gerritSignal, Untold},
	{config.KindBitbucket, "Bitbucket", openBitbucket, bitbucketCredential, hookBitbucket, bitbucketSignal, SomeTold},
	{config.KindAzureDevOps, "Azure DevOps", openAzure, azureCredential, hookAzure, Signal{}, Untold},
}

// kindOf returns the row of a connection's kind; false for a kind without a row.
func kindOf(conn config.Connection) (Kind, bool) {
	name := conn.Kind()
	for i := range kinds {
		if kinds[i].Name == name {
			return kinds[i], true
		}
	}
	return Kind{}, false
}

// Open returns the host of a connection. It reads secrets at each use.
func Open(conn config.Connection, t Tools) (Host, error) {
	k, ok := kindOf(conn)
	if !ok {
		return nil, fmt.Errorf("there is no kind of host called %s", conn.Kind())
	}
	return k.Open(conn, t)
}

// Within returns the directory that a connection's local repository must stay in: the fixed part of
// its pattern. It is "" for other repositories.
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

// Credential returns the credential for fetching a connection's repository. The catalog has URLs
// without credentials, so the node that fetches reads them from the connection.
func Credential(ctx context.Context, conn config.Connection, cloneURL string, t Tools) (git.Credential, error) {
	k, ok := kindOf(conn)
	if !ok {
		return git.Credential{}, nil
	}
	return k.Credential(ctx, conn, cloneURL, t)
}
