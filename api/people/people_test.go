package people

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/api/layout"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/node/signin"
)

var (
	noon    = time.Date(2026, 11, 2, 12, 0, 0, 0, time.UTC)
	session = &account.BegunSession{Token: "tok", Expires: noon.Add(time.Hour)}
	ann     = account.UserInfo{ID: "u1", Email: "ann@example.com", Role: catalog.RoleMember, State: catalog.AccountActive, Created: noon}
)

// house fakes accounts and sign-in for one person. It records its calls.
type house struct {
	Passwords
	Accounts
	done []string
	fail error  // of every change
	mail string // what came of sending a link
}

func (h *house) Missing(catalog.Viewer) []string { return nil }

func (h *house) did(format string, args ...any) {
	h.done = append(h.done, fmt.Sprintf(format, args...))
}

func (h *house) SessionViewer(_ context.Context, token string) (catalog.Viewer, error) {
	if token != "tok" {
		return catalog.Viewer{}, call.Fail(call.ErrUnauthenticated, "Not authenticated")
	}
	return member, nil
}
func (h *house) BeginWithKey(_ context.Context, key string, _ account.SignIn) (*account.BegunSession, error) {
	if key != "good" {
		return nil, call.Fail(call.ErrUnauthenticated, "Not authenticated")
	}
	return session, h.fail
}
func (h *house) EndSession(context.Context, string) error { return h.fail }
func (h *house) SessionsOf(context.Context, account.Holder, string) ([]account.SessionInfo, error) {
	return []account.SessionInfo{{ID: "s1", Method: "password", Used: noon, Ends: noon}}, nil
}
func (h *house) EndSessions(_ context.Context, _ account.Holder, user, which string) (int, error) {
	h.did("end %s of %s", which, user)
	return 1, h.fail
}

func (h *house) ByPassword() bool { return true }
func (h *house) BeginWithPassword(_ context.Context, _, password string, in account.SignIn) (*account.BegunSession, error) {
	if h.fail != nil {
		return nil, h.fail
	}
	if password != "right" {
		return nil, call.Fail(call.ErrUnauthenticated, "That address and password do not fit.")
	}
	h.did("from %s instead of %q", in.Address, in.Instead)
	return session, nil
}
func (h *house) LinkOwner(_ context.Context, token string) (*account.UserInfo, error) {
	if token != "link" {
		return nil, call.Fail(call.ErrNotFound, "This link was used or has ended.")
	}
	return &ann, nil
}
func (h *house) BeginWithLink(_ context.Context, _, password string, _ account.SignIn) (*account.BegunSession, error) {
	if len(password) < 10 {
		return nil, call.Fail(call.ErrInvalid, "A password has ten characters at least.")
	}
	return session, h.fail
}
func (h *house) ChangePassword(_ context.Context, _ account.Person, old, password, address string) error {
	h.did("password %s to %s from %s", old, password, address)
	return h.fail
}
func (h *house) NewLink(_ context.Context, _ account.Owner, req account.NewLinkRequest) (*account.NewLink, error) {
	h.did("link of %s, join %t", req.User, req.Join)
	return &account.NewLink{Token: "fresh&new", Expires: noon, Mail: h.mail}, h.fail
}

func (h *house) Providers() []signin.Provider {
	return []signin.Provider{{ID: "corp", Title: "Corp", SignsIn: true}, {ID: "host", Title: "Host"}}
}
func (h *house) Begin(_ context.Context, req signin.Start) (*signin.Begun, error) {
	if h.fail != nil {
		return nil, h.fail
	}
	h.did("to %s, linking %t", req.Provider, req.By != nil)
	return &signin.Begun{Title: "Corp", Address: "https://corp.example/go", Cookie: "tab", Value: "sealed"}, nil
}
func (h *house) Finish(_ context.Context, b signin.Back) (*signin.Finished, error) {
	if h.fail != nil {
		return nil, h.fail
	}
	if b.By != nil {
		return &signin.Finished{Title: "Corp"}, nil
	}
	return &signin.Finished{Session: session, Next: b.Query.Get("next")}, nil
}
func (h *house) LinkByToken(_ context.Context, x signin.Shown) error {
	h.did("token of %s at %s", x.User, x.Provider)
	return h.fail
}
func (h *house) Linked(context.Context, account.Person) []signin.Linked { return nil }
func (h *house) Unlink(_ context.Context, _ account.Person, authority, subject string) error {
	h.did("unlink %s of %s", subject, authority)
	return h.fail
}

