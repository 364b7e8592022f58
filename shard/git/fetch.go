package git

import (
	"context"
	"time"
)

// Credential opens a remote. It is handed to git in the environment, never
// on a command line, and never printed.
type Credential struct {
	User, Password string
}

// String hides the password.
func (c Credential) String() string {
	if c == (Credential{}) {
		return "none"
	}
	return "***"
}

// GoString hides the password.
func (c Credential) GoString() string { return c.String() }

// Remote is where a mirror is fetched from.
type Remote struct {
	URL        string // http, https or file
	Credential Credential
}

// FetchOptions bounds a fetch. The zero value is useful.
type FetchOptions struct {
	Timeout time.Duration // of the whole fetch; 0 is two hours
	Stall   time.Duration // with next to nothing received; 0 is 60 s
}

// Fetched tells what a fetch did.
type Fetched struct {
	Changed       bool   // some reference differs from before
	Empty         bool   // the remote has no commit
	DefaultBranch string // short name; empty when HEAD is detached or the remote is empty
	Refs          int    // branches and tags of the mirror now
}

// Fetch brings the mirror to the state of the remote: all branches and tags,
// moved and deleted ones too, and HEAD. It makes the mirror when there is
// none, and anew when the remote's hash algorithm has changed. It never
// prompts, never hangs (Timeout, Stall), and on failure leaves a mirror that
// is as it was or further ahead. A remote with nothing new costs one
// listing.
func (m *Mirror) Fetch(ctx context.Context, remote Remote, o FetchOptions) (Fetched, error) {
	return Fetched{}, ErrEmpty
}

// Probe asks a remote for its HEAD: the error is nil when the repository is
// there and may be read, also when it is empty.
func Probe(ctx context.Context, remote Remote, o FetchOptions) error {
	return ErrNoRemote
}

// Local is a repository found in a directory of this machine.
type Local struct {
	Root      string // the directory asked for, cleaned
	GitDir    string // Root, Root/.git, or where a .git file leads
	OriginURL string // remote.origin.url; empty when not set
}

// OpenLocal looks at the repository whose root is dir, without writing
// anything. It fails when dir is not the root of a repository.
func OpenLocal(ctx context.Context, dir string) (Local, error) {
	return Local{}, ErrNoRemote
}

// Groom makes the mirror quick to read: packed references, few packs, a
// commit graph with changed-path filters. It is called after a fetch that
// changed something, and may run while the mirror is read.
func (m *Mirror) Groom(ctx context.Context) error { return nil }

// Close ends the processes of the reading pool. Calls after it fail with
// ErrClosed.
func (m *Mirror) Close() error { return nil }
