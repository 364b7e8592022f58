package host

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"strings"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/cluster/config"
)

func macOf(secret, body string) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(body))
	return hex.EncodeToString(mac.Sum(nil))
}

// Each kind accepts only its own signature, and decodes its events.
func TestWebhook_acceptsOnlyTheSignatureOfItsHostKind(t *testing.T) {
	t.Parallel()
	const secret = "hush"
	for name, c := range map[string]struct {
		conn  config.Connection
		proof func(secret, body string) map[string]string // headers; "?token" is a query
		event string                                      // header with the name of the event
		push  string
		body  string
		want  string // repository
	}{
		"github": {&config.GitHub{}, func(s, b string) map[string]string {
			return map[string]string{"X-Hub-Signature-256": "sha256=" + macOf(s, b)}
		},
			"X-GitHub-Event", "push", `{"ref":"refs/heads/main","repository":{"id":1,"full_name":"acme/app","clone_url":"https://github.com/acme/app.git"}}`, "https://github.com/acme/app.git acme/app"},
		"gitlab": {&config.GitLab{}, func(s, _ string) map[string]string { return map[string]string{"X-Gitlab-Token": s} },
			"X-Gitlab-Event", "Push Hook", `{"object_kind":"push","project":{"id":1,"path_with_namespace":"acme/app","git_http_url":"https://gitlab.com/acme/app.git"}}`, "https://gitlab.com/acme/app.git acme/app"},
		"gitlab, of the system": {&config.GitLab{}, func(s, _ string) map[string]string { return map[string]string{"X-Gitlab-Token": s} },
			"X-Gitlab-Event", "System Hook", `{"event_name":"repository_update","project":{"path_with_namespace":"acme/app"}}`, "acme/app"},
		"gitea": {&config.Gitea{}, func(s, b string) map[string]string { return map[string]string{"X-Gitea-Signature": macOf(s, b)} },
			"X-Gitea-Event", "push", `{"repository":{"id":1,"full_name":"acme/app"}}`, "acme/app"},
		"bitbucket cloud": {&config.Bitbucket{}, func(s, b string) map[string]string {
			return map[string]string{"X-Hub-Signature": "sha256=" + macOf(s, b)}
		},
			"X-Event-Key", "repo:push", `{"repository":{"uuid":"{1}","full_name":"ws/app","project":{"key":"P"},"links":{"html":{"href":"https://bitbucket.org/ws/app"}}}}`, "https://bitbucket.org/ws/app ws/app"},
		"bitbucket data center": {&config.Bitbucket{}, func(s, b string) map[string]string {
			return map[string]string{"X-Hub-Signature": "sha256=" + macOf(s, b)}
		},
			"X-Event-Key", "repo:refs_changed", `{"repository":{"id":1,"slug":"app","project":{"key":"KEY"}}}`, "KEY/app"},
		"azure devops": {&config.AzureDevOps{}, func(s, _ string) map[string]string { return map[string]string{"Authorization": basicOf("any", s)} },
			"", "", `{"eventType":"git.push","resource":{"repository":{"id":"g","remoteUrl":"https://dev.azure.com/o/p/_git/app"}}}`, "https://dev.azure.com/o/p/_git/app"},
		"gerrit": {&config.Gerrit{}, func(s, _ string) map[string]string { return map[string]string{"?token": s} },
			"", "", `{"type":"ref-updated","refUpdate":{"project":"platform/app","refName":"refs/heads/main"}}`, "platform/app"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			deliver := func(proof map[string]string, event, body string) Delivery {
				return Delivery{
					Header: func(n string) string {
						if n == c.event && n != "" {
							return event
						}
						return proof[n]
					},
					Query: func(n string) string { return proof["?"+n] },
					Body:  []byte(body),
				}
			}
			hook := HookOf(c.conn)
			if head := deliver(c.proof(secret, c.body), c.push, ""); !hook.Signs(head, []string{"new", secret}) {
				t.Error("the head of a good proof is refused before its body")
			}
			for what, head := range map[string]Delivery{
				"nothing":               deliver(nil, c.push, ""),
				"the scheme of another": deliver(map[string]string{"X-Shoal-Signature": macOf(secret, c.body)}, c.push, ""),
				"a word":                deliver(map[string]string{"X-Hub-Signature-256": "sha256=x", "X-Hub-Signature": "x", "X-Gitea-Signature": "", "X-Gitlab-Token": "x", "Authorization": "Basic x", "?token": "x"}, c.push, ""),
			} {
				if hook.Signs(head, []string{secret}) {
					t.Errorf("the body of %s is read", what)
				}
			}
			good := deliver(c.proof(secret, c.body), c.push, c.body)
			if !hook.Signed(good, []string{"new", secret}) {
				t.Error("a good proof is refused")
			}
			for what, d := range map[string]Delivery{
				"nothing":               deliver(nil, c.push, c.body),
				"that of another":       deliver(c.proof("other", c.body), c.push, c.body),
				"the scheme of another": deliver(map[string]string{"X-Shoal-Signature": macOf(secret, c.body), "X-Gitlab-Token": "x"}, c.push, c.body),
			} {
				if hook.Signed(d, []string{secret}) {
					t.Errorf("%s is taken for a proof", what)
				}
			}
			if hook.Signed(deliver(c.proof("", c.body), c.push, c.body), []string{""}) {
				t.Error("without a secret anybody is believed")
			}

			e, err := hook.Read(good)
			if got := strings.Join(append(e.URLs, e.Paths...), " "); err != nil || !e.Pushed || got != c.want {
				t.Errorf("a push is read as %+v (%s), %v", e, got, err)
			}
			if e, err := hook.Read(deliver(nil, "ping", `{"zen":"x","eventType":"x","type":"x"}`)); err != nil || e.Pushed || e.Changed {
				t.Errorf("a trial is read as %+v, %v", e, err)
			}
			if _, err := hook.Read(deliver(nil, c.push, `{"repository":`)); err == nil {
				t.Error("half a body is read")
			}
		})
	}
	if none := (Delivery{Header: func(string) string { return "" }}); HookOf(nil).Signed(none, []string{secret}) || HookOf(nil).Signs(none, []string{secret}) {
		t.Error("a connection that is not there takes events")
	}
}