func (h *house) CreateUser(_ context.Context, _ account.Owner, req account.CreateUserRequest) (*account.UserInfo, error) {
	h.did("create %s %s", req.Email, req.Role)
	return &ann, h.fail
}
func (h *house) Users(context.Context, account.Owner) ([]account.UserInfo, error) {
	return []account.UserInfo{ann}, nil
}
func (h *house) ChangeUser(_ context.Context, _ account.Owner, req account.ChangeUserRequest) (*account.UserInfo, error) {
	h.did("change %s to %s %s", req.User, req.State, req.Role)
	return &ann, h.fail
}
func (h *house) DeleteUser(_ context.Context, _ account.Owner, user string) (*account.UserInfo, error) {
	h.did("delete %s", user)
	return &ann, h.fail
}
func (h *house) Why(context.Context, account.Owner, string, string) (*account.WhyResponse, error) {
	return nil, h.fail
}

var (
	guest  = catalog.Guest()
	member = catalog.Viewer{Role: catalog.RoleMember, Name: "ann@example.com", Account: "u1", Session: "s1"}
	keyOf  = catalog.Viewer{Role: catalog.RoleMember, Name: "ci", KeyID: "k1"} // of nobody
	owner  = catalog.Viewer{Role: catalog.RoleOwner, Name: "olga@example.com", Account: "u2", Session: "s2"}
)

var alerts = regexp.MustCompile(`role="(?:alert|status)">([^<]*)<`)

// visit sends a request, and writes the answer in one line:
//
//	303 /repos; shoal=tok 3600   401 That is no key …   FORBIDDEN
func (h *house) visit(t *testing.T, who catalog.Viewer, request string, cookies map[string]string, secure bool) string {
	t.Helper()
	method, rest, _ := strings.Cut(request, " ")
	address, body, _ := strings.Cut(rest, " ")
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	form, err := url.ParseQuery(body)
	if err != nil {
		t.Fatal(err)
	}
	var sent []string
	for name, value := range cookies {
		sent = append(sent, name+"="+value)
	}
	v := &layout.Visit{
		Method: method, Path: u.Path, Query: u.Query(), Form: form, Viewer: who, Secure: secure, Status: 200, Address: "192.0.2.7",
		Cookie: func(name string) string { return cookies[name] },
		Sent: func(name string) string {
			if name == "Cookie" {
				return strings.Join(sent, "; ")
			}
			return ""
		},
	}

	pages := New(Deps{Sessions: h, Passwords: h, Providers: h, Accounts: h, Base: func() string { return "https://code.example" }, Now: func() time.Time { return noon }})
	for _, r := range pages.Routes() {
		if r.Method == method && (r.Path == u.Path || strings.HasPrefix(r.Path, "/api/auth/callback/") && strings.HasPrefix(u.Path, "/api/auth/callback/")) {
			if err := r.Handle(t.Context(), v); err != nil {
				return failedAs(err)
			}
			return answered(v)
		}
	}
	t.Fatalf("there is no page %s", request)
	return ""
}

// failedAs returns the name of a failure that is its own page.
func failedAs(err error) string {
	for name, kind := range map[string]error{"FORBIDDEN": call.ErrForbidden, "UNAUTHENTICATED": call.ErrUnauthenticated, "NOT FOUND": call.ErrNotFound, "NO LEADER": call.ErrNoLeader} {
		if errors.Is(err, kind) {
			return name
		}
	}
	return "OTHER " + err.Error()
}

