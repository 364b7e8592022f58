package oauth

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/cluster/origin"
)

const agentDocument = "https://agent.example/client.json"

// site serves documents, and counts the requests.
type site struct {
	mu    sync.Mutex
	text  string
	err   error
	asked int
}

func (s *site) Fetch(_ context.Context, address string) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	return []byte(s.text), s.err
}

func document(id string) string {
	return fmt.Sprintf(`{"client_id":%q,"client_name":"Agent","redirect_uris":["http://localhost/callback"],"token_endpoint_auth_method":"none"}`, id)
}

func TestClientDocument_identifiesAClientAndIsCached(t *testing.T) {
	t.Parallel()
	w := newTestCluster(t, 2)
	web := &site{text: document(agentDocument)}
	for _, p := range w.nodes {
		p.documents.fetch = web
	}
	got := w.nodes[0].enter(agentDocument)

	// The other node needs no document to take the code or to refresh.
	code := w.nodes[0].code(ann, agentDocument)
	web.err = errors.New("it cannot be fetched")
	if _, err := w.nodes[1].Exchange(t.Context(), "", codeForm(code, agentDocument)); err != nil {
		t.Error(err)
	}
	if _, err := w.nodes[1].Exchange(t.Context(), "", refreshForm(got.Refresh, agentDocument)); err != nil {
		t.Error(err)
	}
	if web.asked != 1 {
		t.Errorf("the document was fetched %d times", web.asked)
	}

	// While fetching fails, the last good copy is used for a week.
	w.pass(documentFresh)
	w.nodes[0].code(ann, agentDocument)
	w.nodes[0].code(ann, agentDocument)
	if web.asked != 2 {
		t.Errorf("after an hour it was fetched %d times in all, want 2: a failure is remembered", web.asked)
	}
	w.pass(documentStale)
	_, err := w.nodes[0].Authorize(t.Context(), ann, request(agentDocument))
	wants(t, "after a week", err, invalidClient)
	web.err = nil
	w.pass(documentFailed)
	w.nodes[0].code(ann, agentDocument)
}

func TestClientDocument_isFetchedOnlyForSignedInPeople(t *testing.T) {
	t.Parallel()
	p := newTestCluster(t, 1).nodes[0]
	web := &site{text: document(agentDocument)}
	p.documents.fetch = web
	p.Authorize(t.Context(), Person{}, request(agentDocument))
	p.Exchange(t.Context(), "", codeForm("shoal_ac_x", agentDocument))
	p.Exchange(t.Context(), "", refreshForm("shoal_rt_x", agentDocument))
	p.Register(t.Context(), []byte(document(agentDocument)))
	if web.asked != 0 {
		t.Errorf("it was fetched %d times", web.asked)
	}
}

func TestClientDocument_refusesInvalidDocuments(t *testing.T) {
	t.Parallel()
	for what, text := range map[string]string{
		"another id":         document("https://agent.example/other.json"),
		"an id with a slash": document(agentDocument + "/"),
		"no id":              `{"redirect_uris":["http://localhost/callback"]}`,
		"a secret":           strings.Replace(document(agentDocument), "{", `{"client_secret":"x",`, 1),
		"a secret's method":  strings.Replace(document(agentDocument), `"none"`, `"client_secret_post"`, 1),
		"a text for a list":  strings.Replace(document(agentDocument), `["http://localhost/callback"]`, `"http://localhost/callback"`, 1),
		"a list for a text":  strings.Replace(document(agentDocument), `"Agent"`, `["Agent"]`, 1),
		"no good address":    strings.Replace(document(agentDocument), `http://localhost/callback`, `http://evil.example/`, 1),
		"a list":             `[]`,
		"a page":             `<!doctype html>`,
		"nothing":            ``,
		"many brackets":      strings.Repeat("[", documentSize),
	} {
		p := newTestCluster(t, 1).nodes[0]
		p.documents.fetch = &site{text: text}
		_, err := p.Authorize(t.Context(), ann, request(agentDocument))
		wants(t, what, err, invalidClient)
	}
}

