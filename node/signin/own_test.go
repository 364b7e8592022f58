package signin

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/cluster/config"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/host"
)

// Where hosts are asked with people's own tokens, a sign-in asks for that scope and stores the
// token.
func TestOpenID_requestsCodeHostScopesAndStoresTheToken(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		provider string
		wanted   bool
		scopes   string
	}{
		{"github", true, "read:user user:email repo"},
		{"github", false, "read:user user:email"},
		{"bitbucket-cloud", true, "account email repository"},
		{"bitbucket-server", true, "PUBLIC_REPOS REPO_READ"},
	} {
		d := newTestServer(t, newIDP(t), config.IdentityProvider{Provider: c.provider, Purpose: "sso", BaseURL: "https://h.example.com"})
		d.purse.wanted = c.wanted
		if got := d.begin(t, Start{}).sent.Get("scope"); got != c.scopes {
			t.Errorf("%s, wanted %t: asked for %q, want %q", c.provider, c.wanted, got, c.scopes)
		}
	}

	i := newIDP(t)
	d := newTestServer(t, i, config.IdentityProvider{Provider: "gitlab", Purpose: "sso", BaseURL: i.url()})
	d.purse.wanted = true
	x := d.begin(t, Start{})
	i.setClaims(x.sent.Get("nonce"), nil)
	if _, err := d.back(t, x, nil); err != nil || d.book.who.Token == nil || d.book.who.Token.Access != "at" || !strings.Contains(x.sent.Get("scope"), "read_api") {
		t.Errorf("GitLab gave %v for %q: %v", d.book.who.Token, x.sent.Get("scope"), err)
	}
	if text := fmt.Sprintf("%v %+v", *d.book.who.Token, *d.book.who.Token); strings.Contains(text, "at\"") || strings.Contains(text, "Access") {
		t.Errorf("a token prints as %s", text)
	}

	// The application may lack the scope. The owner must fix it.
	d.purse.wanted = true
	x = d.begin(t, Start{})
	_, err := d.back(t, x, url.Values{"error": {"invalid_scope"}})
	if err == nil || !strings.Contains(err.Error(), "which repositories are yours") || !strings.Contains(d.log.String(), "read_api") {
		t.Errorf("without the scope: %v; the log: %s", err, &d.log)
	}
}