func answered(v *layout.Visit) string {
	out := fmt.Sprint(v.Status)
	for _, h := range v.Header {
		if h[0] == "Location" {
			out += " " + h[1]
		}
	}
	for _, h := range v.Header {
		switch h[0] {
		case "Set-Cookie":
			pair, rest, _ := strings.Cut(h[1], ";")
			life := regexp.MustCompile(`Max-Age=(\d+)`).FindStringSubmatch(rest)[1]
			out += "; " + pair + " " + life
			if strings.Contains(rest, "Secure") {
				out += " secure"
			}
			if !strings.Contains(rest, "HttpOnly; SameSite=Lax") || !strings.Contains(rest, "Path=/;") {
				out += " FOR SCRIPTS OR OTHER SITES"
			}
		case "Refresh", "Retry-After", "Clear-Site-Data":
			out += "; " + h[0] + " " + h[1]
		}
	}
	if m := alerts.FindSubmatch(v.Body); m != nil {
		out += " " + string(m[1])
	}
	return strings.TrimSpace(out)
}

// Each row: who sends the request, the answer, and the recorded calls.
func TestPeoplePages_callOneMethodForEachForm(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		who     catalog.Viewer
		request string
		want    string
		done    string
	}{
		// Signing in redirects within this site only.
		{guest, "GET /login", "200", ""},
		{guest, "POST /login email=a@b.example&password=right&next=/repos", "303 /repos; shoal=tok 3600", `from 192.0.2.7 instead of ""`},
		{guest, "POST /login email=a@b.example&password=right&next=//evil.example", "303 /; shoal=tok 3600", `from 192.0.2.7 instead of ""`},
		{guest, "POST /login email=a@b.example&password=right&next=/%5Cevil.example", "303 /; shoal=tok 3600", `from 192.0.2.7 instead of ""`},
		{guest, "POST /login email=a@b.example&password=right&next=https://evil.example", "303 /; shoal=tok 3600", `from 192.0.2.7 instead of ""`},
		{guest, "POST /login email=a@b.example&password=right&next=/a%0d%0aSet-Cookie:x", "303 /; shoal=tok 3600", `from 192.0.2.7 instead of ""`},
		{guest, "POST /login email=a@b.example&password=wrong", "401 That address and password do not fit.", ""},
		{guest, "POST /login key=good", "303 /; shoal=tok 3600", ""},
		{guest, "POST /login key=bad", "401 That is no key of this service, or it has ended.", ""},
		{guest, "POST /login ", "401 That is no key of this service, or it has ended.", ""},
		{member, "POST /logout", "303 /; shoal= 0; Clear-Site-Data \"storage\"", ""},

		// The way to a provider sets its own cookie, and the way back deletes it.
		{guest, "POST /login with=corp&next=/repos", "200; shoal-login-tab=sealed 600; Refresh 0; url=https://corp.example/go On to Corp…", "to corp, linking false"},
		{guest, "GET /api/auth/callback/corp?next=/repos", "303 /repos; shoal=tok 3600", ""},
		{member, "POST /settings/account link=host", "200; shoal-login-tab=sealed 600; Refresh 0; url=https://corp.example/go On to Corp…", "to host, linking true"},
		{guest, "POST /settings/account link=host", "FORBIDDEN", ""},

		// Opening a link does not use it up.
		{guest, "GET /join?link=link", "200", ""},
		{guest, "GET /join?link=other", "NOT FOUND", ""},
		{guest, "POST /join link=link&password=long+enough+now&again=long+enough+now", "303 /; shoal=tok 3600", ""},
		{guest, "POST /join link=link&password=long+enough+now&again=other", "400 The two passwords differ.", ""},
		{guest, "POST /join link=link&password=short&again=short", "400 A password has ten characters at least.", ""},

		// The user's own account.
		{guest, "GET /settings/account", "UNAUTHENTICATED", ""},
		{keyOf, "GET /settings/account", "200", ""},
		{member, "GET /settings/account?linked", "200 It is linked.", ""},
		{member, "POST /settings/account old=a&password=b&again=b", "200 The password is changed. You are signed out everywhere else.", "password a to b from 192.0.2.7"},
		{member, "POST /settings/account old=a&password=b&again=c", "400 The two passwords differ.", ""},
		{member, "POST /settings/account end=s1", "200 Signed out there.", "end s1 of me"},
		{member, "POST /settings/account unlink=https://h.example&subject=7", "200 It is linked no more.", "unlink 7 of https://h.example"},
		{member, "POST /settings/account token=x&at=azure&user=ann", "200 It is linked. What you may read there is asked for now.", "token of ann at azure"},
		{keyOf, "POST /settings/account end=s1", "FORBIDDEN", ""},

		// Only owners see the accounts of others. Each change is recorded.
		{member, "GET /settings/people", "FORBIDDEN", ""},
		{guest, "POST /settings/people do=delete&user=u1", "FORBIDDEN", ""},
		{owner, "GET /settings/people", "200", ""},
		{owner, "POST /settings/people do=suspend&user=u1", "200 ann@example.com is suspended and signed out everywhere.", "change u1 to suspended none"},
		{owner, "POST /settings/people do=approve&user=u1", "200 ann@example.com may sign in.", "change u1 to active none"},
		{owner, "POST /settings/people do=reactivate&user=u1", "200 ann@example.com is active again.", "change u1 to active none"},
		{owner, "POST /settings/people do=owner&user=u1", "200 ann@example.com is an owner.", "change u1 to unknown owner"},
		{owner, "POST /settings/people do=member&user=u1", "200 ann@example.com is a member.", "change u1 to unknown member"},
		{owner, "POST /settings/people do=logout&user=u1", "200 Signed out everywhere.", "end  of u1"},
		{owner, "POST /settings/people do=delete&user=u1", "200 ann@example.com is deleted.", "delete u1"},
		{owner, "POST /settings/people do=invite&user=b@c.example&role=owner", "200", "create b@c.example owner, link of b@c.example, join true"},
		{owner, "POST /settings/people do=invite&user=b@c.example&role=king", "200", "create b@c.example member, link of b@c.example, join true"},
		{owner, "POST /settings/people do=link&user=u1", "200", "link of u1, join true"},
		{owner, "POST /settings/people do=crown&user=u1", "400 this page cannot do that", ""},
		{owner, "GET /settings/rights", "200", ""},
		{member, "GET /settings/rights?user=u1&repo=a", "FORBIDDEN", ""},
	} {
		h := &house{}
		cookies := map[string]string{}
		got := h.visit(t, c.who, c.request, cookies, false)
		if got != c.want {
			t.Errorf("%s\n got %s\nwant %s", c.request, got, c.want)
		}
		if done := strings.Join(h.done, ", "); done != c.done {
			t.Errorf("%s\ndone %s\nwant %s", c.request, done, c.done)
		}
	}
}

