package api

import (
	"context"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/account"
	nodeask "github.com/shoalsearch/shoal/node/ask"
	"github.com/shoalsearch/shoal/node/tool"
)

// models is what the routes of language models need.
type models interface {
	Models(context.Context, catalog.Viewer) ([]tool.Model, error)
	CheckModels(context.Context, account.Owner) ([]nodeask.ModelCheck, error)
}

// modelRoutes are the routes of language models.
type modelRoutes struct{ models models }

func (a *modelRoutes) rows() []route {
	return []route{
		row("GET", "/api/models", accessRead, quickTimeout, a.list),
		row("POST", "/api/models/check", accessOwner, toolTimeout, owners(a.check)),
	}
}

// list is GET /api/models.
func (a *modelRoutes) list(ctx context.Context, c *call) error {
	models, err := a.models.Models(ctx, c.viewer)
	if err != nil {
		return err
	}
	return c.json(models)
}

// check is POST /api/models/check.
func (a *modelRoutes) check(ctx context.Context, c *call, by account.Owner) error {
	checks, err := a.models.CheckModels(ctx, by)
	if err != nil {
		return err
	}
	return c.json(checks)
}
