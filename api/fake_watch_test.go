package api

import (
	"context"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/watch"
)

var aWatch = watch.Info{
	ID: "w1", Name: "mains", Query: "type:diff added:main", Regexp: true, Case: true, Words: true, Kind: "diffs", Shared: true, Mine: true,
	Owner: "ann@example.com", Created: day, Feed: true, Webhook: "https://hooks.example.com/x", Mail: true, New: 3, Last: day, Problem: "p",
}

func (f *fake) Watches(context.Context, catalog.Viewer) ([]watch.Info, error) {
	return []watch.Info{aWatch}, f.err
}
func (f *fake) Watch(context.Context, catalog.Viewer, string) (*watch.Detail, error) {
	return answer(f, &watch.Detail{Info: aWatch, Found: []watch.Found{{ID: "n1", Repo: "example.com/a/b", At: day, Total: 3, Hits: []watch.Match{{
		Commit: "0123456789abcdef0123456789abcdef01234567", Path: "dir/<a>.go", Line: 7, Title: "Begin <it>", Author: "Ann", At: day, URL: "http://shoal.example.com/browse/x",
	}}}}})
}
func (f *fake) CreateWatch(context.Context, catalog.Viewer, watch.Change) (*watch.Info, error) {
	return answer(f, &aWatch)
}
func (f *fake) ChangeWatch(context.Context, catalog.Viewer, string, watch.Change) (*watch.Info, error) {
	return answer(f, &aWatch)
}
func (f *fake) DeleteWatch(context.Context, catalog.Viewer, string) (*watch.Info, error) {
	return answer(f, &aWatch)
}
func (f *fake) NewFeed(context.Context, catalog.Viewer, string) (*watch.FeedToken, error) {
	return answer(f, &watch.FeedToken{Token: "shoalfeed_1", URL: "http://shoal.example.com/feed/shoalfeed_1"})
}
func (f *fake) EndFeed(context.Context, catalog.Viewer, string) (*watch.Info, error) {
	return answer(f, &aWatch)
}
func (f *fake) SetWebhook(context.Context, catalog.Viewer, string, string) (*watch.Webhook, error) {
	return answer(f, &watch.Webhook{URL: "https://hooks.example.com/x", Secret: "5ec7e7"})
}
func (f *fake) EndWebhook(context.Context, catalog.Viewer, string) (*watch.Info, error) {
	return answer(f, &aWatch)
}
func (f *fake) Feed(ctx context.Context, _ string) (*watch.Detail, error) {
	return f.Watch(ctx, catalog.Viewer{}, "")
}
