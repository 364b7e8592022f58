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

type modelJSON struct {
	Provider    string `json:"provider"`
	Model       string `json:"model"`
	DisplayName string `json:"displayName,omitempty"`
	Usable      bool   `json:"usable"`
}

// models is GET /api/models.
func (s *Server) models(ctx context.Context, c *call) error {
	models, err := s.parts.models.Models(ctx, c.viewer)
	if err != nil {
		return err
	}
	out := make([]modelJSON, len(models))
	for i, m := range models {
		out[i] = modelJSON(m)
	}
	return c.json(out)
}

type modelCheckJSON struct {
	Provider     string `json:"provider"`
	Model        string `json:"model"`
	OK           bool   `json:"ok"`
	Problem      string `json:"problem,omitempty"`
	TookMs       int64  `json:"tookMs"`
	InputTokens  int    `json:"inputTokens"`
	OutputTokens int    `json:"outputTokens"`
}

// checkModels is POST /api/models/check.
func (s *Server) checkModels(ctx context.Context, c *call, by account.Owner) error {
	checks, err := s.parts.models.CheckModels(ctx, by)
	if err != nil {
		return err
	}
	out := make([]modelCheckJSON, len(checks))
	for i, k := range checks {
		out[i] = modelCheckJSON{k.Provider, k.Model, k.Problem == "", k.Problem, k.Took.Milliseconds(), k.Usage.Input, k.Usage.Output}
	}
	return c.json(out)
}
