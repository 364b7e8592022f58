package oauth

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/call"
)

// Agent is a program that somebody has let in.
type Agent struct {
	ID      string    `json:"id"`           // of the consent
	Name    string    `json:"name"`         // what the program calls itself
	Kind    string    `json:"kind"`         // Registered, Document or ByOwner
	Host    string    `json:"redirectHost"` // where its codes are sent
	User    string    `json:"user"`         // e-mail address of the person; "" for one that is gone
	Created time.Time `json:"createdAt"`
	Used    time.Time `json:"refreshedAt"` // when it last got tokens, so at most an hour before it last asked for something
	Expires time.Time `json:"expiresAt"`
}

// Agents lists the programs that somebody may manage: an owner those of
// everybody, everybody else their own. It knows those that were let in at any
// node before the call.
func (s *Server) Agents(ctx context.Context, by account.Holder) ([]Agent, error) {
	if _, err := s.d.Cluster.Sync(ctx); err != nil {
		return nil, call.WriteError(err)
	}

	// One that has ended is kept for a while, to know its tokens again: it is no agent any more.
	view := s.d.Cluster.View()
	var all []Agent
	for c := range view.Consents() {
		if s.alive(c) && manages(by, c) {
			all = append(all, agentOf(view, c))
		}
	}

	// By id at last, so that the order is the same at each look.
	slices.SortFunc(all, func(a, b Agent) int {
		return cmp.Or(cmp.Compare(a.User, b.User), cmp.Compare(a.Name, b.Name), a.Created.Compare(b.Created), cmp.Compare(a.ID, b.ID))
	})
	return all, nil
}

func agentOf(view *catalog.View, c *catalog.Consent) Agent {
	a := Agent{ID: c.ID, Name: c.Name, Kind: c.Kind, Host: c.Host, Created: c.Created, Used: c.Rotated, Expires: c.Expires}
	if u := view.Account(c.Account); u != nil {
		a.User = u.Email
	}
	return a
}

func manages(by account.Holder, c *catalog.Consent) bool {
	v := by.Viewer()
	return v.Role == catalog.RoleOwner || v.Account != "" && c.Account == v.Account
}

// EndAgent takes back what somebody has let a program do. Every node that can be
// reached refuses its tokens when it returns.
func (s *Server) EndAgent(ctx context.Context, by account.Holder, id string) (*Agent, error) {
	if _, err := s.d.Cluster.Sync(ctx); err != nil {
		return nil, call.WriteError(err)
	}

	// One of somebody else is missing, like one that never was.
	view := s.d.Cluster.View()
	c := view.Consent(id)
	if c == nil || !s.alive(c) || !manages(by, c) {
		return nil, call.Fail(call.ErrNotFound, "there is no agent %q", id)
	}

	agent := agentOf(view, c)
	if err := s.endNow(ctx, id); err != nil {
		return nil, err
	}
	return &agent, nil
}
