package oauth

import (
	"context"
	"strings"
	"testing"
	"time"
)

// Secrets are renewed, and no token ends with an old secret before its time.
func TestTokenSecrets_areRenewedWithoutEndingTokens(t *testing.T) {
	t.Parallel()
	w := newTestCluster(t, 2)
	p := w.nodes[0]
	turn := func() {
		t.Helper()
		if _, err := p.rings.maintain(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	client := p.registered()
	got := p.enter(client)
	first := accessRing.creationTimes(p.View())

	// A new secret exists, but is not used before every node has it.
	w.pass(accessRing.period)
	turn()
	if made := accessRing.creationTimes(p.View()); len(made) != 2 {
		t.Fatalf("after a day there are secrets of %v", made)
	}
	if made, _, _ := p.rings.newestSecret(t.Context(), accessRing); made != first[0] {
		t.Error("a secret is used at the moment when it is made")
	}
	w.pass(settleTime)
	if made, _, _ := p.rings.newestSecret(t.Context(), accessRing); made == first[0] {
		t.Error("the new secret is not used")
	}
	next, err := w.nodes[1].Exchange(t.Context(), "", refreshForm(got.Refresh, client))
	if err != nil || !p.good(next.Access) {
		t.Fatalf("after a day: %v", err)
	}

	// The old secret is dropped when none of its tokens can be valid.
	w.pass(usualAccess)
	turn()
	if len(accessRing.creationTimes(p.View())) != 2 {
		t.Error("the old secret went while it was needed")
	}
	w.pass(accessRing.keep)
	turn()
	if made := accessRing.creationTimes(p.View()); len(made) > 2 || made[0] == first[0] { // a third one may be due
		t.Errorf("secrets of %v are kept", made)
	}

	// A year of weekly refreshes: the agent keeps its access, and there are few secrets.
	refresh := next.Refresh
	for day := range 365 {
		w.pass(24 * time.Hour)
		turn()
		if day%7 != 0 {
			continue
		}
		tokens, err := w.nodes[day%2].Exchange(context.Background(), "", refreshForm(refresh, client))
		if err != nil {
			t.Fatalf("on day %d: %v", day, err)
		}
		refresh = tokens.Refresh
	}
	secrets := 0
	for s := range p.View().Secrets() {
		if strings.HasPrefix(s.Name, "oauth-") {
			secrets++
		}
	}
	if secrets > 7 {
		t.Errorf("there are %d secrets after a year", secrets)
	}
	if _, err := p.findClient(t.Context(), client, "ann"); err != nil {
		t.Errorf("after a year a client has to register again: %v", err)
	}
}

// No request creates a secret: a node without secrets returns an error.
func TestTokenSecrets_areNeverMadeByARequest(t *testing.T) {
	t.Parallel()
	w := newTestCluster(t, 1)
	p := &place{testCluster: &testCluster{t: t, now: w.now, log: w.log, views: w.views[:1], plain: w.plain}, changed: make(chan struct{})}
	p.testCluster.nodes = []*place{p}
	s := New(Deps{Cluster: p, BaseURL: func() string { return base }, Lookup: w.nodes[0].d.Lookup, Fetch: noDocuments{}, Now: p.clock})
	if _, err := s.Register(t.Context(), []byte(`{"redirect_uris":["https://x.y/"]}`)); err != errNotReady {
		t.Errorf("registration: %v", err)
	}
	if _, err := s.Authenticate(t.Context(), w.nodes[0].enter(w.nodes[0].registered()).Access); err != errNotReady {
		t.Errorf("a token: %v", err)
	}
	if p.index != 0 {
		t.Error("something was written")
	}
}
