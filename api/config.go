package api

import (
	"context"

	"github.com/shoalsearch/shoal/api/settings"
	"github.com/shoalsearch/shoal/cluster/config"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/configure"
)

// configRoutes handles the configuration and the search contexts.
type configRoutes struct{ config settings.Config }

func (a *configRoutes) routes() []route {
	return []route{
		newRoute("GET", "/api/config", accessOwner, quickTimeout, ownerAnswer(a.config.Configuration)).withMaxBody(config.MaxSize),
		newRoute("POST", "/api/config", accessOwner, adminTimeout, ownerHandler(a.apply)).withMaxBody(config.MaxSize),
		newRoute("GET", "/api/contexts", accessRead, quickTimeout, viewerAnswer(a.config.Contexts)),
	}
}

// apply handles POST /api/config: the body becomes the configuration of the cluster.
func (a *configRoutes) apply(ctx context.Context, c *call, by account.Owner) error {
	// The body is the configuration file itself, not JSON that contains it.
	p := c.params()
	req := configure.ApplyConfigRequest{Text: c.requestBody(), Accept: p.flag("accept", false)}
	if err := p.err(); err != nil {
		return err
	}

	return c.answer(a.config.ApplyConfig(ctx, by, req))
}
