package oauth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"syscall"
	"time"
)

// A client may be known by a document that says what registration says, at an
// https address that is the client's id. Fetching it is a request that
// somebody else makes this node send, so:
//
//	who         somebody who is signed in
//	where       https, port 443, a host with a name, a public address; the address
//	            that is checked is the one that is called
//	what        no redirect, 3 s, 16 KiB, JSON
//	how often   4 at a time, 30 a minute for an account at each node; a failure is remembered
//
// What was fetched is kept for a while, and longer while it cannot be fetched.
const (
	documentTime   = 3 * time.Second
	documentSize   = 16 << 10
	documentFresh  = time.Hour
	documentStale  = 7 * 24 * time.Hour // the last good one is used while fetching fails
	documentFailed = time.Minute
	documentsKept  = 1024
	fetchesAtOnce  = 4
	fetchesAMinute = 30
)

// Fetcher gets a document. It bounds time and size, and refuses addresses that
// are not public.
type Fetcher interface {
	Fetch(ctx context.Context, address string) ([]byte, error)
}

// documents keeps what was fetched.
type documents struct {
	fetch Fetcher
	now   func() time.Time
	slots chan struct{} // holds one token for each fetch under way

	mu     sync.Mutex // guards the fields below
	kept   map[string]*copyOf
	minute time.Time      // when the count began
	count  map[string]int // fetches since, by account
}

// copyOf is the last good copy of a document, and when fetching it failed.
type copyOf struct {
	client  *Client // nil: there never was a good one
	fetched time.Time
	failed  time.Time
	why     *Error
}

func newDocuments(f Fetcher, now func() time.Time) *documents {
	return &documents{fetch: f, now: now, slots: make(chan struct{}, fetchesAtOnce), kept: map[string]*copyOf{}}
}

// isDocument tells whether an id of a client is the address of its document.
func isDocument(id string) bool { return strings.HasPrefix(id, "https://") }

// goodAddress tells whether a document may be fetched from an address.
func goodAddress(id string) bool {
	// Nothing but a plain address of the web: each part more is a way to mean
	// another host than it seems.
	u, err := url.Parse(id)
	if err != nil || len(id) > maxRedirect || u.Scheme != "https" || u.User != nil || u.Fragment != "" || strings.Contains(id, "#") || u.Opaque != "" {
		return false
	}

	// A port or a name without a dot would reach into the network of this node.
	name := u.Hostname()
	if name == "" || u.Port() != "" || !strings.Contains(name, ".") || strings.HasSuffix(u.Host, ":") {
		return false
	}
	// A number is a number in any of its spellings: no top-level domain begins with a digit.
	if last := name[strings.LastIndexByte(name, '.')+1:]; last == "" || last[0] >= '0' && last[0] <= '9' {
		return false
	}
	if strings.Trim(strings.ToLower(name), "abcdefghijklmnopqrstuvwxyz0123456789.-") != "" || u.Path == "" || u.Path == "/" {
		return false
	}

	// An address has one spelling, so that nobody is known by two.
	for part := range strings.SplitSeq(strings.ToLower(u.EscapedPath()), "/") {
		if part = strings.ReplaceAll(part, "%2e", "."); part == "." || part == ".." {
			return false
		}
	}
	return true
}

// DocumentsTaken tells whether clients may be known by documents.
func (s *Server) DocumentsTaken() bool {
	text, _ := s.d.Lookup("SHOAL_OAUTH_CIMD")
	return !strings.EqualFold(strings.TrimSpace(text), "off")
}

// document finds a client by its document, for an account.
func (s *Server) document(ctx context.Context, id, account string) (*Client, error) {
	// Refused before anything is fetched.
	switch {
	case !s.DocumentsTaken():
		return nil, refused(invalidClient, "Clients are not known by documents here: the client has to register.")
	case !goodAddress(id):
		return nil, refused(invalidClient, "The client's id is no address that a document can be fetched from.")
	}

	c, err := s.documents.get(ctx, id, account)
	if err != nil {
		return nil, err
	}

	// The host of the document or those of its addresses: some clients have
	// the two at different places.
	u, err := url.Parse(id)
	if err != nil || !s.allowed(u.Hostname()) && !s.allowed(redirectHosts(c.Redirects)...) {
		return nil, refused(invalidClient, "This client is not let in here.")
	}
	return c, nil
}

