package api

import (
	"fmt"
	"testing"

	"github.com/shoalsearch/shoal/node/host/giteatest"
	"github.com/shoalsearch/shoal/node/nodetest"
)

// It adds a webhook to a server, which signs its events. Pushes and a new repository are found
// long before the next poll and listing, which come after an hour and a day.
func TestRealGitea_webhookMakesPushesSearchableBeforeThePoll(t *testing.T) {
	t.Parallel()
	g := giteatest.Start(t)
	g.Org("acme")
	g.Repo("acme", "app", giteatest.Options{Private: true})
	n := nodetest.Start(t, nodetest.Config{
		Env:  map[string]string{"GITEA_TOKEN": g.Token},
		File: fmt.Sprintf(`{"connections": {"main": {"type": "gitea", "url": %q, "token": {"env": "GITEA_TOKEN"}, "orgs": ["acme"]}}}`, g.URL),
	})
	n.WaitIndexed(1)
	s := start(t, partsOf(n.Node))
	keys, err := n.Operate.WebhookKeys(t.Context(), "main")
	if err != nil {
		t.Fatal(err)
	}
	g.Do("POST", "/orgs/acme/hooks", map[string]any{
		"type": "gitea", "active": true, "events": []string{"push", "repository"},
		"config": map[string]string{"url": "http://" + s.Addr().String() + "/api/webhook/main", "content_type": "json", "secret": keys.Secret},
	}, nil)

	found := func(word string) func() error {
		return func() error {
			if got := n.Find(word); len(got) != 1 {
				return fmt.Errorf("found %q", got)
			}
			return nil
		}
	}
	g.Push("acme/app", map[string]string{"main.go": "package main // wombat"})
	n.Wait("the push", found("wombat"))
	g.Repo("acme", "late", giteatest.Options{Description: "made later"})
	n.Wait("the new repository", func() error {
		if s := n.Status(); s.Repos.Indexed != 2 {
			return fmt.Errorf("repositories %+v", s.Repos)
		}
		return nil
	})
	g.Push("acme/late", map[string]string{"main.go": "package late // numbat"})
	n.Wait("the push to it", found("numbat"))
}
