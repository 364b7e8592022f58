package ask

import (
	"context"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/tool"
)

// Chats reads and answers questions; *Asker implements it. Its methods are safe for concurrent
// use.
type Chats interface {
	Models(context.Context, catalog.Viewer) ([]tool.Model, error)
	CheckModels(context.Context, account.Owner) ([]ModelCheck, error)
	HasModel() bool

	Ask(context.Context, catalog.Viewer, Question) (*Started, error)
	Sees(ctx context.Context, v catalog.Viewer, id string) error
	WatchChat(ctx context.Context, v catalog.Viewer, id string, after int, fn func(Event) error) error
	StopChat(ctx context.Context, v catalog.Viewer, id string) error

	Chat(ctx context.Context, v catalog.Viewer, id string) (*Chat, error)
	Chats(ctx context.Context, v catalog.Viewer, skip, most int) ([]Chat, int, error)
	ChangeChat(ctx context.Context, v catalog.Viewer, id, name string, public *bool) error
	DeleteChat(ctx context.Context, v catalog.Viewer, id string) error
	ForkChat(ctx context.Context, v catalog.Viewer, id string) (string, error)
}