// get is the client of a document: kept, fetched now for an account, or built in.
func (d *documents) get(ctx context.Context, id, account string) (*Client, error) {
	// The lock is held for the looking up alone: a fetch takes seconds.
	d.mu.Lock()
	k := d.kept[id]
	now := d.now()

	// A good one that is fresh, then a failure that is: neither is asked for again.
	switch {
	case k != nil && k.client != nil && now.Sub(k.fetched) < documentFresh:
		d.mu.Unlock()
		return k.client, nil
	case k != nil && now.Sub(k.failed) < documentFailed:
		d.mu.Unlock()
		return k.best(id, now)
	}

	// The address is the asker's choice: this node fetches so many a minute for each of them.
	if now.Sub(d.minute) >= time.Minute {
		d.minute, d.count = now, map[string]int{}
	}
	d.count[account]++
	over := d.count[account] > fetchesAMinute
	d.mu.Unlock()

	// An old copy, or the one that is built in, still lets people in.
	if over {
		return k.orElse(id, now, refused("temporarily_unavailable", "Too many clients' documents were asked for: try again in a minute."))
	}

	c, err := d.read(ctx, id)
	// Who left says nothing of the document: the next one asks for it anew.
	if gone := ctx.Err(); gone != nil && errors.Is(err, gone) {
		return nil, fmt.Errorf("fetch the document of a client: %w", gone)
	}
	return d.note(id, c, err)
}

// read fetches a document and reads it. It fails with the error of the context
// where that ends first.
func (d *documents) read(ctx context.Context, id string) (*Client, error) {
	// Four at a time, whoever asks: others wait, and may leave.
	select {
	case d.slots <- struct{}{}:
		defer func() { <-d.slots }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}

	// From here on: waiting for a place is not the fetch.
	limited, cancel := context.WithTimeout(ctx, documentTime)
	defer cancel()

	raw, err := d.fetch.Fetch(limited, id)
	switch {
	// The asker has left; that the time is over is the fault of the document's site.
	case err != nil && ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return nil, err
	}
	return readDocument(id, raw)
}

// note keeps the outcome of a fetch and says what follows from it.
func (d *documents) note(id string, c *Client, err error) (*Client, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.now()

	k := d.kept[id]
	if k == nil {
		if len(d.kept) >= documentsKept {
			delete(d.kept, d.least())
		}
		k = &copyOf{}
	}

	// A new value, not a changed one: the former is read without the lock.
	next := *k
	if err == nil {
		next = copyOf{client: c, fetched: now}
	} else {
		// The good copy stays with the failure: it is used until it is too old.
		next.failed, next.why = now, refused(invalidClient, "The client's document cannot be used: "+err.Error()+".")
	}
	d.kept[id] = &next
	return next.best(id, now)
}

// least is the document whose loss matters least: one that never was good, of these the
// oldest. Whoever makes up addresses drives out no good copy.
func (d *documents) least() (id string) {
	var least *copyOf
	for at, k := range d.kept {
		bad, worse := k.client == nil, least == nil || k.client == nil && least.client != nil
		if worse || bad == (least.client == nil) && k.fetched.Compare(least.fetched)+k.failed.Compare(least.failed) < 0 {
			id, least = at, k
		}
	}
	return id
}

// best is the copy that may be used now.
func (k *copyOf) best(id string, now time.Time) (*Client, error) { return k.orElse(id, now, k.why) }

func (k *copyOf) orElse(id string, now time.Time, why *Error) (*Client, error) {
	// A copy that was good goes before what is built in, which may be older.
	if k != nil && k.client != nil && now.Sub(k.fetched) < documentStale {
		return k.client, nil
	}
	if c := builtIn(id); c != nil {
		return c, nil
	}
	return nil, why
}

