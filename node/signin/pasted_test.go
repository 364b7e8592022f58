package signin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/cluster/config"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/node/host"
)

// newTokenHosts returns a server with a Gerrit and an Azure DevOps, to be linked by tokens. Both accept
// the token hush for ann.
func newTokenHosts(t *testing.T) (d *testServer, asked *[]string) {
	t.Helper()
	asked = &[]string{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*asked = append(*asked, r.URL.Path)
		w.Header().Set("Content-Type", "application/json")
		user, password, _ := r.BasicAuth()
		switch {
		case password == "down":
			w.WriteHeader(http.StatusNotImplemented)
		case password != "hush":
			w.WriteHeader(http.StatusUnauthorized)
		case r.URL.Path == "/r/a/accounts/self" && user == "ann":
			fmt.Fprint(w, ")]}'\n"+`{"_account_id": 17}`)
		case r.URL.Path == "/acme/_apis/connectionData" && user == "":
			fmt.Fprint(w, `{"authenticatedUser": {"id": "1", "subjectDescriptor": "aad.YW5u"}}`)
		default:
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	t.Cleanup(s.Close)

	d = &testServer{book: &fakeAccounts{}, purse: &fakeTokens{wanted: true}, now: time.Now()}
	file := &config.File{
		IdentityProviders: []config.IdentityProvider{
			{ID: "azure", Provider: "azure-devops", Purpose: "account_linking", BaseURL: s.URL},
			{ID: "corp", Provider: "google", Purpose: "sso"},
			{ID: "gerrit", Provider: "gerrit", Purpose: "account_linking", BaseURL: s.URL + "/r/"},
		},
		Connections: []config.Connection{
			&config.AzureDevOps{URL: s.URL, Orgs: []string{"acme"}, Repos: []string{"acme/p/r", "zoo/p/r"}},
			&config.AzureDevOps{URL: "https://other.example", Orgs: []string{"elsewhere"}},
		},
	}
	wait := func(ctx context.Context, _ time.Duration) error { return ctx.Err() }
	d.Server = New(Deps{
		Accounts: d.book, Tokens: d.purse, Sealer: plainSealer{}, File: func() *config.File { return file },
		Lookup: func(string) (string, bool) { return "", false },
		Hosts:  host.Tools{Transport: http.DefaultTransport, Budgets: host.NewBudgets(time.Now), Now: time.Now, Wait: wait},
		Now:    func() time.Time { return d.now }, Log: slog.New(slog.NewTextHandler(&d.log, nil)),
	})
	return d, asked
}

// The host says whose the token is. That identity is linked and the token stored.
func TestLinkToken_linksTheTokensOwner(t *testing.T) {
	t.Parallel()
	for provider, want := range map[string]account.Proof{
		"gerrit": {Subject: "17", Login: "ann", Token: &account.HostToken{Access: "hush", User: "ann"}},
		"azure":  {Subject: "aad.YW5u", Token: &account.HostToken{Access: "hush"}},
	} {
		d, _ := newTokenHosts(t)
		user := ""
		if provider == "gerrit" {
			user = " ann "
		}
		if err := d.LinkByToken(t.Context(), Shown{Provider: provider, User: user, Token: " hush\n"}); err != nil {
			t.Fatalf("%s: %v", provider, err)
		}
		got := d.book.who
		if got.Method != provider || got.Subject != want.Subject || got.Login != want.Login || got.Email != "" || got.Proven || *got.Token != *want.Token || strings.HasSuffix(got.Authority, "/") {
			t.Errorf("%s: %+v, %+v", provider, got, got.Token)
		}

		// Later the host is asked with the same token, until it refuses it.
		d.purse.token = *got.Token
		x := &catalog.Identity{Provider: got.Authority, Subject: got.Subject}
		own, err := d.Own(t.Context(), Asking{Identity: x, Kept: &catalog.HostToken{}})
		if err != nil {
			t.Fatal(err)
		}
		if subject, err := own.Who(t.Context()); subject != want.Subject || err != nil {
			t.Errorf("%s: asked later: %q, %v", provider, subject, err)
		}
		_, err = d.Own(t.Context(), Asking{Identity: x, Kept: &catalog.HostToken{}, Anew: true})
		if r := (*host.Refusal)(nil); !errors.As(err, &r) || !r.RefusesPerson() {
			t.Errorf("%s: refused: %v", provider, err)
		}
	}
}

// Wrong tokens are refused. Messages and log never contain the token, and the host is asked only if
// that can help.
func TestLinkToken_refusesWrongTokensWithoutShowingThem(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		what   string
		x      Shown
		unsure bool // hosts are not asked for permissions
		kind   error
		asks   bool
	}{
		{"a wrong token", Shown{Provider: "azure", Token: "secret-wrong"}, false, call.ErrInvalid, true},
		{"a wrong password", Shown{Provider: "gerrit", User: "ann", Token: "secret-wrong"}, false, call.ErrInvalid, true},
		{"another's name", Shown{Provider: "gerrit", User: "bob", Token: "hush"}, false, call.ErrInvalid, true},
		{"a host that is down", Shown{Provider: "gerrit", User: "ann", Token: "down"}, false, call.ErrUnavailable, true},
		{"no token", Shown{Provider: "azure"}, false, call.ErrInvalid, false},
		{"two words", Shown{Provider: "azure", Token: "secret wrong"}, false, call.ErrInvalid, false},
		{"a line more", Shown{Provider: "azure", Token: "secret\r\nX-Evil: 1"}, false, call.ErrInvalid, false},
		{"a long one", Shown{Provider: "azure", Token: strings.Repeat("s", maxToken+1)}, false, call.ErrInvalid, false},
		{"no name", Shown{Provider: "gerrit", Token: "hush"}, false, call.ErrInvalid, false},
		{"a name with a colon", Shown{Provider: "gerrit", User: "ann:x", Token: "hush"}, false, call.ErrInvalid, false},
		{"a provider that sends people back", Shown{Provider: "corp", Token: "hush"}, false, call.ErrInvalid, false},
		{"no such provider", Shown{Provider: "none", Token: "hush"}, false, call.ErrNotFound, false},
		{"hosts are not asked", Shown{Provider: "azure", Token: "hush"}, true, call.ErrForbidden, false},
	} {
		d, asked := newTokenHosts(t)
		d.purse.wanted = !c.unsure
		err := d.LinkByToken(t.Context(), c.x)
		if !errors.Is(err, c.kind) || d.book.calls != 0 || (len(*asked) > 0) != c.asks {
			t.Errorf("%s: %v, asked %q", c.what, err, *asked)
		}
		if err != nil && strings.Contains(err.Error()+d.log.String(), "secret") {
			t.Errorf("%s: the token is told: %v, %s", c.what, err, d.log.String())
		}
	}
}

// For such a host there is no redirect and no sign-in.
func TestBeginSignIn_isRefusedForHostsWithTokensOnly(t *testing.T) {
	t.Parallel()
	d, asked := newTokenHosts(t)
	if _, err := d.Begin(t.Context(), Start{Provider: "azure"}); !errors.Is(err, call.ErrForbidden) {
		t.Errorf("to sign in: %v", err)
	}
	if _, err := d.Begin(t.Context(), Start{Provider: "azure", By: &account.Person{}}); !errors.Is(err, call.ErrInvalid) {
		t.Errorf("to link: %v", err)
	}
	for _, p := range d.Providers() {
		if token := p.ID != "corp"; p.ByToken != token || p.SignsIn == token || p.ByUser != (p.ID == "gerrit") {
			t.Errorf("%+v", p)
		}
	}
	if len(*asked) > 0 {
		t.Errorf("asked %q", *asked)
	}
}