func TestClientDocument_refusesUnsafeAddresses(t *testing.T) {
	t.Parallel()
	web := &site{}
	p := newTestCluster(t, 1).nodes[0]
	p.documents.fetch = web
	for _, id := range []string{
		"https://127.0.0.1/c", "https://[::1]/c", "https://169.254.169.254/latest", "https://[::ffff:10.0.0.1]/c", "https://2130706433/c", "https://0x7f.1/c", "https://127.1/c", "https://0177.0.0.1/c", "https://1.2.3.0x7f/c",
		"https://localhost/c", "https://agent.example:8443/c", "https://agent.example:443/c", "https://agent.example:/c", "https://u@agent.example/c", "https://u:p@agent.example/c", "https://agent.example/c#f", "https://agent.example/c#",
		"https://agent.example", "https://agent.example/", "https://agent.example/a/../c", "https://agent.example/a/%2e%2E/c", "https://agent.example/./c", "https:///c", "https:agent.example/c", "https://agent.example/" + strings.Repeat("c", 600),
		"https://ägent.example/c", "https://agent.example\\@evil.example/c", "https://agent.example/\x00",
	} {
		_, err := p.Authorize(t.Context(), ann, request(id))
		wants(t, id[:min(len(id), 60)], err, invalidClient)
	}
	if web.asked != 0 {
		t.Errorf("%d of them were fetched", web.asked)
	}
	for _, id := range []string{"https://claude.ai/oauth/claude-code-client-metadata", "https://a.b-c.example/x.json?y=1", "https://vscode.dev/a"} {
		if !goodAddress(id) {
			t.Errorf("%s is refused", id)
		}
	}
}

func TestClientDocuments_aboveTheLimitsAreNeitherFetchedNorStored(t *testing.T) {
	t.Parallel()
	w := newTestCluster(t, 1)
	p := w.nodes[0]
	web := &site{err: errors.New("it cannot be fetched")}
	p.documents.fetch = web
	for i := range 3 * maxDocuments {
		p.Authorize(t.Context(), ann, request(fmt.Sprintf("https://agent.example/%d", i)))
	}
	if web.asked > fetchesAMinute {
		t.Errorf("%d fetches in a minute", web.asked)
	}
	// One account does not use up the limit of another.
	p.documents.get(t.Context(), "https://agent.example/bob", "bob")
	if web.asked != fetchesAMinute+1 {
		t.Errorf("%d fetches with another account", web.asked)
	}
	w.pass(time.Minute)
	p.Authorize(t.Context(), ann, request("https://agent.example/again"))
	if web.asked != fetchesAMinute+2 || len(p.documents.copies) > maxDocuments {
		t.Errorf("%d fetches, %d documents kept", web.asked, len(p.documents.copies))
	}
}

// Made-up URLs do not displace good documents.
func TestClientDocuments_madeUpURLsDoNotDisplaceGoodDocuments(t *testing.T) {
	t.Parallel()
	p := newTestCluster(t, 1).nodes[0]
	p.documents.recordFetch("https://good.example/c", &Client{ID: "https://good.example/c"}, nil)
	for i := range 2 * maxDocuments {
		p.documents.recordFetch(fmt.Sprintf("https://bad.example/%d", i), nil, errors.New("it cannot be fetched"))
	}
	p.documents.mu.Lock()
	defer p.documents.mu.Unlock()
	if k := p.documents.copies["https://good.example/c"]; k == nil || len(p.documents.copies) != maxDocuments {
		t.Errorf("%d documents, the good one: %v", len(p.documents.copies), k)
	}
}

// fetch is a Fetcher as a function.
type fetch func(ctx context.Context) ([]byte, error)

func (f fetch) Fetch(ctx context.Context, _ string) ([]byte, error) { return f(ctx) }