// An error appears on the form that can fix it, else on its own page.
func TestPeoplePages_showAnErrorOnTheFormThatCanFixIt(t *testing.T) {
	t.Parallel()
	busy := &call.Error{Kind: call.ErrOverloaded, Message: "Too many try.", RetryAfter: 7 * time.Second}
	for _, c := range []struct {
		who     catalog.Viewer
		request string
		fail    error
		want    string
	}{
		{guest, "POST /login email=a@b.example&password=right", busy, "429; Retry-After 7 Too many try. In 7s."},
		{guest, "POST /login email=a@b.example&password=right", call.Fail(call.ErrUnavailable, "Not now."), "503 Not now."},
		{guest, "POST /login email=a@b.example&password=right", call.Fail(call.ErrForbidden, "You are suspended."), "403 You are suspended."},
		{guest, "POST /login email=a@b.example&password=right", call.Fail(call.ErrNoLeader, "no leader"), "NO LEADER"},
		{guest, "POST /login with=corp", call.Fail(call.ErrUnavailable, "Corp cannot be asked."), "503 Corp cannot be asked."},
		{guest, "GET /api/auth/callback/corp?state=x", call.Fail(call.ErrUnauthenticated, "Begin again."), "401 Begin again."},
		{member, "POST /logout", call.Fail(call.ErrNoLeader, "no leader"), "NO LEADER"},
		{member, "POST /settings/account unlink=h&subject=7", call.Fail(call.ErrInvalid, "It is your only way in."), "400 It is your only way in."},
		{owner, "POST /settings/people do=suspend&user=u1", call.Fail(call.ErrInvalid, "the last owner"), "400 the last owner"},
		{owner, "POST /settings/people do=invite&user=u1", call.Fail(call.ErrNoLeader, "no leader"), "NO LEADER"},
		{owner, "GET /settings/rights?user=u1&repo=a", call.Fail(call.ErrNotFound, "there is no account"), "404 there is no account"},
		{owner, "GET /settings/rights?user=u1&repo=a", call.Fail(call.ErrNoLeader, "no leader"), "NO LEADER"},
	} {
		if got := (&house{fail: c.fail}).visit(t, c.who, c.request, nil, false); got != c.want {
			t.Errorf("%s\n got %s\nwant %s", c.request, got, c.want)
		}
	}
}

