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

type configurationJSON struct {
	Hash        string         `json:"hash"`
	At          string         `json:"at,omitempty"`
	By          string         `json:"by"`
	Connections int            `json:"connections"`
	Contexts    int            `json:"contexts"`
	Problem     string         `json:"problem"`
	Warnings    []string       `json:"warnings"`
	Works       []effectJSON   `json:"works"`
	NoEffect    []effectJSON   `json:"noEffect"`
	Unsafe      []effectJSON   `json:"unsafe"`
	Files       []nodeFileJSON `json:"files"`
	Silent      []string       `json:"silent"`
}

type effectJSON struct {
	Path string `json:"path"`
	Text string `json:"text"`
}

type nodeFileJSON struct {
	Node    string `json:"node"`
	Address string `json:"address"`
	configJSON
}

// get is GET /api/config: which configuration counts, what it does,
// and whose file is another one. It holds paths of properties, no values.
func (a *configRoutes) get(ctx context.Context, c *call, by account.Owner) error {
	r, err := a.configurer.Configuration(ctx, by)
	if err != nil {
		return err
	}

	effects := func(in []config.Error) []effectJSON {
		out := make([]effectJSON, len(in))
		for i, e := range in {
			out[i] = effectJSON{e.Path, e.Message}
		}
		return out
	}

	out := configurationJSON{
		Hash: r.Hash, At: stamp(r.At), By: r.By, Connections: r.Connections, Contexts: r.Contexts, Problem: r.Problem, Warnings: list(r.Warnings),
		Works: effects(r.Effects.Works), NoEffect: effects(r.Effects.None), Unsafe: effects(r.Effects.Unsafe),
		Files: make([]nodeFileJSON, len(r.Files)), Silent: list(r.Silent),
	}

	// Each node has a file of its own, and may have read another text.
	for i := range r.Files {
		f := &r.Files[i]
		out.Files[i] = nodeFileJSON{f.Node, f.Address, configOf(&f.FileStatus)}
	}
	return c.json(out)
}

// contexts is GET /api/contexts.
func (a *configRoutes) contexts(ctx context.Context, c *call) error {
	all, err := a.configurer.Contexts(ctx, c.viewer)
	if err != nil {
		return err
	}

	type contextJSON struct {
		Name        string `json:"name"`
		Description string `json:"description"`
		Repos       int    `json:"repos"`
	}

	// Counts are of what the viewer may see.
	out := make([]contextJSON, len(all))
	for i, x := range all {
		out[i] = contextJSON(x)
	}
	return c.json(out)
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

	return c.json(struct {
		Hash        string   `json:"hash"`
		Connections int      `json:"connections"`
		Changed     bool     `json:"changed"`
		Warnings    []string `json:"warnings"`
	}{r.Hash, r.Connections, r.Changed, list(r.Warnings)})
}
