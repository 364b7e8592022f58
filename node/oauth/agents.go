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

// Agent is a program that a person has let in.
type Agent struct {
	ID      string    `json:"id"`           // id of the consent
	Name    string    `json:"name"`         // the program's own name
	Kind    string    `json:"kind"`         // Registered, Document or ByOwner
	Host    string    `json:"redirectHost"` // where its codes are sent
	User    string    `json:"user"`         // e-mail address of the person; "" if the account is gone
	Created time.Time `json:"createdAt"`
	Used    time.Time `json:"refreshedAt"` // when it last got tokens; its last request is at most an hour later
	Expires time.Time `json:"expiresAt"`
}

// Agents returns the programs that a holder manages: owners manage all, others their own. The list
// includes changes on any node before the call.
func (s *Server) Agents(ctx context.Context, by account.Holder) ([]Agent, error) {
	if _, err := s.d.Cluster.Sync(ctx); err != nil {
		return nil, call.WriteError(err)
	}

	// Ended consents stay in the catalog for a while, to recognize their tokens. Skip them.
	view := s.d.Cluster.View()
	var all []Agent
	for c := range view.Consents() {
		if s.isValid(c) && manages(by, c) {
			all = append(all, agentOf(view, c))
		}
	}

	// The id breaks ties, so that the order is stable.
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

// EndAgent ends the consent of a program. When it returns, every reachable node refuses its tokens.
func (s *Server) EndAgent(ctx context.Context, by account.Holder, id string) (*Agent, error) {
	if _, err := s.d.Cluster.Sync(ctx); err != nil {
		return nil, call.WriteError(err)
	}

	// Another person's agent looks like a missing one.
	view := s.d.Cluster.View()
	c := view.Consent(id)
	if c == nil || !s.isValid(c) || !manages(by, c) {
		return nil, call.Fail(call.ErrNotFound, "there is no agent %q", id)
	}

	agent := agentOf(view, c)
	if err := s.endConsent(ctx, id); err != nil {
		return nil, err
	}
	return &agent, nil
}
