package oauth

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"math"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/call"
)

// Each step of a sign-in uses another node.
func TestTokenExchange_succeedsWithEachStepAtAnotherNode(t *testing.T) {
	t.Parallel()
	w := newTestCluster(t, 3)
	client := w.nodes[0].registered()
	asked, err := w.nodes[1].Authorize(t.Context(), ann, request(client))
	if err != nil {
		t.Fatal(err)
	}
	if asked.Client.Name != "Agent" || asked.Client.Kind != Registered || asked.Host != "localhost:4711" || !asked.Local {
		t.Errorf("the person is asked about %+v at %s", asked.Client, asked.Host)
	}
	to, err := w.nodes[2].Decide(t.Context(), ann, asked.Form, true)
	if err != nil {
		t.Fatal(err)
	}
	u, _ := url.Parse(to)
	got, err := w.nodes[0].Exchange(t.Context(), client, codeForm(u.Query().Get("code"), client))
	if err != nil {
		t.Fatal(err)
	}
	if got.Type != "Bearer" || got.ExpiresIn != 3600 || got.Scope != "mcp offline_access" {
		t.Errorf("got %+v", got)
	}
	next, err := w.nodes[1].Exchange(t.Context(), "", refreshForm(got.Refresh, client))
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range w.nodes {
		if !p.good(got.Access) || !p.good(next.Access) {
			t.Errorf("node %d does not take the tokens", i)
		}
	}
}

// An owner's agent cannot administer.
func TestAgentToken_hasAtMostTheMemberRole(t *testing.T) {
	t.Parallel()
	w := newTestCluster(t, 1)
	p, olga := w.nodes[0], Person{Account: "olga", Session: "o"}
	client := p.registered()
	got, err := p.Exchange(t.Context(), "", codeForm(p.code(olga, client), client))
	if err != nil {
		t.Fatal(err)
	}
	v, err := p.Authenticate(t.Context(), got.Access)
	if err != nil || v.Role != catalog.RoleMember || v.Account != "olga" || v.All {
		t.Errorf("an owner's token makes %+v, %v", v, err)
	}
}

// A node that lags behind does not refuse what another node has confirmed: it waits.
func TestAgentToken_aLaggingNodeWaitsInsteadOfRefusing(t *testing.T) {
	t.Parallel()
	w := newTestCluster(t, 2)
	client := w.nodes[0].registered()
	w.nodes[1].hold()
	got := w.nodes[0].enter(client)

	answered := make(chan error, 1)
	go func() {
		_, err := w.nodes[1].Authenticate(t.Context(), got.Access)
		answered <- err
	}()
	w.nodes[1].release()
	if err := <-answered; err != nil {
		t.Errorf("the node that was behind says %v", err)
	}

	// If it stays behind, the error says so, and not that the token is invalid.
	w.nodes[1].hold()
	got = w.nodes[0].enter(client)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.nodes[1].Authenticate(ctx, got.Access); !errors.Is(err, call.ErrUnavailable) {
		t.Errorf("a node that is behind says %v, want unavailable", err)
	}
	if _, err := w.nodes[1].Exchange(ctx, "", refreshForm(got.Refresh, client)); !errors.Is(err, call.ErrUnavailable) {
		t.Errorf("a node that is behind refreshes with %v, want unavailable", err)
	}
}

func TestTokenRefresh_concurrentRefreshesGetTheSameToken(t *testing.T) {
	t.Parallel()
	w := newTestCluster(t, 3)
	client := w.nodes[0].registered()
	first := w.nodes[0].enter(client)
	before := w.entries()

	var wg sync.WaitGroup
	got := make([]*Tokens, 50)
	for i := range got {
		wg.Go(func() {
			var err error
			if got[i], err = w.nodes[i%3].Exchange(context.Background(), "", refreshForm(first.Refresh, client)); err != nil {
				t.Errorf("refresh %d: %v", i, err)
			}
		})
	}
	wg.Wait()
	for i := range got {
		if got[i] == nil || got[i].Refresh != got[0].Refresh || !w.nodes[1].good(got[i].Access) {
			t.Fatalf("refresh %d got another token", i)
		}
	}
	if more := w.entries() - before; more > 50 {
		t.Errorf("%d entries for one refresh", more)
	}

	// Once more, after the grace period: somebody has kept the old token. The consent ends.
	w.pass(time.Minute + time.Second) // the default grace period
	_, err := w.nodes[2].Exchange(t.Context(), "", refreshForm(first.Refresh, client))
	wants(t, "an old refresh token", err, invalidGrant)
	_, err = w.nodes[0].Exchange(t.Context(), "", refreshForm(got[0].Refresh, client))
	wants(t, "the newest token of a family that has ended", err, invalidGrant)
	if w.nodes[1].good(got[0].Access) {
		t.Error("an access token of a family that has ended is good")
	}

	// Using it again and again writes nothing.
	before = w.entries()
	for range 20 {
		_, err = w.nodes[1].Exchange(t.Context(), "", refreshForm(first.Refresh, client))
		wants(t, "again", err, invalidGrant)
	}
	if w.entries() != before {
		t.Error("a token of a family that has ended writes to the log")
	}
}

