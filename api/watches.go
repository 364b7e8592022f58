package api

import (
	"context"

	"github.com/shoalsearch/shoal/api/web"
	"github.com/shoalsearch/shoal/node/watch"
)

// watchRoutes handles watches, and their feeds.
type watchRoutes struct {
	watches web.Watches
	base    func() string
}

func (a *watchRoutes) routes() []route {
	return []route{
		newRoute("GET", "/api/watches", accessHolder, adminTimeout, a.list),
		newRoute("POST", "/api/watches", accessHolder, adminTimeout, a.create),
		newRoute("GET", "/api/watches/{watch}", accessHolder, adminTimeout, a.get),
		newRoute("PATCH", "/api/watches/{watch}", accessHolder, adminTimeout, a.change),
		newRoute("DELETE", "/api/watches/{watch}", accessHolder, adminTimeout, a.remove),
		newRoute("POST", "/api/watches/{watch}/feed", accessHolder, adminTimeout, a.newFeed),
		newRoute("DELETE", "/api/watches/{watch}/feed", accessHolder, adminTimeout, a.endFeed),
		newRoute("POST", "/api/watches/{watch}/webhook", accessHolder, adminTimeout, a.setWebhook),
		newRoute("DELETE", "/api/watches/{watch}/webhook", accessHolder, adminTimeout, a.endWebhook),
		newRoute("GET", "/feed/{token}", accessOpen, quickTimeout, a.feed),
	}
}

// list handles GET /api/watches.
func (a *watchRoutes) list(ctx context.Context, c *call) error {
	return c.answer(a.watches.Watches(ctx, c.viewer))
}

// get handles GET /api/watches/{watch}.
func (a *watchRoutes) get(ctx context.Context, c *call) error {
	return c.answer(a.watches.Watch(ctx, c.viewer, c.pathValues[0]))
}

// create handles POST /api/watches.
func (a *watchRoutes) create(ctx context.Context, c *call) error {
	f, err := decodeBody(c.requestBody())
	if err != nil {
		return err
	}
	query := f.required("query")
	req := watchOf(f)
	req.Query = &query
	if err := f.err(); err != nil {
		return err
	}
	c.status, c.query = 201, query
	return c.answer(a.watches.CreateWatch(ctx, c.viewer, req))
}

// change handles PATCH /api/watches/{watch}.
func (a *watchRoutes) change(ctx context.Context, c *call) error {
	f, err := decodeBody(c.requestBody())
	if err != nil {
		return err
	}
	req := watchOf(f)
	if err := f.err(); err != nil {
		return err
	}
	return c.answer(a.watches.ChangeWatch(ctx, c.viewer, c.pathValues[0], req))
}

// watchOf reads what a body changes in a watch.
func watchOf(f *fields) watch.Change {
	return watch.Change{
		Name: given(f, "name", f.text), Query: given(f, "query", f.text),
		Regexp: given(f, "isRegexEnabled", f.flag), Case: given(f, "isCaseSensitivityEnabled", f.flag), Words: given(f, "isWholeWordEnabled", f.flag),
		Shared: given(f, "isShared", f.flag), Mail: given(f, "isMailed", f.flag),
	}
}

// remove handles DELETE /api/watches/{watch}.
func (a *watchRoutes) remove(ctx context.Context, c *call) error {
	return c.answer(a.watches.DeleteWatch(ctx, c.viewer, c.pathValues[0]))
}

// newFeed handles POST /api/watches/{watch}/feed. Only this answer contains the token.
func (a *watchRoutes) newFeed(ctx context.Context, c *call) error {
	c.status = 201
	return c.answer(a.watches.NewFeed(ctx, c.viewer, c.pathValues[0]))
}

// endFeed handles DELETE /api/watches/{watch}/feed.
func (a *watchRoutes) endFeed(ctx context.Context, c *call) error {
	return c.answer(a.watches.EndFeed(ctx, c.viewer, c.pathValues[0]))
}

// setWebhook handles POST /api/watches/{watch}/webhook. Only this answer contains the secret.
func (a *watchRoutes) setWebhook(ctx context.Context, c *call) error {
	f, err := decodeBody(c.requestBody())
	if err != nil {
		return err
	}
	address := f.required("url")
	if err := f.err(); err != nil {
		return err
	}
	c.status = 201
	return c.answer(a.watches.SetWebhook(ctx, c.viewer, c.pathValues[0], address))
}

// endWebhook handles DELETE /api/watches/{watch}/webhook.
func (a *watchRoutes) endWebhook(ctx context.Context, c *call) error {
	return c.answer(a.watches.EndWebhook(ctx, c.viewer, c.pathValues[0]))
}

// feed handles GET /feed/{token}: what a watch found, for feed readers, which can sign in nowhere.
func (a *watchRoutes) feed(ctx context.Context, c *call) error {
	found, err := a.watches.Feed(ctx, c.pathValues[0])
	if err != nil {
		return err
	}
	c.feedOf, c.mime = found.Info.ID, web.MimeAtom
	c.setHeader("Cache-Control", "private, no-store")
	c.setHeader("Referrer-Policy", "no-referrer")
	c.body, err = web.WatchFeed(a.base(), found)
	return err
}