func TestFileURL_leadsToTheFileAtTheHost(t *testing.T) {
	t.Parallel()
	sha := strings.Repeat("a", 40)
	for _, c := range []struct{ host, rev, want string }{
		{"github", "", "https://h/r/blob/main/a%20b/c%23.go"},
		{"github", "refs/heads/x/y", "https://h/r/blob/x/y/a%20b/c%23.go"},
		{"gitlab", sha, "https://h/r/-/blob/" + sha + "/a%20b/c%23.go"},
		{"gitea", "HEAD", "https://h/r/src/branch/main/a%20b/c%23.go"},
		{"gitea", "refs/tags/v1", "https://h/r/src/tag/v1/a%20b/c%23.go"},
		{"gitea", sha, "https://h/r/src/commit/" + sha + "/a%20b/c%23.go"},
		{"gerrit", "refs/tags/v1", "https://h/r/+/refs/tags/v1/a%20b/c%23.go"},
		{"bitbucketCloud", sha, "https://h/r/src/" + sha + "/a%20b/c%23.go"},
		{"bitbucketServer", "main", "https://h/r/browse/a%20b/c%23.go?at=refs%2Fheads%2Fmain"},
		{"azuredevops", "main", "https://h/r?path=%2Fa+b%2Fc%23.go&version=GBmain"},
		{"azuredevops", sha, "https://h/r?path=%2Fa+b%2Fc%23.go&version=GC" + sha},
		{"genericGitHost", "", ""},
	} {

		if got := FileURL(c.host, "https://h/r/", RefOf(c.rev, "main"), "a b/c#.go"); got != c.want {
			t.Errorf("%s %s: %s, want %s", c.host, c.rev, got, c.want)
		}
	}
	if got := FileURL("github", "", Ref{}, "a"); got != "" {
		t.Errorf("of a repository without a page: %s", got)
	}
}

func TestLinesURL_leadsToTheLinesAtTheHost(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		host, page  string
		first, last int
		want        string
	}{
		{"github", "https://h/r/blob/main/a.go", 10, 20, "https://h/r/blob/main/a.go#L10-L20"},
		{"github", "https://h/r/blob/main/README.md", 3, 3, "https://h/r/blob/main/README.md?plain=1#L3-L3"},
		{"gitlab", "https://h/r/-/blob/main/a.go", 10, 20, "https://h/r/-/blob/main/a.go#L10-20"},
		{"gitea", "https://h/r/src/branch/main/a.go", 10, 20, "https://h/r/src/branch/main/a.go#L10-L20"},
		{"gerrit", "https://h/r/+/main/a.go", 10, 20, "https://h/r/+/main/a.go#10"},
		{"bitbucketCloud", "https://h/r/src/main/a.go", 10, 20, "https://h/r/src/main/a.go#lines-10:20"},
		{"bitbucketServer", "https://h/r/browse/a.go?at=main", 10, 20, "https://h/r/browse/a.go?at=main#10-20"},
		{"azuredevops", "https://h/r?path=%2Fa.go&version=GBmain", 10, 20, "https://h/r?path=%2Fa.go&version=GBmain&line=10&lineEnd=21&lineStartColumn=1&lineEndColumn=1&_a=contents"},
		{"github", "https://h/a.go", 0, 0, "https://h/a.go"},
		{"github", "", 1, 2, ""},
		{"genericGitHost", "https://h/a.go", 1, 2, "https://h/a.go"},
	} {
		if got := LinesURL(c.host, c.page, c.first, c.last); got != c.want {
			t.Errorf("%s: %s, want %s", c.host, got, c.want)
		}
	}
	if got := FileURL("gerrit", "https://h/gitweb?p=app.git", Ref{Name: "main", Kind: Branch}, "a.go"); got != "" {
		t.Errorf("gitweb has no address for files, and %s is told", got)
	}
}