// A link is shown whatever came of sending it.
func TestInvitationPage_saysWhetherTheMailWasSent(t *testing.T) {
	t.Parallel()
	for mail, want := range map[string]string{"": "Give it to the person only:", "not sent to a@b.example, hand it on yourself: refused": "person only; it was not sent to a@b.example, hand it on yourself: refused:"} {
		none := func(string) string { return "" }
		v := &layout.Visit{Method: "POST", Path: "/settings/people", Viewer: owner, Status: 200, Cookie: none, Sent: none,
			Form: url.Values{"do": {"invite"}, "user": {"a@b.example"}}}
		h := &house{mail: mail}
		pages := New(Deps{Sessions: h, Passwords: h, Providers: h, Accounts: h, Base: func() string { return "https://code.example" }, Now: func() time.Time { return noon }})
		err := pages.changeMember(t.Context(), v)
		if got := string(v.Body); err != nil || !strings.Contains(got, want) || !strings.Contains(got, "/join?link=fresh%26new") {
			t.Errorf("%q: %v %s", mail, err, got)
		}
	}
}

// With TLS browsers accept the cookie from this site only. A browser has a limited number of
// pending sign-ins.
func TestSignInCookies_areSameSiteAndLimitedInNumber(t *testing.T) {
	t.Parallel()
	if got, want := (&house{}).visit(t, guest, "POST /login key=good", nil, true), "303 /; __Host-shoal=tok 3600 secure"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}

	many := map[string]string{}
	for i := range maxFlows {
		many[fmt.Sprint("shoal-login-", i)] = "x"
	}
	got := (&house{}).visit(t, guest, "POST /login with=corp", many, false)
	if n := strings.Count(got, "=; ") + strings.Count(got, "= 0"); n != maxFlows || !strings.Contains(got, "shoal-login-tab=sealed") {
		t.Errorf("%d cookies are taken back: %s", n, got)
	}
	delete(many, "shoal-login-0")
	if got := (&house{}).visit(t, guest, "POST /login with=corp", many, false); strings.Contains(got, "= 0") {
		t.Errorf("cookies of a few sign-ins are taken back: %s", got)
	}

	// A cookie of an ended session is deleted, a good one stays.
	if got := (&house{}).visit(t, guest, "GET /login", map[string]string{"shoal": "old"}, false); got != "200; shoal= 0" {
		t.Errorf("an ended session: %s", got)
	}
	if got := (&house{}).visit(t, guest, "GET /login", map[string]string{"shoal": "tok"}, false); got != "200" {
		t.Errorf("a good session: %s", got)
	}
}
