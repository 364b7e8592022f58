package ask

import (
	"context"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/browse"
	"github.com/shoalsearch/shoal/node/tool"
)

// lister is what the tools of a turn list.
type lister struct {
	kit *kit
	*ledger
}

// Repos is of [tool.Lister].
func (l lister) Repos(ctx context.Context, v catalog.Viewer, req browse.ReposRequest) (*browse.ReposResponse, error) {
	return l.kit.sources.Repos(ctx, v, req)
}

// Models is of [tool.Lister].
func (l lister) Models(ctx context.Context, v catalog.Viewer) ([]tool.Model, error) {
	return l.kit.models.Models(ctx, v)
}
