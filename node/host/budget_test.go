package host

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/cluster/config"
)

// Calls go at the usual pace while many are left. Few calls are spread over the rest of the period.
// A period of years does not stop calls for years.
func TestRateLimit_spreadsScarceCalls(t *testing.T) {
	t.Parallel()
	const limit, keep = 5000, 0.2
	for name, c := range map[string]struct {
		remaining   int
		reset       time.Duration
		least, most time.Duration // time that 40 calls take
	}{
		"all left":         {4990, time.Hour, 0, 5 * time.Second},
		"a third left":     {1500, time.Hour, 0, 5 * time.Second},
		"little left":      {1100, time.Hour, 10 * time.Minute, 30 * time.Minute},
		"a wrong end":      {1500, 8 * 365 * 24 * time.Hour, 0, 5 * time.Second},
		"the period ended": {0, -time.Second, 0, 5 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
			start := at
			b := NewBudgets(func() time.Time { return at }).budgetFor("h", "t")
			wait := func(_ context.Context, d time.Duration) error { at = at.Add(max(d, 0)); return nil }
			b.recordLimit(limit, c.remaining, start.Add(c.reset), keep)
			for range 40 {
				leave, err := b.waitForCall(t.Context(), wait)
				if err != nil {
					t.Fatal(err)
				}
				leave()
			}
			if took := at.Sub(start); took < c.least || took > c.most {
				t.Errorf("40 calls took %s, want %s to %s", took, c.least, c.most)
			}
		})
	}

	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	b := NewBudgets(func() time.Time { return at }).budgetFor("h", "t")
	b.recordLimit(limit, 0, at.Add(7*365*24*time.Hour), keep)
	if _, err := b.waitForCall(t.Context(), Pause); b.snapshot().Until.After(at.Add(61 * time.Minute)) {
		t.Errorf("a budget that is used up waits until %s: %v", b.snapshot().Until, err)
	}
}

// For each kind, an unreadable token gives TokenMissing and not Unreachable.
func TestList_anUnreadableTokenGivesTokenMissing(t *testing.T) {
	t.Parallel()
	token := &config.Token{Env: "NOPE"}
	for name, conn := range map[string]config.Connection{
		"github":           &config.GitHub{Token: token, Orgs: []string{"a", "b"}},
		"gitlab":           &config.GitLab{Token: token, Groups: []string{"a", "b"}},
		"gitea":            &config.Gitea{Token: token, Orgs: []string{"a", "b"}},
		"gerrit":           &config.Gerrit{URL: "https://gerrit.invalid", User: "u", Token: token},
		"bitbucket cloud":  &config.Bitbucket{Deployment: config.Cloud, Token: token, Workspaces: []string{"a", "b"}},
		"bitbucket server": &config.Bitbucket{URL: "https://bitbucket.invalid", Deployment: config.Server, Token: token, Projects: []string{"a", "b"}},
		"azure devops":     &config.AzureDevOps{Token: token, Deployment: config.Cloud, Orgs: []string{"a", "b"}},
	} {
		for what, secret := range map[string]Secret{
			"unset": func(context.Context, config.Token) (string, error) {
				return "", errors.New("environment variable NOPE is not set")
			},
			"blank": func(context.Context, config.Token) (string, error) { return " \n", nil },
		} {
			tools := tools(t)
			tools.Secret = secret
			h, err := Open(conn, tools)
			if err != nil {
				t.Fatal(err)
			}
			err = h.List(t.Context(), &recorder{})
			if r := (*Refusal)(nil); !errors.As(err, &r) || r.Code != TokenMissing || Advice(r.Code) == "" || !r.Partial {
				t.Errorf("%s, %s: %v", name, what, err)
			}
		}
	}
}