func TestTokenRefresh_anOldTokenEndsTheConsent(t *testing.T) {
	t.Parallel()
	w := newTestCluster(t, 1)
	p := w.nodes[0]
	client := p.registered()
	first := p.enter(client)
	second, err := p.Exchange(t.Context(), "", refreshForm(first.Refresh, client))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Exchange(t.Context(), "", refreshForm(second.Refresh, client)); err != nil {
		t.Fatal(err)
	}
	_, err = p.Exchange(t.Context(), "", refreshForm(first.Refresh, client))
	wants(t, "a token two generations old", err, invalidGrant)
	if p.good(second.Access) {
		t.Error("the family goes on")
	}
}

// Without a leader a client gets an error to try again, and loses nothing.
func TestTokenExchange_withoutALeaderLosesNothing(t *testing.T) {
	t.Parallel()
	w := newTestCluster(t, 1)
	p := w.nodes[0]
	client := p.registered()
	first := p.enter(client)
	code := p.code(ann, client)
	w.down = true
	if _, err := p.Exchange(t.Context(), "", refreshForm(first.Refresh, client)); !errors.Is(err, call.ErrNoLeader) {
		t.Errorf("a refresh without a leader: %v", err)
	}
	if _, err := p.Exchange(t.Context(), "", codeForm(code, client)); !errors.Is(err, call.ErrNoLeader) {
		t.Errorf("a code without a leader: %v", err)
	}
	if !p.good(first.Access) {
		t.Error("an access token needs a leader")
	}
	w.down = false
	if _, err := p.Exchange(t.Context(), "", refreshForm(first.Refresh, client)); err != nil {
		t.Error(err)
	}
	if _, err := p.Exchange(t.Context(), "", codeForm(code, client)); err != nil {
		t.Error(err)
	}
}

func TestTokenExchange_aRepeatedCodeGivesTheSameTokensOrEndsTheConsent(t *testing.T) {
	t.Parallel()
	w := newTestCluster(t, 2)
	client := w.nodes[0].registered()
	code := w.nodes[0].code(ann, client)
	first, err := w.nodes[0].Exchange(t.Context(), "", codeForm(code, client))
	if err != nil {
		t.Fatal(err)
	}

	// The answer was lost: the client repeats the request on another node.
	again, err := w.nodes[1].Exchange(t.Context(), "", codeForm(code, client))
	if err != nil || again.Refresh != first.Refresh {
		t.Fatalf("asked again: %+v, %v", again, err)
	}

	// A later use is a theft.
	w.pass(codeRetry + time.Second)
	_, err = w.nodes[1].Exchange(t.Context(), "", codeForm(code, client))
	wants(t, "a code used twice", err, invalidGrant)
	if w.nodes[0].good(first.Access) {
		t.Error("the tokens of a code that was used twice are good")
	}
	before := w.entries()
	_, err = w.nodes[1].Exchange(t.Context(), "", codeForm(code, client))
	wants(t, "a third time", err, invalidGrant)
	if w.entries() != before {
		t.Error("a code that is over writes to the log")
	}
}

