package api

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/nodetest"
	"github.com/shoalsearch/shoal/node/watch"
)

// In the requests of the oracle these stand for random values of a side.
const (
	ownWatch   = "OWN-WATCH"
	spareWatch = "SPARE-WATCH" // another one, to delete
	theirWatch = "THEIR-WATCH" // shared by somebody who sees all repositories
	feedToken  = "FEED-TOKEN"  // of ownWatch
)

// watch makes watches in a member's world, and pushes to repositories of each sort, also to a hidden
// one. Both sides are the same but for that push.
func (w *world) watch(t *testing.T, ctx context.Context, n *nodetest.Node, s *side, dir string, closed []string) {
	if w.kind != "member" {
		return
	}
	v, err := n.Keys.Authenticate(ctx, s.key)
	if err != nil {
		t.Fatal(err)
	}
	by := account.Operator()
	bob, err := n.People.CreateUser(ctx, by, account.CreateUserRequest{Email: "bob@example.com"})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, name := range closed {
		names = append(names, "local/"+name)
	}
	if _, err := n.People.Grant(ctx, by, account.GrantRequest{User: bob.ID, Add: names}); err != nil {
		t.Fatal(err)
	}
	s.random = map[string]string{}
	for name, of := range map[string]catalog.Viewer{ownWatch: v, spareWatch: v, theirWatch: {Role: catalog.RoleMember, Account: bob.ID}} {
		query, shared := "type:diff added:octopus", name == theirWatch
		made, err := n.Watches.CreateWatch(ctx, of, watch.Change{Name: &name, Query: &query, Shared: &shared})
		if err != nil {
			t.Fatal(err)
		}
		s.random[name] = made.ID
	}
	feed, err := n.Watches.NewFeed(ctx, v, s.random[ownWatch])
	if err != nil {
		t.Fatal(err)
	}
	s.random[feedToken] = feed.Token

	pushes := []string{filepath.Join("open", w.open[0])}
	if len(w.granted) > 0 {
		pushes = append(pushes, filepath.Join("closed", w.granted[0]))
	}
	if len(closed) > len(w.granted) { // the side that has the hidden repositories
		pushes = append([]string{filepath.Join("closed", w.hidden[0])}, pushes...)
	}
	bobs := catalog.Viewer{Role: catalog.RoleMember, Account: bob.ID}
	for i, path := range pushes {
		r := nodetest.OpenRepo(t, filepath.Join(dir, path))
		r.CommitAs("Ada Lovelace", time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC), "octopus", map[string]string{"octopus.txt": "an octopus\n"})
		repo, err := n.Browse.Repo(ctx, catalog.Operator(), "local/"+filepath.Base(path))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := n.Operate.Reindex(ctx, by, repo.ID); err != nil {
			t.Fatal(err)
		}

		// What was found later stands first, so the next push waits.
		n.Wait("the watches", func() error {
			d, err := n.Watches.Watch(ctx, bobs, s.random[theirWatch])
			if err == nil && len(d.Found) != i+1 {
				err = fmt.Errorf("%d of %d pushes", len(d.Found), i+1)
			}
			return err
		})
	}
}

// fill puts the random values of a side into a text.
func (s *side) fill(text string) string {
	for name, value := range s.random {
		text = strings.ReplaceAll(text, name, value)
	}
	return text
}

// blank takes the random values of a side out of a text.
func (s *side) blank(text string) string {
	for name, value := range s.random {
		text = strings.ReplaceAll(text, value, name)
	}
	return text
}