// readDocument checks a document. What it lacks of a registration it has to have
// of honesty: its own address in it.
func readDocument(id string, raw []byte) (*Client, error) {
	// The secret is read to be refused: a client that has one here has given it to everybody.
	var doc struct {
		ClientID string `json:"client_id"`
		Secret   any    `json:"client_secret"`
		Registration
	}
	if err := json.Unmarshal(raw, &doc); err != nil {
		return nil, errors.New("it is no JSON object with the members that a client has")
	}

	switch {
	// Who copies the document of another to their own address cannot be that one.
	case doc.ClientID != id:
		return nil, errors.New("its client_id is not its address")
	case doc.Secret != nil:
		return nil, errors.New("it has a secret, which everybody could read")
	case doc.AuthMethod != "" && doc.AuthMethod != "none":
		return nil, errors.New("its token_endpoint_auth_method is not none")
	}

	kept := goodRedirects(doc.RedirectURIs)
	if len(kept) == 0 {
		return nil, errors.New("it has no redirect_uris that can be used")
	}

	// The name of the site is at least true.
	name := cleanName(doc.Name)
	if name == "" {
		name = redirectHost(id)
	}
	return &Client{ID: id, Name: name, Redirects: kept, Kind: Document}, nil
}

// builtInDocuments are those of clients that many people use, as they were
// published in November 2026: for clusters that reach no other site.
var builtInDocuments = map[string]Client{
	"https://claude.ai/oauth/claude-code-client-metadata": {
		Name: "Claude Code", Redirects: []string{"http://localhost/callback", "http://127.0.0.1/callback"},
	},
	"https://claude.ai/oauth/mcp-oauth-client-metadata": {
		Name: "Claude", Redirects: []string{"https://claude.ai/api/mcp/auth_callback", "https://claude.com/api/mcp/auth_callback"},
	},
}

func builtIn(id string) *Client {
	c, ok := builtInDocuments[id]
	if !ok {
		return nil
	}
	c.ID, c.Kind = id, Document
	return &c
}

// web fetches documents from the public internet.
type web struct{ client *http.Client }

func newWeb() *web {
	dialer := &net.Dialer{Timeout: documentTime, Control: publicOnly}
	return &web{&http.Client{
		Timeout: documentTime,
		Transport: &http.Transport{
			Proxy: nil, DialContext: dialer.DialContext, TLSHandshakeTimeout: documentTime,
			DisableKeepAlives: true, MaxResponseHeaderBytes: documentSize, ForceAttemptHTTP2: true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return errors.New("it redirects elsewhere") },
	}}
}

// Fetch gets a document.
func (w *web) Fetch(ctx context.Context, address string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, errors.New("its address cannot be called")
	}
	req.Header.Set("Accept", "application/json")

	resp, err := w.client.Do(req)
	if err != nil {
		// What the network says could tell of other hosts: it is not passed on.
		return nil, errors.New("it cannot be fetched")
	}
	defer resp.Body.Close()

	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("its address answers %d", resp.StatusCode)
	}

	raw, err := io.ReadAll(io.LimitReader(resp.Body, documentSize+1))
	switch {
	case err != nil:
		return nil, errors.New("it cannot be fetched whole")
	case len(raw) > documentSize:
		return nil, fmt.Errorf("it is larger than %d bytes", documentSize)
	}
	return raw, nil
}

// publicOnly is asked with the very address that is about to be called, after
// every name was looked up.
func publicOnly(_, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil || at.Port() != 443 || !public(at.Addr()) {
		return errors.New("not a public address")
	}
	return nil
}

// notPublic are the networks that are no part of the internet, or carry
// addresses of another kind inside.
var notPublic = func() (all []netip.Prefix) {
	for _, text := range []string{
		"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24",
		"192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
		"::/96", "64:ff9b::/96", "64:ff9b:1::/48", "100::/64", "2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20", "5f00::/16", "fc00::/7", "fe80::/10", "fec0::/10", "ff00::/8",
	} {
		all = append(all, netip.MustParsePrefix(text))
	}
	return all
}()

// public tells whether an address is one of the internet.
func public(a netip.Addr) bool {
	// What is inside counts, and a zone names an interface of this machine.
	a = a.Unmap()
	if !a.IsValid() || a.Zone() != "" {
		return false
	}
	for _, p := range notPublic {
		if p.Contains(a) {
			return false
		}
	}
	return true
}
