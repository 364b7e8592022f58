package api

import (
	"context"

	"github.com/shoalsearch/shoal/node/account"
)

// agentRoutes handles the agents that people have authorized.
type agentRoutes struct{ agents authority }

func (a *agentRoutes) routes() []route {
	return []route{
		newRoute("GET", "/api/agents", accessHolder, adminTimeout, holderHandler(a.list)),
		newRoute("DELETE", "/api/agents/{agent}", accessHolder, adminTimeout, holderHandler(a.end)),
		newRoute("POST", "/api/agents/clients", accessOwner, adminTimeout, ownerHandler(a.register)),
	}
}

// list handles GET /api/agents: the agents of the caller, or all for an owner.
func (a *agentRoutes) list(ctx context.Context, c *call, by account.Holder) error {
	return c.answer(a.agents.Agents(ctx, by))
}

// end handles DELETE /api/agents/{agent}.
func (a *agentRoutes) end(ctx context.Context, c *call, by account.Holder) error {
	return c.answer(a.agents.EndAgent(ctx, by, c.pathValues[0]))
}

// register handles POST /api/agents/clients.
func (a *agentRoutes) register(ctx context.Context, c *call, by account.Owner) error {
	f, err := decodeBody(c.requestBody())
	if err != nil {
		return err
	}

	name, redirects := f.required("name"), f.texts("redirectUris")
	if err := f.err(); err != nil {
		return err
	}

	// The authorization server checks the redirect URIs, as for clients that register themselves.
	got, err := a.agents.RegisterFor(ctx, by, name, redirects)
	if err != nil {
		return err
	}

	c.status = 201
	return c.json(struct {
		ClientID     string   `json:"clientId"`
		Name         string   `json:"name"`
		RedirectURIs []string `json:"redirectUris"`
	}{got.ClientID, got.Name, got.RedirectURIs})
}