// Only failures of the document itself are remembered, because they refuse it to everybody for a
// while.
func TestClientDocuments_failureIsRememberedUnlessTheCallerLeft(t *testing.T) {
	t.Parallel()
	good := []byte(document(agentDocument))
	for what, c := range map[string]struct {
		waits      bool // for a fetch slot
		text       string
		remembered bool
	}{
		"who left while waiting":            {waits: true},
		"who left while it was fetched":     {},
		"a bad one for somebody who left":   {text: "[]", remembered: true},
		"a good one for somebody who left":  {text: string(good)},
		"a site that takes longer than 3 s": {text: "late", remembered: true},
	} {
		p := newTestCluster(t, 1).nodes[0]
		ctx, leave := context.WithCancel(t.Context())
		p.documents.fetch = fetch(func(limited context.Context) ([]byte, error) {
			switch c.text {
			// Stands in for the time limit ending, while the client is still there.
			case "late":
				return nil, fmt.Errorf("it cannot be fetched: %w", context.DeadlineExceeded)
			case "":
				leave()
				<-limited.Done()
				return nil, errors.New("it cannot be fetched")
			}
			leave()
			return []byte(c.text), nil
		})

		// No slot becomes free meanwhile.
		if c.waits {
			for range fetchesAtOnce {
				p.documents.slots <- struct{}{}
			}
			leave()
		}
		_, err := p.documents.get(ctx, agentDocument, "ann")
		leave()
		if left := !c.remembered && c.text == ""; errors.Is(err, context.Canceled) != left {
			t.Errorf("%s: it is told %v", what, err)
		}
		for c.waits && len(p.documents.slots) > 0 {
			<-p.documents.slots
		}

		p.documents.fetch = fetch(func(context.Context) ([]byte, error) { return good, nil })
		if _, err := p.documents.get(t.Context(), agentDocument, "ann"); (err != nil) != c.remembered {
			t.Errorf("%s: the next one is told %v", what, err)
		}
	}
}

// A cluster without Internet access knows some clients anyway.
func TestClientDocuments_someClientsAreBuiltIn(t *testing.T) {
	t.Parallel()
	p := newTestCluster(t, 1).nodes[0]
	const id = "https://claude.ai/oauth/claude-code-client-metadata"
	asked, err := p.Authorize(t.Context(), ann, request(id))
	if err != nil || asked.Client.Name != "Claude Code" || asked.Client.Kind != Document {
		t.Errorf("got %+v, %v", asked, err)
	}
	for id := range builtInDocuments {
		if c := builtIn(id); !goodAddress(id) || len(goodRedirects(c.Redirects)) != len(c.Redirects) {
			t.Errorf("%s would not be taken if it were fetched", id)
		}
	}
	p.d.Lookup = func(name string) (string, bool) { return "off", name == "SHOAL_OAUTH_CIMD" }
	_, err = p.Authorize(t.Context(), ann, request(id))
	wants(t, "where documents are off", err, invalidClient)
}

func TestClientDocument_isFetchedOnlyFromPublicAddresses(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"8.8.8.8": true, "1.1.1.1": true, "2606:4700::1111": true,
		"127.0.0.1": false, "10.1.2.3": false, "172.16.0.1": false, "172.32.0.1": true, "192.168.1.1": false, "169.254.169.254": false, "100.64.0.1": false, "0.0.0.0": false,
		"224.0.0.1": false, "255.255.255.255": false, "198.18.0.1": false, "::1": false, "::": false, "::ffff:10.0.0.1": false, "::ffff:8.8.8.8": true, "fe80::1": false, "fe80::1%eth0": false,
		"fc00::1": false, "fd00:ec2::254": false, "ff02::1": false, "64:ff9b::a00:1": false, "2002:a00:1::": false, "2001::1": false,
	} {
		if got := origin.Public(netip.MustParseAddr(text)); got != want {
			t.Errorf("%s: %t, want %t", text, got, want)
		}
	}
	if publicOnly("tcp", "8.8.8.8:443", nil) != nil || publicOnly("tcp", "8.8.8.8:80", nil) == nil || publicOnly("tcp", "[::1]:443", nil) == nil || publicOnly("tcp", "x", nil) == nil {
		t.Error("the address that is called is not checked rightly")
	}
	// With the whole client: a name that leads to this machine is refused.
	if _, err := newFetcher().Fetch(t.Context(), "https://localhost/c"); err == nil {
		t.Error("localhost was called")
	}
}
