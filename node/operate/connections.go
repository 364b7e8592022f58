package operate

import (
	"context"
	"fmt"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/node/host"
	"github.com/shoalsearch/shoal/node/job"
)

// Syncer lists the cluster's connections and has them listed again, for owners.
type Syncer struct {
	cluster   Cluster
	following func(connection string) job.FollowingState // how this node finds pushes
	syncs     *syncLog
}

// ConnectionStatus is the state of one connection.
type ConnectionStatus struct {
	ID       uint32            `json:"id"` // from catalog.ConnectionID
	Name     string            `json:"name"`
	Kind     string            `json:"connectionType"` // equal to Type; Sourcebot's clients read this name
	Type     string            `json:"type"`
	State    string            `json:"state"`   // pending, syncing, synced or failed
	Message  string            `json:"message"` // why the last attempt failed
	Warnings []string          `json:"warnings"`
	Issues   []ConnectionIssue `json:"issues"`

	Repos    int             `json:"repos"`
	Listed   int             `json:"listed"`            // new or changed repositories so far, while it syncs
	Excluded []ExcludedCount `json:"excluded"`          // repositories that the connection leaves out, by reason
	Kept     int             `json:"kept"`              // missing in the last listing, but not proven gone
	Held     int             `json:"held"`              // missing in the last listing; a second listing or an owner must confirm
	HeldAt   time.Time       `json:"heldAt,omitzero"`   // since when repositories are held
	SyncedAt time.Time       `json:"syncedAt,omitzero"` // end of the last listing
	Attempt  uint64          `json:"attempt"`           // number of the last attempt; it grows; 0: none yet
	Queued   bool            `json:"queued"`            // an attempt waits or runs
	EndedAt  time.Time       `json:"endedAt,omitzero"`  // end of the last attempt, good or failed
	NextAt   time.Time       `json:"nextAt,omitzero"`   // start of the next attempt; zero: as soon as a node is free

	Calls     int        `json:"calls"`                   // calls to the host for the last listing
	Limit     *CallLimit `json:"limit,omitzero"`          // nil if the host announces none
	ExpiresAt time.Time  `json:"tokenExpiresAt,omitzero"` // end of the token; zero if the host does not tell

	// While the host refuses the token, the last listing is stale. Its repositories are shown until
	// HidesAt. The next refused attempt after that hides them.
	RefusedAt time.Time `json:"tokenRefusedAt,omitzero"` // end of the first refused attempt; zero: none
	HidesAt   time.Time `json:"hidesAt,omitzero"`        // zero if no token is refused, or the repositories are hidden already
	HiddenAt  time.Time `json:"hiddenAt,omitzero"`       // zero while the repositories are shown

	Following FollowingStatus `json:"following"`
}

// CallLimit is how many calls a host accepts per period.
type CallLimit struct {
	Calls     int       `json:"calls"`
	Remaining int       `json:"remaining"`
	ResetAt   time.Time `json:"resetAt,omitzero"`
}

// FollowingStatus is how this node finds pushes to a connection's repositories.
type FollowingStatus struct {
	By      string    `json:"by"`                    // fastest way in use: webhook, signal or polling
	Signal  string    `json:"signal,omitzero"`       // what the host is polled for; "" if it announces no pushes
	Seconds float64   `json:"everySeconds,omitzero"` // between two polls for the signal
	LastAt  time.Time `json:"lastAt,omitzero"`       // last poll; zero: none yet
	Problem string    `json:"problem,omitzero"`      // why the last poll failed; "": it did not
	HookAt  time.Time `json:"webhookAt,omitzero"`    // last call of the webhook since this node started; zero: none
}

// ConnectionIssue is a problem of a listing, for owners.
type ConnectionIssue struct {
	Code   string    `json:"code"`
	Target string    `json:"target,omitzero"` // organisation, group, project or repository; "": the whole connection
	Text   string    `json:"text"`
	Hint   string    `json:"hint,omitzero"`  // what to do; "" if Text says it
	Since  time.Time `json:"since,omitzero"` // end of the first of the consecutive listings that reported it
}

// ExcludedCount is how many repositories a connection leaves out for a reason.
type ExcludedCount struct {
	Reason string `json:"reason"`
	Repos  int    `json:"repos"`
}

// Connections returns the connections of the configuration.
func (s *Syncer) Connections(_ context.Context, _ account.Owner) ([]ConnectionStatus, error) {
	var out []ConnectionStatus
	view := s.cluster.View()
	for c := range view.Connections() {
		out = append(out, s.StateOf(view, c))
	}
	return out, nil
}

// SyncConnection queues a listing of a connection, and returns the connection's state before.
func (s *Syncer) SyncConnection(ctx context.Context, _ account.Owner, name string) (*ConnectionStatus, error) {
	return s.proposeFor(ctx, name, &catalog.EnqueueJob{Kind: catalog.JobSync, Subject: name, Urgent: true})
}

