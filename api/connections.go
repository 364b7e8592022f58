package api

import (
	"context"

	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/operate"
)

// connections is what the routes of connections need.
type connections interface {
	Connections(context.Context, account.Owner) ([]operate.ConnectionStatus, error)
	Connection(context.Context, account.Owner, operate.ConnectionRequest) (*operate.ConnectionResponse, error)
	SyncConnection(context.Context, account.Owner, operate.ConnectionRequest) (*operate.ConnectionStatus, error)
	AcceptListing(context.Context, account.Owner, operate.ConnectionRequest) (*operate.ConnectionStatus, error)
}

// connectionRoutes are the routes of connections.
type connectionRoutes struct{ connections connections }

func (a *connectionRoutes) rows() []route {
	return []route{
		row("GET", "/api/connections", accessOwner, quickTimeout, owners(a.list)),
		row("GET", "/api/connections/{connection}", accessOwner, quickTimeout, owners(a.get)),
		row("POST", "/api/connections/{connection}/sync", accessOwner, adminTimeout, owners(a.sync)),
		row("POST", "/api/connections/{connection}/accept", accessOwner, adminTimeout, owners(a.accept)),
	}
}

type connectionJSON struct {
	Name     string         `json:"name"`
	Type     string         `json:"type"`
	State    string         `json:"state"`
	Message  string         `json:"message"`
	Warnings []string       `json:"warnings"`
	Issues   []issueJSON    `json:"issues"`
	Repos    int            `json:"repos"`
	Listed   int            `json:"listed"`
	Excluded []excludedJSON `json:"excluded"`
	Kept     int            `json:"kept"`
	Held     int            `json:"held"`
	HeldAt   string         `json:"heldAt,omitempty"`
	SyncedAt string         `json:"syncedAt,omitempty"`
	Attempt  uint64         `json:"attempt"`
	Queued   bool           `json:"queued"`
	EndedAt  string         `json:"endedAt,omitempty"`
	NextAt   string         `json:"nextAt,omitempty"`
	Calls    int            `json:"calls"`
	Limit    *limitJSON     `json:"limit,omitzero"`
	TokenEnd string         `json:"tokenExpiresAt,omitempty"`
	Refused  string         `json:"tokenRefusedAt,omitempty"`
	Hides    string         `json:"hidesAt,omitempty"`
	Hidden   string         `json:"hiddenAt,omitempty"`
	Follows  followingJSON  `json:"following"`
}

// followingJSON is how pushes are found.
type followingJSON struct {
	By      string  `json:"by"`
	Signal  string  `json:"signal,omitempty"`
	Every   float64 `json:"everySeconds,omitzero"`
	LastAt  string  `json:"lastAt,omitempty"`
	Problem string  `json:"problem,omitempty"`
	HookAt  string  `json:"webhookAt,omitempty"`
}

type issueJSON struct {
	Code   string `json:"code"`
	Target string `json:"target,omitempty"`
	Text   string `json:"text"`
	Hint   string `json:"hint,omitempty"`
	Since  string `json:"since,omitempty"`
}

type excludedJSON struct {
	Reason string `json:"reason"`
	Repos  int    `json:"repos"`
}

type limitJSON struct {
	Calls     int    `json:"calls"`
	Remaining int    `json:"remaining"`
	ResetAt   string `json:"resetAt,omitempty"`
}

func connectionOf(k *operate.ConnectionStatus) connectionJSON {
	out := connectionJSON{
		Name: k.Name, Type: k.Type, State: k.State, Message: k.Message, Warnings: list(k.Warnings), Issues: make([]issueJSON, len(k.Issues)),
		Repos: k.Repos, Listed: k.Listed, Excluded: make([]excludedJSON, len(k.Excluded)), Kept: k.Kept, Held: k.Held, HeldAt: stamp(k.HeldAt),
		Follows:  followingOf(k.Following),
		SyncedAt: stamp(k.SyncedAt), Attempt: k.Attempt, Queued: k.Queued, EndedAt: stamp(k.EndedAt), NextAt: stamp(k.NextAt), Calls: k.Calls, TokenEnd: stamp(k.ExpiresAt),
		Refused: stamp(k.RefusedAt), Hides: stamp(k.HidesAt), Hidden: stamp(k.HiddenAt),
	}

	for i, issue := range k.Issues {
		out.Issues[i] = issueJSON{issue.Code, issue.Target, issue.Text, issue.Hint, stamp(issue.Since)}
	}
	for i, e := range k.Excluded {
		out.Excluded[i] = excludedJSON(e)
	}

	// null where the host says nothing of limits, which is not a limit of 0.
	if k.Limit > 0 {
		out.Limit = &limitJSON{k.Limit, k.Remaining, stamp(k.ResetAt)}
	}
	return out
}

func followingOf(f operate.FollowingStatus) followingJSON {
	return followingJSON{f.By, f.Signal, f.Every.Seconds(), stamp(f.LastAt), f.Problem, stamp(f.HookAt)}
}

// list is GET /api/connections.
func (a *connectionRoutes) list(ctx context.Context, c *call, by account.Owner) error {
	all, err := a.connections.Connections(ctx, by)
	if err != nil {
		return err
	}

	out := make([]connectionJSON, len(all))
	for i := range all {
		out[i] = connectionOf(&all[i])
	}
	return c.json(out)
}

// syncJSON is a listing that has ended.
type syncJSON struct {
	BeganAt string `json:"beganAt"`
	TookMs  int64  `json:"tookMs"`
	State   string `json:"state"`
	Repos   *int   `json:"repos,omitzero"`
	Error   string `json:"error,omitempty"`
}

func syncOf(s *operate.SyncRun) syncJSON {
	out := syncJSON{BeganAt: stamp(s.Began), TookMs: s.Ended.Sub(s.Began).Milliseconds(), State: "failed", Error: s.Error}

	// Of one that failed nothing is counted: it has not changed what there is.
	if s.Error == "" {
		out.State, out.Repos = "synced", &s.Repos
	}
	return out
}

// get is GET /api/connections/{connection}: with its last listings.
func (a *connectionRoutes) get(ctx context.Context, c *call, by account.Owner) error {
	r, err := a.connections.Connection(ctx, by, operate.ConnectionRequest{Name: c.wild[0]})
	if err != nil {
		return err
	}

	syncs := make([]syncJSON, len(r.Syncs))
	for i := range r.Syncs {
		syncs[i] = syncOf(&r.Syncs[i])
	}
	return c.json(struct {
		connectionJSON
		Syncs []syncJSON `json:"syncs"`
	}{connectionOf(&r.ConnectionStatus), syncs})
}

// sync is POST /api/connections/{connection}/sync: a listing now.
// The answer is how the connection stood before.
func (a *connectionRoutes) sync(ctx context.Context, c *call, by account.Owner) error {
	before, err := a.connections.SyncConnection(ctx, by, operate.ConnectionRequest{Name: c.wild[0]})
	return syncQueued(c, before, err)
}

// accept is POST /api/connections/{connection}/accept: what the last
// listing misses is gone. The answer is how the connection stood before.
func (a *connectionRoutes) accept(ctx context.Context, c *call, by account.Owner) error {
	before, err := a.connections.AcceptListing(ctx, by, operate.ConnectionRequest{Name: c.wild[0]})
	return syncQueued(c, before, err)
}

func syncQueued(c *call, before *operate.ConnectionStatus, err error) error {
	if err != nil {
		return err
	}

	c.status = 202
	return c.json(connectionOf(before))
}
