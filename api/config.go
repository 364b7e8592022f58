package api

import (
	"context"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/cluster/config"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/configure"
)

// configurer is what the routes and pages of the configuration need.
type configurer interface {
	Configuration(context.Context, account.Owner) (*configure.ConfigurationResponse, error)
	Contexts(context.Context, catalog.Viewer) ([]configure.ContextInfo, error)
	ApplyConfig(context.Context, account.Owner, configure.ApplyConfigRequest) (*configure.ApplyConfigResponse, error)
}

// configRoutes are the routes of the configuration.
type configRoutes struct{ configurer configurer }

func (a *configRoutes) rows() []route {
	return []route{
		row("GET", "/api/config", accessOwner, quickTimeout, owners(a.get)).taking(config.MaxSize),
		row("POST", "/api/config", accessOwner, adminTimeout, owners(a.apply)).taking(config.MaxSize),
		row("GET", "/api/contexts", accessRead, quickTimeout, a.contexts),
	}
}

// get is GET /api/config: which configuration counts, what it does,
// and whose file is another one. It holds paths of properties, no values.
func (a *configRoutes) get(ctx context.Context, c *call, by account.Owner) error {
	r, err := a.configurer.Configuration(ctx, by)
	if err != nil {
		return err
	}
	return c.json(r)
}

// contexts is GET /api/contexts.
func (a *configRoutes) contexts(ctx context.Context, c *call) error {
	all, err := a.configurer.Contexts(ctx, c.viewer)
	if err != nil {
		return err
	}
	return c.json(all) // counts are of what the viewer may see
}

// apply is POST /api/config: the body is a configuration file, which
// becomes that of the cluster.
func (a *configRoutes) apply(ctx context.Context, c *call, by account.Owner) error {
	// The body is the file as it is: no member of an object, whose text would be quoted.
	p := c.params()
	req := configure.ApplyConfigRequest{Text: c.requestBody(), Accept: p.flag("accept", false)}
	if err := p.err(); err != nil {
		return err
	}

	r, err := a.configurer.ApplyConfig(ctx, by, req)
	if err != nil {
		return err
	}
	return c.json(r)
}
