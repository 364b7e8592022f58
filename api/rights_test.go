package api

import (
	"context"
	"regexp"
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/account"
	nodecall "github.com/shoalsearch/shoal/node/call"
)

// knower is a fake that knows one account and one repository.
type knower struct{ *fake }

func (a *knower) Why(ctx context.Context, by account.Owner, user, repo string) (*account.WhyResponse, error) {
	switch {
	case user != "ann@example.com":
		return nil, nodecall.Fail(nodecall.ErrNotFound, "there is no account %q", user)
	case repo != "github.com/acme/secret":
		return nil, nodecall.Fail(nodecall.ErrRepoNotFound, "Repository %q not found", repo)
	}
	r, err := a.fake.Why(ctx, by, user, repo)
	r.Reasons = append(r.Reasons, catalog.Reason{Kind: "account", Stops: true, Text: "The account is suspended: it sees nothing."})
	return r, err
}

func (a *knower) parts() parts {
	p := a.fake.parts()
	p.users = a
	return p
}

// The page asks for both names. It shows each reason, its effect and its age.
func TestRightsPage_showsOwnersEachReason(t *testing.T) {
	t.Parallel()
	s := start(t, &knower{&fake{}})
	const secret = "repo=github.com/acme/secret"
	for _, c := range []struct {
		query  string
		status int
		has    []string
		hasNot string
	}{
		{"", 200, []string{`name="user"`, `name="repo"`}, "<table"},
		{"user=ann@example.com", 200, []string{`value="ann@example.com"`}, "<table"},
		{"user=ann@example.com&" + secret, 200, []string{
			"<strong>sees</strong>", "permissions are enforced by work.", `class="dim">no right<`, `class="good">enough<`, `class="bad">ends it<`,
			`datetime="2026-11-02T10:20:30Z"`, "holds now", "shoal user access ann@example.com github.com/acme/secret",
		}, "role=\"alert\""},
		{"user=bob@example.com&" + secret, 404, []string{`role="alert"`, "there is no account", `value="bob@example.com"`}, "<table"},
		{"user=ann@example.com&repo=%3Cb%3E", 404, []string{`role="alert"`, "not found", `value="&lt;b&gt;"`}, "<b>"},
	} {
		resp, body := ask(t, s, "GET", "/settings/rights?"+c.query, "")
		if resp.StatusCode != c.status {
			t.Errorf("%q: %d, want %d", c.query, resp.StatusCode, c.status)
		}
		for _, want := range c.has {
			if !strings.Contains(string(body), want) {
				t.Errorf("%q: the page lacks %q:\n%s", c.query, want, body)
			}
		}
		if strings.Contains(string(body), c.hasNot) {
			t.Errorf("%q: the page has %q", c.query, c.hasNot)
		}
	}
}

// All others get the same answer whatever they ask for. The sign-in link leads back to the
// requested address.
func TestRightsPage_tellsOthersNothing(t *testing.T) {
	t.Parallel()
	s := start(t, &knower{&fake{guests: true}})
	back := regexp.MustCompile(`/login\?next=[^"]*`)
	answers := map[string]string{}
	for _, query := range []string{"", "?user=ann@example.com&repo=github.com/acme/secret", "?user=bob@example.com&repo=none"} {
		for who, key := range map[string]string{"a member": memberKey, "a guest": ""} {
			resp, body := askAs(t, s, key, "GET", "/settings/rights"+query, "")
			if resp.StatusCode != 403 {
				t.Errorf("%s, %s: %d", who, query, resp.StatusCode)
			}
			answer := back.ReplaceAllString(string(body), "/login")
			if before, ok := answers[who]; ok && before != answer {
				t.Errorf("%s is told something by %s", who, query)
			}
			answers[who] = answer
		}
	}
}
