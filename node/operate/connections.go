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

// Syncer is the connections of the cluster, for owners.
type Syncer struct {
	cluster   Cluster
	following func(connection string) job.FollowingState // how pushes are found, as far as this node knows
	syncs     *syncLog
}

// ConnectionStatus is the state of one connection.
type ConnectionStatus struct {
	ID       uint32            `json:"id"` // as catalog.ConnectionID makes it
	Name     string            `json:"name"`
	Kind     string            `json:"connectionType"` // the same as Type, as clients of the reference call it
	Type     string            `json:"type"`
	State    string            `json:"state"`   // pending, syncing, synced, failed
	Message  string            `json:"message"` // why the last attempt failed
	Warnings []string          `json:"warnings"`
	Issues   []ConnectionIssue `json:"issues"`

	Repos    int             `json:"repos"`
	Listed   int             `json:"listed"`            // new or changed repositories so far, while it syncs
	Excluded []ExcludedCount `json:"excluded"`          // what the connection leaves out, by reason
	Kept     int             `json:"kept"`              // missing in the last listing, but not gone as far as the host tells
	Held     int             `json:"held"`              // missing in the last listing, until a second one or an owner agrees
	HeldAt   time.Time       `json:"heldAt,omitzero"`   // since when
	SyncedAt time.Time       `json:"syncedAt,omitzero"` // end of the last listing
	Attempt  uint64          `json:"attempt"`           // number of the last attempt, which grows; 0 before the first
	Queued   bool            `json:"queued"`            // an attempt waits or runs
	EndedAt  time.Time       `json:"endedAt,omitzero"`  // of the last attempt, good or not
	NextAt   time.Time       `json:"nextAt,omitzero"`   // of the next one; zero: as soon as a node is free

	Calls     int        `json:"calls"`                   // to the host, for the last listing
	Limit     *CallLimit `json:"limit,omitzero"`          // nil where the host does not say
	ExpiresAt time.Time  `json:"tokenExpiresAt,omitzero"` // of the token; zero where the host does not say

	// While the host refuses the token, what was listed last is stale: it is
	// searched until HidesAt, and hidden by the next attempt that is refused.
	RefusedAt time.Time `json:"tokenRefusedAt,omitzero"` // end of the first attempt that was refused; zero for none
	HidesAt   time.Time `json:"hidesAt,omitzero"`        // zero where nothing is refused, and once it is hidden
	HiddenAt  time.Time `json:"hiddenAt,omitzero"`       // zero while the repositories are shown

	Following FollowingStatus `json:"following"`
}

// CallLimit is how many calls a host takes in a period.
type CallLimit struct {
	Calls     int       `json:"calls"`
	Remaining int       `json:"remaining"`
	ResetAt   time.Time `json:"resetAt,omitzero"`
}

// FollowingStatus is how pushes to the repositories of a connection are found,
// as far as this node knows.
type FollowingStatus struct {
	By      string    `json:"by"`                    // what finds them first: webhook, signal, polling
	Signal  string    `json:"signal,omitzero"`       // what the host is asked for; empty where it tells nothing of pushes
	Seconds float64   `json:"everySeconds,omitzero"` // between two such questions
	LastAt  time.Time `json:"lastAt,omitzero"`       // of the last one; zero before the first
	Problem string    `json:"problem,omitzero"`      // why that failed; empty where it did not
	HookAt  time.Time `json:"webhookAt,omitzero"`    // of the last call of a webhook since the node was started; zero before the first
}

// ConnectionIssue is one thing that an owner should know of a listing.
type ConnectionIssue struct {
	Code   string    `json:"code"`
	Target string    `json:"target,omitzero"` // organisation, group, project or repository; "" for the whole connection
	Text   string    `json:"text"`
	Hint   string    `json:"hint,omitzero"`  // what to do; "" where Text says it
	Since  time.Time `json:"since,omitzero"` // end of the first listing in a row that told it
}