// Each of these is refused, writes nothing, and does not use up the code.
func TestTokenExchange_wrongRequestsKeepTheCode(t *testing.T) {
	t.Parallel()
	w := newTestCluster(t, 1)
	p := w.nodes[0]
	client := p.registered()
	other, err := p.Register(t.Context(), []byte(`{"client_name":"Other","redirect_uris":["`+callback+`"]}`))
	if err != nil {
		t.Fatal(err)
	}
	code := p.code(ann, client)
	before := w.entries()
	for what, c := range map[string]struct {
		edit func(url.Values)
		want string
	}{
		"another verifier":      {func(f url.Values) { f.Set("code_verifier", strings.Repeat("x", 43)) }, invalidGrant},
		"no verifier":           {func(f url.Values) { f.Del("code_verifier") }, invalidGrant},
		"the challenge itself":  {func(f url.Values) { f.Set("code_verifier", challengeOf(verifier)) }, invalidGrant},
		"another client":        {func(f url.Values) { f.Set("client_id", other.ClientID) }, invalidGrant},
		"no client":             {func(f url.Values) { f.Del("client_id") }, invalidGrant},
		"another port":          {func(f url.Values) { f.Set("redirect_uri", "http://localhost:4712/callback") }, invalidGrant},
		"another path":          {func(f url.Values) { f.Set("redirect_uri", "http://localhost:4711/callback/") }, invalidGrant},
		"another case":          {func(f url.Values) { f.Set("redirect_uri", "http://LOCALHOST:4711/callback") }, invalidGrant},
		"another resource":      {func(f url.Values) { f.Set("resource", "https://other.example/api/mcp") }, invalidTarget},
		"two resources":         {func(f url.Values) { f.Add("resource", "https://other.example/") }, invalidTarget},
		"a secret":              {func(f url.Values) { f.Set("client_secret", "x") }, invalidClient},
		"a parameter twice":     {func(f url.Values) { f.Add("code", code) }, invalidRequest},
		"another way":           {func(f url.Values) { f.Set("grant_type", "password") }, unsupportedWay},
		"no way":                {func(f url.Values) { f.Del("grant_type") }, invalidRequest},
		"a cut code":            {func(f url.Values) { f.Set("code", code[:len(code)-1]) }, invalidGrant},
		"a code with more":      {func(f url.Values) { f.Set("code", code+"A") }, invalidGrant},
		"no code":               {func(f url.Values) { f.Del("code") }, invalidGrant},
		"the client id as code": {func(f url.Values) { f.Set("code", "shoal_ac_"+strings.TrimPrefix(client, "shoal-c.")) }, invalidGrant},
	} {
		f := codeForm(code, client)
		c.edit(f)
		_, err := p.Exchange(t.Context(), "", f)
		wants(t, what, err, c.want)
	}
	if w.entries() != before {
		t.Error("a wrong request was written to the log")
	}
	form := codeForm(code, client)
	form["resource"] = []string{"HTTPS://Code.Example:443/api/mcp/", base + "/api/mcp"}
	if _, err := p.Exchange(t.Context(), client, form); err != nil {
		t.Errorf("the right request afterwards: %v", err)
	}

	late := p.code(ann, client)
	w.pass(usualCode)
	_, err = p.Exchange(t.Context(), "", codeForm(late, client))
	wants(t, "a code after its minute", err, invalidGrant)
}