// GitLab signs with a token that contains the secret. Signatures are valid for five minutes.
func TestWebhook_verifiesGitLabSigningTokens(t *testing.T) {
	t.Parallel()
	secret := strings.Repeat("ab", 32)
	hook, now := HookOf(&config.GitLab{}), time.Unix(1772370000, 0)
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(hook.SigningToken(secret), "whsec_"))
	if err != nil || len(key) != 32 {
		t.Fatalf("the token %s: %v", hook.SigningToken(secret), err)
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte("msg_1.1772370000.{}"))
	header := map[string]string{"webhook-id": "msg_1", "webhook-timestamp": "1772370000", "webhook-signature": "v1,other v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))}
	for _, c := range []struct {
		late time.Duration
		body string
		want bool
	}{{0, "{}", true}, {4 * time.Minute, "{}", true}, {-4 * time.Minute, "{}", true}, {6 * time.Minute, "{}", false}, {-6 * time.Minute, "{}", false}, {0, "{ }", false}} {
		d := Delivery{Header: func(n string) string { return header[n] }, Body: []byte(c.body), Now: now.Add(c.late)}
		if got := hook.Signed(d, []string{secret}); got != c.want {
			t.Errorf("%v late, body %s: %v", c.late, c.body, got)
		}
	}
	if token := HookOf(&config.GitHub{}).SigningToken(secret); token != "" {
		t.Errorf("GitHub has the token %s", token)
	}
}

// If only the body is signed, its hash is the id. An unsigned id does not make one event two.
func TestWebhook_hashOfTheBodyIsTheDeliveryID(t *testing.T) {
	t.Parallel()
	for header, conn := range map[string]config.Connection{"X-GitHub-Delivery": &config.GitHub{}, "X-Gitea-Delivery": &config.Gitea{}, "X-Request-UUID": &config.Bitbucket{}, "X-Request-Id": &config.Bitbucket{}} {
		id := func(text, body string) string {
			e, err := HookOf(conn).Read(Delivery{Header: func(n string) string { return map[string]string{header: text}[n] }, Body: []byte(body)})
			if err != nil || e.ID == "" {
				t.Errorf("%s: %+v, %v", header, e, err)
			}
			return e.ID
		}
		if id("1", "{}") != id("2", "{}") || id("1", "{}") == id("1", "{ }") {
			t.Errorf("%s tells deliveries apart, not the body", header)
		}
	}
}

// A delivery has the host's id, if that is signed or the delivery contains the secret.
func TestWebhook_usesTheHostsDeliveryIDIfSigned(t *testing.T) {
	t.Parallel()
	for want, c := range map[string]struct {
		conn   config.Connection
		header string
		body   string
	}{
		"l1": {&config.GitLab{}, "Idempotency-Key", `{}`}, "w1": {&config.GitLab{}, "webhook-id", `{}`}, "a1": {&config.AzureDevOps{}, "", `{"id":"a1"}`},
	} {
		d := Delivery{Header: func(n string) string { return map[string]string{c.header: want}[n] }, Body: []byte(c.body)}
		if e, err := HookOf(c.conn).Read(d); err != nil || e.ID != want {
			t.Errorf("%s: %+v, %v", want, e, err)
		}
	}
}

// The error of an invalid event speaks of JSON, not of Go.
func TestWebhook_errorOfAMalformedEventSpeaksOfJSON(t *testing.T) {
	t.Parallel()
	hook := HookOf(&config.GitHub{})
	for body, want := range map[string]string{
		`{"repository":{"full_name":7}}`: "malformed event: repository.full_name must not be a JSON number",
		`{"organization":"acme"}`:        "malformed event: organization must not be a JSON string",
		`[]`:                             "malformed event: the body must not be a JSON array",
		`{`:                              "malformed event: unexpected end of JSON input",
	} {
		_, err := hook.Read(Delivery{Header: func(string) string { return "push" }, Body: []byte(body)})
		if err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %q", body, err, want)
		}
	}
}
