package oauth

import (
	"net/url"
	"strings"
	"testing"
)

// Only texts that were sealed here open.
func FuzzTokens_onlySealedTextsOpen(f *testing.F) {
	w := newTestCluster(f, 1)
	p := w.nodes[0]
	client := p.registered()
	code := p.code(ann, client)
	got := p.enter(client)
	entries := w.entries()
	for _, text := range []string{"", got.Access, got.Refresh, code, client, "shoal_at_", "shoal_rt_AQ", "shoal_at_" + got.Refresh[9:]} {
		f.Add(text)
	}
	mine := map[string]bool{got.Access: true, got.Refresh: true, code: true}
	f.Fuzz(func(t *testing.T, text string) {
		if mine[text] {
			return
		}
		if _, err := p.Authenticate(t.Context(), text); err == nil {
			t.Errorf("%q lets in", text)
		}
		if _, err := p.Exchange(t.Context(), "", refreshForm(text, client)); err == nil {
			t.Errorf("%q refreshes", text)
		}
		if _, err := p.Exchange(t.Context(), "", codeForm(text, client)); err == nil {
			t.Errorf("%q is a code", text)
		}
		if _, err := p.Decide(t.Context(), ann, text, true); err == nil {
			t.Errorf("%q is a consent", text)
		}
		if err := p.Revoke(t.Context(), text); err != nil {
			t.Errorf("%q: %v", text, err)
		}
		if c, err := p.findClient(t.Context(), text, "ann"); err == nil && text != client && !strings.HasPrefix(text, "https://") {
			t.Errorf("%q is %+v", text, c)
		}
		if w.entries() != entries {
			t.Fatal("it was written to the log")
		}
	})
}

// A person is only sent to a redirect URL that the client has registered.
func FuzzRedirect_leadsOnlyToRegisteredURLs(f *testing.F) {
	for _, pair := range [][2]string{{"http://localhost/cb", "http://localhost:1/cb"}, {"https://a.b/", "https://a.b/"}, {"http://[::1]:3/", "http://[::1]/"}, {"x:y", "x:y"}, {"http://localhost/cb", "http://localhost:1@evil/cb"}} {
		f.Add(pair[0], pair[1])
	}
	f.Fuzz(func(t *testing.T, named, asked string) {
		if !matchRedirect([]string{named}, asked) || named == asked {
			return
		}
		a, errA := url.Parse(named)
		b, errB := url.Parse(asked)
		if errA != nil || errB != nil || a.Hostname() != b.Hostname() || a.EscapedPath() != b.EscapedPath() || a.RawQuery != b.RawQuery || b.Scheme != "http" || b.User != nil {
			t.Errorf("who named %q is sent to %q", named, asked)
		}
		if _, ok := withoutLoopbackPort(asked); !ok {
			t.Errorf("%q is no loopback address", asked)
		}
	})
}

// Whatever a client registers, the result is safe on a page and in a header.
func FuzzRegister_resultIsSafeOnAPage(f *testing.F) {
	w := newTestCluster(f, 1)
	p := w.nodes[0]
	entries := w.entries()
	f.Add([]byte(`{"client_name":"x","redirect_uris":["https://x.y/z"]}`))
	f.Add([]byte(`{"redirect_uris":["cursor://a/b","http://127.0.0.1:1/"],"scope":"a b"}`))
	f.Add([]byte(document(agentDocument)))
	f.Fuzz(func(t *testing.T, body []byte) {
		got, err := p.Register(t.Context(), body)
		if w.entries() != entries {
			t.Fatal("it was written to the log")
		}
		c, docErr := readDocument(agentDocument, body)
		if docErr == nil && (len(c.Redirects) == 0 || !strings.Contains(string(body), "agent.example")) {
			t.Errorf("a document of %+v", c)
		}
		if err != nil {
			return
		}
		if got.Name == "" || len(got.Name) > maxRedirect || strings.ContainsAny(got.Name, "\r\n\t\x00") {
			t.Errorf("a client is called %q", got.Name)
		}
		for _, uri := range got.RedirectURIs {
			if !goodRedirect(uri) || strings.ContainsAny(formActionSource(uri), " ;,'\"") {
				t.Errorf("it may be sent to %q, which a policy calls %q", uri, formActionSource(uri))
			}
		}
		if found, err := p.findClient(t.Context(), got.ClientID, "ann"); err != nil || found.Name != got.Name {
			t.Errorf("its id is of %+v, %v", found, err)
		}
	})
}

// A whole request of a client is refused on a page, refused by a redirect to the client, or shown
// for consent.
func FuzzAuthorize_neverRedirectsElsewhere(f *testing.F) {
	w := newTestCluster(f, 1)
	p := w.nodes[0]
	client := p.registered()
	entries := w.entries()
	f.Add(request(client).Encode())
	f.Add("client_id=x&redirect_uri=javascript:alert(1)")
	f.Fuzz(func(t *testing.T, query string) {
		q, err := url.ParseQuery(query)
		if err != nil {
			return
		}
		q.Set("client_id", client)
		asked, err := p.Authorize(t.Context(), ann, q)
		if w.entries() != entries {
			t.Fatal("it was written to the log")
		}
		to := ""
		if r, ok := err.(*Refusal); ok {
			to = r.To
		} else if err != nil {
			return
		} else if to, err = p.Decide(t.Context(), ann, asked.Form, true); err != nil {
			t.Fatal(err)
		}
		u, err := url.Parse(to)
		if err != nil || u.Scheme != "http" || u.Hostname() != "localhost" || u.Path != "/callback" || u.User != nil {
			t.Errorf("%q sends the reader to %q", query, to)
		}
	})
}