func TestSealedTokens_ofOneKindAreRefusedAsAnother(t *testing.T) {
	t.Parallel()
	w, elsewhere := newTestCluster(t, 1), newTestCluster(t, 1)
	p := w.nodes[0]
	client := p.registered()
	got := p.enter(client)
	foreign := elsewhere.nodes[0].enter(elsewhere.nodes[0].registered())
	other := map[bool]string{true: "B", false: "A"}[got.Access[30] == 'A']
	swap := func(token, from, to string) string { return to + strings.TrimPrefix(token, from) }
	for what, token := range map[string]string{
		"a refresh token":                    got.Refresh,
		"a refresh token under another name": swap(got.Refresh, "shoal_rt_", "shoal_at_"),
		"one of another cluster":             foreign.Access,
		"a cut one":                          got.Access[:len(got.Access)-4],
		"a changed one":                      got.Access[:30] + other + got.Access[31:],
		"a long one":                         got.Access + strings.Repeat("A", 1<<20),
		"nothing":                            "shoal_at_",
	} {
		if _, err := p.Authenticate(t.Context(), token); !errors.Is(err, call.ErrUnauthenticated) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for what, token := range map[string]string{
		"an access token":                    got.Access,
		"an access token under another name": swap(got.Access, "shoal_at_", "shoal_rt_"),
		"one of another cluster":             foreign.Refresh,
		"nothing":                            "",
	} {
		_, err := p.Exchange(t.Context(), "", refreshForm(token, client))
		wants(t, what, err, invalidGrant)
	}
	_, err := p.Exchange(t.Context(), "", refreshForm(got.Refresh, "shoal-c.other"))
	wants(t, "another client", err, invalidGrant)
	if !p.good(got.Access) {
		t.Error("a wrong client burns the family")
	}
	w.pass(usualAccess)
	if p.good(got.Access) {
		t.Error("an access token is good after its hour")
	}
}

func TestAgentAccess_endsWithAccountConsentOrClient(t *testing.T) {
	t.Parallel()
	suspend := func(state catalog.AccountState) func(*testCluster, *place, *Tokens) {
		return func(w *testCluster, p *place, _ *Tokens) {
			a := *p.View().Account("ann")
			a.State = state
			w.do(&catalog.PutAccount{Account: a, Instead: a.Changed})
		}
	}
	for what, end := range map[string]func(*testCluster, *place, *Tokens){
		"suspension": suspend(catalog.AccountSuspended),
		"suspension, taken back": func(w *testCluster, p *place, got *Tokens) {
			suspend(catalog.AccountSuspended)(w, p, got)
			suspend(catalog.AccountActive)(w, p, got)
		},
		"deletion":           func(w *testCluster, _ *place, _ *Tokens) { w.do(&catalog.DeleteAccount{ID: "ann"}) },
		"revoked by refresh": func(_ *testCluster, p *place, got *Tokens) { p.Revoke(context.Background(), got.Refresh) },
		"revoked by access":  func(_ *testCluster, p *place, got *Tokens) { p.Revoke(context.Background(), got.Access) },
		"90 days of silence": func(w *testCluster, _ *place, _ *Tokens) { w.pass(usualConsent) },
		"ended by an owner": func(_ *testCluster, p *place, _ *Tokens) {
			all, _ := p.Agents(context.Background(), account.Operator())
			p.EndAgent(context.Background(), account.Operator(), all[0].ID)
		},
	} {
		w := newTestCluster(t, 1)
		p := w.nodes[0]
		client := p.registered()
		code := p.code(ann, client)
		got := p.enter(client)
		end(w, p, got)
		if p.good(got.Access) {
			t.Errorf("%s: the access token is good", what)
		}
		_, err := p.Exchange(t.Context(), "", refreshForm(got.Refresh, client))
		wants(t, what+": refresh", err, invalidGrant)
		if strings.HasPrefix(what, "suspension") || what == "deletion" {
			_, err = p.Exchange(t.Context(), "", codeForm(code, client))
			wants(t, what+": a code of before", err, invalidGrant)
		}
	}
}

// An agent of a person who signed in with a key loses access with the key, also when it expires.
func TestAgentAccess_endsWithTheKeyOfItsSignIn(t *testing.T) {
	t.Parallel()
	w := newTestCluster(t, 1)
	p := w.nodes[0]
	client := p.registered()
	w.do(&catalog.CreateKey{Key: catalog.Key{
		ID: "k", Hash: make([]byte, 32), Name: "ci", Role: catalog.RoleMember, Account: "ann", Expires: p.clock().Add(time.Hour),
	}})
	who := Person{Account: "ann", Session: "s1", Key: "k"}

	got, err := p.Exchange(t.Context(), "", codeForm(p.code(who, client), client))
	if err != nil {
		t.Fatal(err)
	}
	w.pass(time.Hour - time.Second)
	late := p.code(who, client)
	next, err := p.Exchange(t.Context(), "", refreshForm(got.Refresh, client))
	if err != nil || !p.good(next.Access) {
		t.Fatalf("before the key expires: %v", err)
	}

	w.pass(time.Second)
	if p.good(next.Access) {
		t.Error("the access token is good")
	}
	_, err = p.Exchange(t.Context(), "", refreshForm(next.Refresh, client))
	wants(t, "refresh", err, invalidGrant)
	_, err = p.Exchange(t.Context(), "", codeForm(late, client))
	wants(t, "a code of before", err, invalidGrant)
	if all, _ := p.Agents(t.Context(), account.Operator()); len(all) != 0 {
		t.Errorf("it is listed: %+v", all)
	}
}

// The variables set the lifetimes of codes and tokens, to the second. An invalid value gives the
// default.
func TestTokenLifetimes_areReadFromVariables(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		vars                  map[string]string
		code, access, consent time.Duration
	}{
		{nil, usualCode, usualAccess, usualConsent},
		{map[string]string{"OAUTH_AUTHORIZATION_CODE_TTL_SECONDS": "600", "OAUTH_ACCESS_TOKEN_TTL_SECONDS": "86400", "OAUTH_REFRESH_TOKEN_TTL_SECONDS": "15552000"}, 10 * time.Minute, 24 * time.Hour, 180 * 24 * time.Hour},
		{map[string]string{"OAUTH_AUTHORIZATION_CODE_TTL_SECONDS": "10", "OAUTH_ACCESS_TOKEN_TTL_SECONDS": "60", "OAUTH_REFRESH_TOKEN_TTL_SECONDS": "3600"}, 10 * time.Second, time.Minute, time.Hour},
		{map[string]string{"OAUTH_AUTHORIZATION_CODE_TTL_SECONDS": "601", "OAUTH_ACCESS_TOKEN_TTL_SECONDS": "1h", "OAUTH_REFRESH_TOKEN_TTL_SECONDS": "-1"}, usualCode, usualAccess, usualConsent},
	} {
		w := newTestCluster(t, 1)
		w.vars = tt.vars
		p := w.nodes[0]
		client := p.registered()

		early, late := p.code(ann, client), p.code(ann, client)
		w.pass(tt.code - time.Second)
		got, err := p.Exchange(t.Context(), "", codeForm(early, client))
		if err != nil {
			t.Fatalf("%v: a code before its end: %v", tt.vars, err)
		}
		w.pass(time.Second)
		_, err = p.Exchange(t.Context(), "", codeForm(late, client))
		wants(t, "a code after its end", err, invalidGrant)

		if got.ExpiresIn != int(tt.access/time.Second) {
			t.Errorf("%v: the client is told of %d seconds", tt.vars, got.ExpiresIn)
		}
		w.pass(tt.access - 2*time.Second)
		if !p.good(got.Access) {
			t.Errorf("%v: an access token is not good before its end", tt.vars)
		}
		w.pass(time.Second)
		if p.good(got.Access) {
			t.Errorf("%v: an access token is good after its end", tt.vars)
		}

		if got, err = p.Exchange(t.Context(), "", refreshForm(got.Refresh, client)); err != nil {
			t.Fatalf("%v: a refresh: %v", tt.vars, err)
		}
		w.pass(tt.consent - time.Second)
		if got, err = p.Exchange(t.Context(), "", refreshForm(got.Refresh, client)); err != nil {
			t.Fatalf("%v: a refresh before the end: %v", tt.vars, err)
		}
		w.pass(tt.consent)
		_, err = p.Exchange(t.Context(), "", refreshForm(got.Refresh, client))
		wants(t, "a refresh after the end", err, invalidGrant)
	}
}