// A token that ends soon, or was refused, is renewed. The new one is stored before it is used. If
// it cannot be renewed, the host refuses it.
func TestPersonsToken_isRenewedBeforeItExpires(t *testing.T) {
	t.Parallel()
	const gave = `{"access_token": "new", "refresh_token": "r2", "token_type": "bearer", "expires_in": 7200}`
	for _, c := range []struct {
		what    string
		token   account.HostToken
		left    time.Duration // until the token ends; 0: never
		anew    bool
		answer  string // status and body of the provider; "" if it must not be asked
		renewed bool
		fails   string // part of the error
		refuses bool
	}{
		{"good for long", account.HostToken{Access: "a", Refresh: "r1"}, time.Hour, false, "", false, "", false},
		{"without an end", account.HostToken{Access: "a"}, 0, false, "", false, "", false},
		{"about to end", account.HostToken{Access: "a", Refresh: "r1"}, time.Minute, false, "200 " + gave, true, "", false},
		{"ended", account.HostToken{Access: "a", Refresh: "r1"}, -time.Hour, false, "200 " + gave, true, "", false},
		{"about to end, and nothing to change it for", account.HostToken{Access: "a"}, time.Minute, false, "", false, "", false},
		{"ended, and nothing to change it for", account.HostToken{Access: "a"}, -time.Minute, false, "", false, "link the account again", true},
		{"refused", account.HostToken{Access: "a", Refresh: "r1"}, time.Hour, true, "200 " + gave, true, "", false},
		{"refused, and nothing to change it for", account.HostToken{Access: "a"}, 0, true, "", false, "link the account again", true},
		{"taken back", account.HostToken{Access: "a", Refresh: "r1"}, -time.Hour, false, `400 {"error": "invalid_grant"}`, false, "link the account again", true},
		{"used up at Gitea", account.HostToken{Access: "a", Refresh: "r1"}, -time.Hour, false, `400 {"error": "unauthorized_client", "error_description": "token was already used"}`, false, "link the account again", true},
		{"the client is wrong", account.HostToken{Access: "a", Refresh: "r1"}, -time.Hour, false, `401 {"error": "invalid_client"}`, false, "status 401, invalid_client", false},
		{"the provider is down", account.HostToken{Access: "a", Refresh: "r1"}, -time.Hour, false, `502 {}`, false, "status 502", false},
	} {
		asked := 0
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked++
			if r.ParseForm(); r.Form.Get("refresh_token") != "r1" || r.Form.Get("grant_type") != "refresh_token" {
				t.Errorf("%s: asked with %v", c.what, r.Form)
			}
			status, body := 0, c.answer
			fmt.Sscanf(c.answer, "%d", &status)
			_, body, _ = strings.Cut(body, " ")
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			fmt.Fprint(w, body)
		}))
		t.Cleanup(s.Close)

		d := newTestServer(t, newIDP(t), config.IdentityProvider{Provider: "github", Purpose: "sso", BaseURL: s.URL})
		d.purse.token = c.token
		if c.left != 0 {
			d.purse.token.Expires = d.now.Add(c.left)
		}
		own, err := d.Own(t.Context(), Asking{Identity: &catalog.Identity{Provider: s.URL, Subject: "7"}, Kept: &catalog.HostToken{}, Anew: c.anew})
		r := (*host.Refusal)(nil)
		refuses := errors.As(err, &r) && r.RefusesPerson()
		if (err == nil) != (own != nil) || (err == nil) != (c.fails == "") || err != nil && !strings.Contains(err.Error(), c.fails) || refuses != c.refuses {
			t.Errorf("%s: %v, refuses %t; want %q, %t", c.what, err, refuses, c.fails, c.refuses)
		}
		if renewed := len(d.purse.renewed) == 1 && d.purse.renewed[0].Access == "new" && d.purse.renewed[0].Refresh == "r2"; renewed != c.renewed || (asked > 0) != (c.answer != "") {
			t.Errorf("%s: kept %d tokens after %d questions", c.what, len(d.purse.renewed), asked)
		}
	}
}

// A token that cannot be stored is not used, because after a restart it would be lost.
func TestPersonsToken_isNotUsedIfItCannotBeStored(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"access_token": "new", "refresh_token": "r2", "token_type": "bearer"}`)
	}))
	t.Cleanup(s.Close)
	d := newTestServer(t, newIDP(t), config.IdentityProvider{Provider: "github", Purpose: "sso", BaseURL: s.URL})
	d.purse.token, d.purse.fails = account.HostToken{Access: "a", Refresh: "r1", Expires: d.now.Add(-time.Hour)}, errors.New("no leader")
	own, err := d.Own(t.Context(), Asking{Identity: &catalog.Identity{Provider: s.URL, Subject: "7"}, Kept: &catalog.HostToken{}})
	if own != nil || err == nil || !strings.Contains(err.Error(), "no leader") {
		t.Errorf("%v, %v", own, err)
	}
}

// People cannot unlink an identity from the proxy while the proxy is configured. An identity of a
// removed provider they can.
func TestUnlinkIdentity_isRefusedForAConfiguredProxy(t *testing.T) {
	t.Parallel()
	d := newOpenIDServer(t, newIDP(t))
	d.book.own = []account.IdentityInfo{{Authority: proxyIssuer, Subject: "accounts.google.com:7"}, {Authority: "https://gone.example.com", Subject: "8"}}
	for _, c := range []struct{ enabled, want string }{
		{"true", "corp:, :8, "},
		{"false", "corp:, :accounts.google.com:7, :8, "},
	} {
		d.env["AUTH_EE_GCP_IAP_ENABLED"] = c.enabled
		got := ""
		for _, x := range d.Linked(t.Context(), account.Person{}) {
			got += x.ID + ":" + x.Subject + ", "
		}
		if got != c.want {
			t.Errorf("with the proxy %s: %q, want %q", c.enabled, got, c.want)
		}
	}
}