// ExcludedCount is how many repositories a connection leaves out for a reason.
type ExcludedCount struct {
	Reason string `json:"reason"`
	Repos  int    `json:"repos"`
}

// Connections lists the connections of the configuration.
func (s *Syncer) Connections(_ context.Context, _ account.Owner) ([]ConnectionStatus, error) {
	var out []ConnectionStatus
	view := s.cluster.View()
	for c := range view.Connections() {
		out = append(out, s.StateOf(view, c))
	}
	return out, nil
}

// SyncConnection asks for a listing of a connection now, and returns how the
// connection stood before.
func (s *Syncer) SyncConnection(ctx context.Context, _ account.Owner, name string) (*ConnectionStatus, error) {
	return s.onConnection(ctx, name, &catalog.EnqueueJob{Kind: catalog.JobSync, Subject: name, Urgent: true})
}

// AcceptListing says that what the last listing of a connection misses is
// gone: the next one, which it asks for, is believed. It returns how the
// connection stood before.
func (s *Syncer) AcceptListing(ctx context.Context, _ account.Owner, name string) (*ConnectionStatus, error) {
	return s.onConnection(ctx, name, &catalog.AcceptListing{Connection: name})
}

// onConnection proposes a command about a connection.
func (s *Syncer) onConnection(ctx context.Context, name string, cmd catalog.Command) (*ConnectionStatus, error) {
	// As it stood before: an answer that says what was changed, not what came of it.
	view := s.cluster.View()
	c := view.Connection(name)
	if c == nil {
		return nil, noConnection(name)
	}

	before := s.StateOf(view, c)
	if _, err := s.cluster.Propose(ctx, cmd); err != nil {
		// The one refusal that is about the state of the connection: an owner
		// can do something about it.
		if no, ok := catalog.Refused(err); ok && no.Code == catalog.Conflict {
			return nil, call.Fail(call.ErrUnable, "Connection %q: %s", name, no.Reason)
		}
		return nil, call.WriteError(err)
	}
	return &before, nil
}

// noConnection says that the configuration in force names no such connection.
func noConnection(name string) error {
	return call.Fail(call.ErrNotFound, "Connection %q not found", name)
}

// StateOf is how a connection stands at a view.
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

	// An attempt that is refused lists nothing: what it means stands before what the
	// last listing has told.
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

	// When it was listed last, and will be again, its job knows.
	j := view.Job(catalog.JobSync, c.Name)
	out.NextAt = job.NextSync(view.File().Settings, c, j)
	if j != nil {
		out.EndedAt, out.Attempt = j.FinishedAt, j.Fence
		out.Queued = j.State == catalog.JobWaiting || j.State == catalog.JobRunning
	}

	// Running goes before failed: an attempt under way may mend what the last one met.
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

// Refusal says what it means that a host refuses the token of a connection; empty
// where it does not.
func Refusal(c *catalog.Connection) string {
	day := func(t time.Time) string { return t.UTC().Format("2 January 2006") }
	switch {
	case c.RefusedAt.IsZero():
		return ""
	case c.HiddenAt.IsZero():
		return fmt.Sprintf("the host refuses the token; what was listed last is searched until %s, and hidden after that until the host takes the token", day(c.HidesAt()))
	}
	return fmt.Sprintf("the host has refused the token since %s; what was listed is hidden from everybody since %s, and is back with the first listing that the host takes the token for", day(c.RefusedAt), day(c.HiddenAt))
}

// followingOf names what finds pushes first.
func followingOf(f job.FollowingState) FollowingStatus {
	s := FollowingStatus{
		By:      "polling",
		Signal:  f.Signal,
		Seconds: f.Every.Seconds(),
		LastAt:  f.LastAt,
		Problem: f.Problem,
		HookAt:  f.HookAt,
	}

	// A push that was told beats one that was found, and that beats a look at every repository.
	switch {
	case !f.HookAt.IsZero():
		s.By = "webhook"
	case f.Live:
		s.By = "signal"
	}
	return s
}