// AcceptListing confirms that the repositories missing in a connection's last listing are gone. It
// queues another listing, which may remove them. It returns the connection's state before.
func (s *Syncer) AcceptListing(ctx context.Context, _ account.Owner, name string) (*ConnectionStatus, error) {
	return s.proposeFor(ctx, name, &catalog.AcceptListing{Connection: name})
}

// proposeFor proposes a command about a connection, and returns the connection's state before.
func (s *Syncer) proposeFor(ctx context.Context, name string, cmd catalog.Command) (*ConnectionStatus, error) {
	view := s.cluster.View()
	c := view.Connection(name)
	if c == nil {
		return nil, unknownConnection(name)
	}

	before := s.StateOf(view, c)
	if _, err := s.cluster.Propose(ctx, cmd); err != nil {
		// Only this refusal depends on the connection's state. An owner can act on it.
		if refused, ok := catalog.Refused(err); ok && refused.Code == catalog.Conflict {
			return nil, call.Fail(call.ErrUnable, "Connection %q: %s", name, refused.Reason)
		}
		return nil, call.WriteError(err)
	}
	return &before, nil
}

// unknownConnection returns the error for an unknown connection.
func unknownConnection(name string) error {
	return call.Fail(call.ErrNotFound, "Connection %q not found", name)
}

// StateOf returns the state of a connection in a view.
func (s *Syncer) StateOf(view *catalog.View, c *catalog.Connection) ConnectionStatus {
	out := ConnectionStatus{
		ID:       catalog.ConnectionID(c.Name),
		Name:     c.Name,
		Kind:     c.Kind,
		Type:     c.Kind,
		Message:  c.Error,
		Warnings: c.Warnings,
		Repos:    int(c.Repos),
		SyncedAt: c.SyncedAt,
		State:    "pending",
		Kept:     int(c.Kept),
		Held:     int(c.Held),
		HeldAt:   c.HeldAt,

		Calls:     int(c.Account.Calls),
		ExpiresAt: c.Account.Expires,

		RefusedAt: c.RefusedAt,
		HidesAt:   c.HidesAt(),
		HiddenAt:  c.HiddenAt,
	}

	if a := &c.Account; a.Limit > 0 {
		out.Limit = &CallLimit{int(a.Limit), int(a.Remaining), a.Reset}
	}

	// A refused attempt lists nothing. Its issue comes before those of the last listing.
	if text := Refusal(c); text != "" {
		out.Issues = append(out.Issues, ConnectionIssue{string(host.TokenRefused), "", text, host.Advice(host.TokenRefused), c.RefusedAt})
		out.Warnings = append([]string{text}, c.Warnings...)
	}

	for _, i := range c.Issues {
		out.Issues = append(out.Issues, ConnectionIssue{i.Code, i.Target, i.Text, host.Advice(host.Code(i.Code)), i.Since})
	}

	for _, e := range c.Excluded {
		out.Excluded = append(out.Excluded, ExcludedCount{e.Reason, int(e.Count)})
	}

	// The job knows the times of the last and next listing.
	j := view.Job(catalog.JobSync, c.Name)
	out.NextAt = job.NextSync(view.File().Settings, c, j)
	if j != nil {
		out.EndedAt, out.Attempt = j.FinishedAt, j.Fence
		out.Queued = j.State == catalog.JobWaiting || j.State == catalog.JobRunning
	}

	// Running comes before failed: the present attempt may succeed.
	switch {
	case j != nil && j.State == catalog.JobRunning:
		out.State, out.Listed = "syncing", int(j.Seen)
	case c.Error != "":
		out.State = "failed"
	case c.Synced == c.Hash && c.Synced != "":
		out.State = "synced"
	}

	out.Following = followingOf(s.following(c.Name))
	return out
}

// Refusal returns a sentence about a token that the host refuses, or "" if it refuses none.
func Refusal(c *catalog.Connection) string {
	day := func(t time.Time) string { return t.UTC().Format("2 January 2006") }
	switch {
	case c.RefusedAt.IsZero():
		return ""
	case c.HiddenAt.IsZero():
		return fmt.Sprintf("the host refuses the token; what was listed last is searched until %s, and hidden after that until the host takes the token", day(c.HidesAt()))
	}
	return fmt.Sprintf("the host has refused the token since %s. What was listed is hidden from everybody since %s. It comes back with the first listing for which the host takes the token", day(c.RefusedAt), day(c.HiddenAt))
}

// followingOf returns how pushes are found, with the fastest way.
func followingOf(f job.FollowingState) FollowingStatus {
	s := FollowingStatus{
		By:      "polling",
		Signal:  f.Signal,
		Seconds: f.Every.Seconds(),
		LastAt:  f.LastAt,
		Problem: f.Problem,
		HookAt:  f.HookAt,
	}

	// A webhook is faster than polling a signal, and that is faster than polling each repository.
	switch {
	case !f.HookAt.IsZero():
		s.By = "webhook"
	case f.Live:
		s.By = "signal"
	}
	return s
}