// The previous refresh token gives the newest one again, for as long as the variable says. Later it
// ends the consent.
func TestRefreshGrace_isReadFromAVariable(t *testing.T) {
	t.Parallel()
	for text, grace := range map[string]time.Duration{"": time.Minute, "30m": 30 * time.Minute, "0s": 0, "31m": time.Minute} {
		w := newTestCluster(t, 1)
		w.vars = map[string]string{"SHOAL_OAUTH_REFRESH_GRACE": text}
		p := w.nodes[0]
		client := p.registered()
		first := p.enter(client)
		second, err := p.Exchange(t.Context(), "", refreshForm(first.Refresh, client))
		if err != nil {
			t.Fatal(err)
		}

		w.pass(grace)
		again, err := p.Exchange(t.Context(), "", refreshForm(first.Refresh, client))
		if err != nil || again.Refresh != second.Refresh {
			t.Errorf("%q: within the grace: %v", text, err)
		}
		w.pass(time.Second)
		_, err = p.Exchange(t.Context(), "", refreshForm(first.Refresh, client))
		wants(t, text+": after the grace", err, invalidGrant)
	}
}

func TestTokenRevocation_ignoresOtherTexts(t *testing.T) {
	t.Parallel()
	w := newTestCluster(t, 1)
	before := w.entries()
	texts := []string{"", "x", "shoal_at_x", "shoal_rt_AAAA", "shoal_" + strings.Repeat("0", 64)}
	// Anybody can make up the time of a secret that is newer than all others.
	newest := accessRing.creationTimes(w.nodes[0].View())[0]
	for _, made := range []int64{newest - 1, newest + 1, newest + 100, newest + 200, newest + 1e6, math.MaxInt64} {
		head := binary.AppendVarint([]byte{boxVersion}, made)
		texts = append(texts, "shoal_at_"+base64.RawURLEncoding.EncodeToString(append(head, make([]byte, 60)...)))
	}
	w.pass(time.Hour)

	for _, text := range texts {
		if err := w.nodes[0].Revoke(t.Context(), text); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
	if w.entries() != before {
		t.Error("it was written to the log")
	}
}

// A node that is cut off may not have the secret of a token. It must not say that the token is
// invalid.
func TestTokenRevocation_ofAnUnknownSecretIsUnavailable(t *testing.T) {
	t.Parallel()
	w := newTestCluster(t, 2)
	p, behind := w.nodes[0], w.nodes[1]
	behind.hold()
	w.pass(accessRing.period)
	if _, err := p.rings.maintain(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.pass(settleTime)
	got := p.enter(p.registered())

	if err := behind.Revoke(t.Context(), got.Access); !errors.Is(err, call.ErrUnavailable) {
		t.Errorf("a node that is cut off says %v, want unavailable", err)
	}
	behind.release()
	if err := behind.Revoke(t.Context(), got.Access); err != nil || p.good(got.Access) {
		t.Errorf("once it has heard it says %v; the token is good: %t", err, p.good(got.Access))
	}
}

func TestAgentList_showsPeopleOnlyTheirOwnAgents(t *testing.T) {
	t.Parallel()
	w := newTestCluster(t, 2)
	client := w.nodes[0].registered()
	w.nodes[0].enter(client)
	holder := func(id string, role catalog.Role) account.Holder {
		h, err := account.AsHolder(catalog.Viewer{Role: role, Account: id})
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	other := holder("other", catalog.RoleMember)
	mine, _ := w.nodes[1].Agents(t.Context(), holder("ann", catalog.RoleMember))
	theirs, _ := w.nodes[1].Agents(t.Context(), other)
	all, _ := w.nodes[1].Agents(t.Context(), holder("olga", catalog.RoleOwner))
	if len(mine) != 1 || len(theirs) != 0 || len(all) != 1 || mine[0].User != "ann@example.com" || mine[0].Host != "localhost:4711" {
		t.Fatalf("ann sees %+v, another %+v, an owner %+v", mine, theirs, all)
	}
	if _, err := w.nodes[1].EndAgent(t.Context(), other, mine[0].ID); !errors.Is(err, call.ErrNotFound) {
		t.Errorf("somebody else ends it: %v", err)
	}
	if _, err := w.nodes[1].EndAgent(t.Context(), holder("ann", catalog.RoleMember), mine[0].ID); err != nil {
		t.Error(err)
	}
	if mine, _ = w.nodes[0].Agents(t.Context(), holder("ann", catalog.RoleMember)); len(mine) != 0 {
		t.Errorf("after its end ann sees %+v", mine)
	}
}

// Expired tokens stay expired if the clocks of nodes are set back.
func TestExpiredToken_staysExpiredIfTheClockIsSetBack(t *testing.T) {
	t.Parallel()
	w := newTestCluster(t, 1)
	p := w.nodes[0]
	client := p.registered()
	code := p.code(ann, client)
	got, err := p.Exchange(t.Context(), "", codeForm(code, client))
	if err != nil {
		t.Fatal(err)
	}
	late := p.code(ann, client)

	// More than an hour passes, the cluster commits an entry, and the clock is set back.
	w.pass(90 * time.Minute)
	w.do(&catalog.Noop{})
	w.pass(-90 * time.Minute)
	if p.good(got.Access) {
		t.Error("a token that has ended is good again")
	}
	if _, err := p.Exchange(t.Context(), "", codeForm(late, client)); err == nil {
		t.Error("a code that has ended is good again")
	}
}
