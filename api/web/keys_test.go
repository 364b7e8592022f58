package web

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/api/layout"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/call"
)

// badKeys lists keys, and fails to change them.
type badKeys struct{ err error }

func (k badKeys) CreateKey(context.Context, account.Holder, account.CreateKeyRequest) (*account.CreateKeyResponse, error) {
	return nil, k.err
}

func (k badKeys) RevokeKey(context.Context, account.Holder, string) (*account.KeyInfo, error) {
	return nil, k.err
}

func (k badKeys) Keys(context.Context, account.Holder, bool) ([]account.KeyInfo, error) {
	return nil, nil
}

// usedKeys are two keys, one of which was used.
type usedKeys struct{ badKeys }

func (usedKeys) Keys(context.Context, account.Holder, bool) ([]account.KeyInfo, error) {
	day := time.Date(2026, 1, 2, 10, 0, 0, 0, time.UTC)
	return []account.KeyInfo{{ID: "a", Name: "laptop", Created: day, Used: day.Add(20 * time.Hour)}, {ID: "b", Name: "build", Created: day}}, nil
}

func TestAPIKeysPage_showsTheLastUse(t *testing.T) {
	t.Parallel()
	p := New(Deps{Keys: usedKeys{}, Now: func() time.Time { return time.Date(2026, 1, 3, 9, 0, 0, 0, time.UTC) }})
	v := &layout.Visit{Method: "GET", Viewer: catalog.Operator(), Status: 200, Sent: func(string) string { return "" }}
	if err := p.keyring.showKeys(t.Context(), v); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`data-label="Used" class="dim">3 hours ago`, `data-label="Used" class="dim">not yet`} {
		if !strings.Contains(string(v.Body), want) {
			t.Errorf("the page lacks %q: %s", want, v.Body)
		}
	}
}

// Members make their own keys; a key without an account cannot make one.
func TestAPIKeysPage_onlyAccountsCanMakeKeys(t *testing.T) {
	t.Parallel()
	p := New(Deps{Keys: usedKeys{}, Now: time.Now})
	v := &layout.Visit{Method: "GET", Viewer: catalog.Viewer{Role: catalog.RoleMember, Account: "u1"}, Status: 200, Sent: func(string) string { return "" }}
	if err := p.keyring.showKeys(t.Context(), v); err != nil {
		t.Fatal(err)
	}
	body := string(v.Body)
	if !strings.Contains(body, "Your own") || !strings.Contains(body, `name="name"`) || strings.Contains(body, `name="role"`) {
		t.Errorf("the page of somebody with an account: %s", body)
	}
	if !strings.Contains(body, `href="/settings/keys"`) || strings.Contains(body, `href="/settings/people"`) {
		t.Errorf("the navigation of somebody with an account: %s", body)
	}

	for _, who := range []catalog.Viewer{{Role: catalog.RoleMember, KeyID: "k1"}, catalog.Guest()} {
		v := &layout.Visit{Method: "GET", Viewer: who, Status: 200, Sent: func(string) string { return "" }}
		if err := p.keyring.showKeys(t.Context(), v); !errors.Is(err, call.ErrForbidden) {
			t.Errorf("%+v: %v", who, err)
		}
	}
}

// madeKeys makes each key of a request.
type madeKeys struct{ badKeys }

func (madeKeys) CreateKey(_ context.Context, _ account.Holder, r account.CreateKeyRequest) (*account.CreateKeyResponse, error) {
	return &account.CreateKeyResponse{Key: "shoal_1", Info: account.KeyInfo{Name: r.Name, Role: r.Role}}, nil
}

// An owner's form offers every role of keys. A new key stands in the lines of each agent and of the shell. Those
// refuse one for metrics: beside it the page leads to Prometheus.
func TestAPIKeysPage_makesAKeyOfEachRole(t *testing.T) {
	t.Parallel()
	for _, role := range []catalog.Role{catalog.RoleMember, catalog.RoleOwner, catalog.RoleMetrics} {
		p := New(Deps{Keys: madeKeys{}, Base: func() string { return "https://code.example.com" }, Now: time.Now})
		v := &layout.Visit{
			Method: "POST", Viewer: catalog.Operator(), Form: map[string][]string{"name": {"x"}, "role": {role.String()}}, Status: 200,
			Sent: func(name string) string { return map[string]string{"Sec-Fetch-Site": "same-origin"}[name] },
		}
		if err := p.keyring.showKeys(t.Context(), v); err != nil {
			t.Fatal(err)
		}

		body, forMetrics := string(v.Body), role == catalog.RoleMetrics
		if !strings.Contains(body, "<option>"+role.String()) && !strings.Contains(body, `<option value="`+role.String()) {
			t.Errorf("the form does not offer the role %s: %s", role, body)
		}
		for what, want := range map[string]bool{"shoal_1": true, "SHOAL_API_KEY": !forMetrics, "Bearer shoal_1&#34;": !forMetrics, "export SHOAL_API_KEY=shoal_1": !forMetrics, "$SHOAL_API_KEY": false, "/docs/how-to/monitor": forMetrics} {
			if strings.Contains(body, what) != want {
				t.Errorf("role %s: the page has %q: %t, want %t: %s", role, what, !want, want, body)
			}
		}
	}
}

// An error that the form can fix is shown next to it, with its status. Other errors have their
// own page.
func TestAPIKeysPage_showsFixableErrorsOnTheForm(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err    error
		status int // of the page with the form; 0 for an error
	}{
		{call.Fail(call.ErrInvalid, "said"), 400},
		{call.Fail(call.ErrExists, "said"), 400},
		{call.Fail(call.ErrNotFound, "said"), 404},
		{call.Fail(call.ErrNoLeader, "said"), 0},
		{call.Fail(call.ErrOverloaded, "said"), 0},
		{call.Fail(call.ErrForbidden, "said"), 0},
		{errors.New("said"), 0},
	} {
		for _, field := range []string{"name", "revoke"} {
			p := New(Deps{Keys: badKeys{err: c.err}, Now: time.Now})
			v := &layout.Visit{
				Method: "POST", Viewer: catalog.Operator(), Form: map[string][]string{field: {"x"}}, Status: 200,
				Sent: func(name string) string { return map[string]string{"Sec-Fetch-Site": "same-origin"}[name] },
			}

			err := p.keyring.showKeys(t.Context(), v)
			if c.status == 0 && !errors.Is(err, c.err) {
				t.Errorf("%s, %v: %d, %v", field, c.err, v.Status, err)
			}
			if c.status != 0 && (err != nil || v.Status != c.status || !strings.Contains(string(v.Body), `role="alert">said`)) {
				t.Errorf("%s, %v: %d, %v, %s", field, c.err, v.Status, err, v.Body)
			}
		}
	}
}
