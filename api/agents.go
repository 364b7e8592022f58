package api

import (
	"context"

	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/oauth"
)

// agents is what the routes of agents need.
type agents interface {
	Agents(context.Context, account.Holder) ([]oauth.Agent, error)
	EndAgent(context.Context, account.Holder, string) (*oauth.Agent, error)
	RegisterFor(ctx context.Context, by account.Owner, name string, redirects []string) (*oauth.RegistrationAnswer, error)
}

type agentJSON struct {
	ID           string `json:"id"`
	Name         string `json:"name"`
	Kind         string `json:"kind"`
	RedirectHost string `json:"redirectHost"`
	User         string `json:"user"`
	CreatedAt    string `json:"createdAt"`
	RefreshedAt  string `json:"refreshedAt"`
	ExpiresAt    string `json:"expiresAt"`
}

func agentOf(a *oauth.Agent) agentJSON {
	return agentJSON{a.ID, a.Name, a.Kind, a.Host, a.User, stamp(a.Created), stamp(a.Used), stamp(a.Expires)}
}

// listAgents is GET /api/agents.
func (s *Server) listAgents(ctx context.Context, c *call, by account.Holder) error {
	all, err := s.parts.agents.list.Agents(ctx, by)
	if err != nil {
		return err
	}
	out := make([]agentJSON, len(all))
	for i := range all {
		out[i] = agentOf(&all[i])
	}
	return c.json(out)
}

// endAgent is DELETE /api/agents/{agent}.
func (s *Server) endAgent(ctx context.Context, c *call, by account.Holder) error {
	a, err := s.parts.agents.list.EndAgent(ctx, by, c.wild[0])
	if err != nil {
		return err
	}
	return c.json(agentOf(a))
}

// registerAgent is POST /api/agents/clients.
func (s *Server) registerAgent(ctx context.Context, c *call, by account.Owner) error {
	f, err := decodeBody(c.requestBody())
	if err != nil {
		return err
	}
	name, redirects := f.required("name"), f.texts("redirectUris")
	if err := f.err(); err != nil {
		return err
	}
	got, err := s.parts.agents.list.RegisterFor(ctx, by, name, redirects)
	if err != nil {
		return err
	}
	c.status = 201
	return c.json(struct {
		ClientID     string   `json:"clientId"`
		Name         string   `json:"name"`
		RedirectURIs []string `json:"redirectUris"`
	}{got.ClientID, got.Name, list(got.RedirectURIs)})
}
