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

	"github.com/shoalsearch/shoal/cluster/origin"
)

// A client may be known by a document with its registration, at an https URL that is the client's
// id. Strangers choose which URL this node fetches, so fetching is limited:
//
//	who         only for signed-in people
//	where       https, port 443, a host name, a public address; the address
//	            that is checked is the one that is called
//	what        no redirect, 3 s, 16 KiB, JSON
//	how often   4 at a time, 30 a minute for an account at each node; a failure is remembered
//
// A good copy is used for a while, and longer while fetching fails.
const (
	documentTime   = 3 * time.Second
	documentSize   = 16 << 10
	documentFresh  = time.Hour
	documentStale  = 7 * 24 * time.Hour // the last good copy is used for so long while fetching fails
	documentFailed = time.Minute
	maxDocuments   = 1024
	fetchesAtOnce  = 4
	fetchesAMinute = 30
)

// Fetcher fetches documents. It must limit time and size, and refuse addresses that are not public.
type Fetcher interface {
	Fetch(ctx context.Context, address string) ([]byte, error)
}

// documents caches fetched documents.
type documents struct {
	fetch Fetcher
	now   func() time.Time
	slots chan struct{} // holds one token per running fetch

	mu     sync.Mutex // guards the fields below
	copies map[string]*documentCopy
	minute time.Time      // when count began
	count  map[string]int // fetches since then, by account
}

// copyOf is the last good copy of a document, and the last failure to fetch it.
type documentCopy struct {
	client  *Client // nil: there was never a good copy
	fetched time.Time
	failed  time.Time
	why     *Error
}

func newDocuments(f Fetcher, now func() time.Time) *documents {
	return &documents{fetch: f, now: now, slots: make(chan struct{}, fetchesAtOnce), copies: map[string]*documentCopy{}}
}

// isDocument reports whether a client id is a document's URL.
func isDocument(id string) bool { return strings.HasPrefix(id, "https://") }

// goodAddress reports whether a document may be fetched from a URL.
func goodAddress(id string) bool {
	// Accept only plain https URLs: other parts can disguise the host.
	u, err := url.Parse(id)
	if err != nil || len(id) > maxRedirect || u.Scheme != "https" || u.User != nil || u.Fragment != "" || strings.Contains(id, "#") || u.Opaque != "" {
		return false
	}

	// A port, or a name without a dot, could reach into the local network.
	name := u.Hostname()
	if name == "" || u.Port() != "" || !strings.Contains(name, ".") || strings.HasSuffix(u.Host, ":") {
		return false
	}
	// A top-level domain never begins with a digit, so this is an IP address in some notation.
	if last := name[strings.LastIndexByte(name, '.')+1:]; last == "" || last[0] >= '0' && last[0] <= '9' {
		return false
	}
	if strings.Trim(strings.ToLower(name), "abcdefghijklmnopqrstuvwxyz0123456789.-") != "" || u.Path == "" || u.Path == "/" {
		return false
	}

	// Each document must have only one URL.
	for part := range strings.SplitSeq(strings.ToLower(u.EscapedPath()), "/") {
		if part = strings.ReplaceAll(part, "%2e", "."); part == "." || part == ".." {
			return false
		}
	}
	return true
}

// DocumentsTaken reports whether clients may be known by documents.
func (s *Server) DocumentsTaken() bool {
	text, _ := s.d.Lookup("SHOAL_OAUTH_CIMD")
	return !strings.EqualFold(strings.TrimSpace(text), "off")
}

// clientByDocument returns a client by its document, which may be fetched for an account.
func (s *Server) clientByDocument(ctx context.Context, id, account string) (*Client, error) {
	switch {
	case !s.DocumentsTaken():
		return nil, newError(invalidClient, "Clients are not known by documents here: the client has to register.")
	case !goodAddress(id):
		return nil, newError(invalidClient, "The client's id is no address that a document can be fetched from.")
	}

	c, err := s.documents.get(ctx, id, account)
	if err != nil {
		return nil, err
	}

	// The host of the document, or all hosts of its redirect URLs, must be allowed: some clients
	// use different hosts.
	u, err := url.Parse(id)
	if err != nil || !s.hostsAllowed(u.Hostname()) && !s.hostsAllowed(redirectHosts(c.Redirects)...) {
		return nil, newError(invalidClient, "This client is not let in here.")
	}
	return c, nil
}

// get returns the client of a document: from the cache, fetched for an account, or built in.
func (d *documents) get(ctx context.Context, id, account string) (*Client, error) {
	// Hold the lock only for the look-up: a fetch takes seconds.
	d.mu.Lock()
	k := d.copies[id]
	now := d.now()

	// A fresh copy, or a recent failure, needs no fetch.
	switch {
	case k != nil && k.client != nil && now.Sub(k.fetched) < documentFresh:
		d.mu.Unlock()
		return k.client, nil
	case k != nil && now.Sub(k.failed) < documentFailed:
		d.mu.Unlock()
		return k.current(id, now)
	}

	// The person chooses the URL, so limit the fetches per account.
	if now.Sub(d.minute) >= time.Minute {
		d.minute, d.count = now, map[string]int{}
	}
	d.count[account]++
	over := d.count[account] > fetchesAMinute
	d.mu.Unlock()

	// An old copy, or a built-in one, can still be used.
	if over {
		return k.usableClient(id, now, newError("temporarily_unavailable", "Too many clients' documents were asked for: try again in a minute."))
	}

	c, err := d.fetchDocument(ctx, id)
	// If the caller has gone, do not record a failure: the next caller tries again.
	if callerGone := ctx.Err(); callerGone != nil && errors.Is(err, callerGone) {
		return nil, fmt.Errorf("fetch the document of a client: %w", callerGone)
	}
	return d.recordFetch(id, c, err)
}

// fetchDocument fetches and parses a document. If ctx ends, it returns the error of ctx.
func (d *documents) fetchDocument(ctx context.Context, id string) (*Client, error) {
	// Wait for one of the four slots.
	select {
	case d.slots <- struct{}{}:
		defer func() { <-d.slots }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}

	// The time limit excludes the wait for a slot.
	limited, cancel := context.WithTimeout(ctx, documentTime)
	defer cancel()

	raw, err := d.fetch.Fetch(limited, id)
	switch {
	// If only the limit ended, the document's site is at fault.
	case err != nil && ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return nil, err
	}
	return readDocument(id, raw)
}

// recordFetch stores the result of fetching a client's document. It returns the client to use now:
// after a failure that may still be the earlier copy.
func (d *documents) recordFetch(id string, c *Client, err error) (*Client, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.now()

	k := d.copies[id]
	if k == nil {
		if len(d.copies) >= maxDocuments {
			delete(d.copies, d.worstDocument())
		}
		k = &documentCopy{}
	}

	// Store a new value: the old one is read without the lock.
	next := *k
	if err == nil {
		next = documentCopy{client: c, fetched: now}
	} else {
		// Keep the good copy with the failure, until it is too old.
		next.failed, next.why = now, newError(invalidClient, "The client's document cannot be used: "+err.Error()+".")
	}
	d.copies[id] = &next
	return next.current(id, now)
}

// worstDocument returns the document to drop first: one that was never good, then the oldest. So made-up
// URLs do not displace good copies.
func (d *documents) worstDocument() (id string) {
	var worst *documentCopy
	for at, k := range d.copies {
		neverGood, worse := k.client == nil, worst == nil || k.client == nil && worst.client != nil
		if worse || neverGood == (worst.client == nil) && k.fetched.Compare(worst.fetched)+k.failed.Compare(worst.failed) < 0 {
			id, worst = at, k
		}
	}
	return id
}

// current returns the copy to use now, or the last failure.
func (k *documentCopy) current(id string, now time.Time) (*Client, error) {
	return k.usableClient(id, now, k.why)
}

// usableClient returns the stored copy of the document if it is fresh enough, else the built-in client. If
// there is neither, it returns the error why.
func (k *documentCopy) usableClient(id string, now time.Time, why *Error) (*Client, error) {
	// Prefer a copy that was good to the built-in one, which may be older.
	if k != nil && k.client != nil && now.Sub(k.fetched) < documentStale {
		return k.client, nil
	}
	if c := builtIn(id); c != nil {
		return c, nil
	}
	return nil, why
}

// readDocument checks and parses a document. It must contain its own URL.
func readDocument(id string, raw []byte) (*Client, error) {
	// Read the secret only to reject it: anybody can read the document.
	var doc struct {
		ClientID string `json:"client_id"`
		Secret   any    `json:"client_secret"`
		Registration
	}
	if err := json.Unmarshal(raw, &doc); err != nil {
		return nil, errors.New("it is no JSON object with the members that a client has")
	}

	switch {
	// Otherwise a copy of the document elsewhere could pose as the client.
	case doc.ClientID != id:
		return nil, errors.New("its client_id is not its address")
	case doc.Secret != nil:
		return nil, errors.New("it has a secret, which everybody could read")
	case doc.AuthMethod != "" && doc.AuthMethod != "none":
		return nil, errors.New("its token_endpoint_auth_method is not none")
	}

	redirects := goodRedirects(doc.RedirectURIs)
	if len(redirects) == 0 {
		return nil, errors.New("it has no redirect_uris that can be used")
	}

	// Without a name, use the site's host, which is at least true.
	name := cleanName(doc.Name)
	if name == "" {
		name = redirectHost(id)
	}
	return &Client{ID: id, Name: name, Redirects: redirects, Kind: Document}, nil
}

// builtInDocuments are documents of popular clients, as published in November 2026, for clusters
// without Internet access.
var builtInDocuments = map[string]Client{
	"https://claude.ai/oauth/claude-code-client-metadata": {
		Name: "Claude Code", Redirects: []string{"http://localhost/callback", "http://127.0.0.1/callback"},
	},
	"https://claude.ai/oauth/mcp-oauth-client-metadata": {
		Name: "Claude", Redirects: []string{"https://claude.ai/api/mcp/auth_callback", "https://claude.com/api/mcp/auth_callback"},
	},
}

// builtIn returns the built-in document with a URL, or nil.
func builtIn(id string) *Client {
	c, ok := builtInDocuments[id]
	if !ok {
		return nil
	}
	c.ID, c.Kind = id, Document
	return &c
}

// fetcher fetches documents from the public Internet.
type fetcher struct{ client *http.Client }

func newFetcher() *fetcher {
	dialer := &net.Dialer{Timeout: documentTime, Control: publicOnly}
	return &fetcher{&http.Client{
		Timeout: documentTime,
		Transport: &http.Transport{
			Proxy: nil, DialContext: dialer.DialContext, TLSHandshakeTimeout: documentTime,
			DisableKeepAlives: true, MaxResponseHeaderBytes: documentSize, ForceAttemptHTTP2: true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return errors.New("it redirects elsewhere") },
	}}
}

// Fetch implements Fetcher.
func (w *fetcher) Fetch(ctx context.Context, address string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, errors.New("its address cannot be called")
	}
	req.Header.Set("Accept", "application/json")

	resp, err := w.client.Do(req)
	if err != nil {
		// Hide the network error: it could reveal other hosts.
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

// publicOnly is called with the address to connect to, after name resolution.
func publicOnly(_, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil || at.Port() != 443 || !origin.Public(at.Addr()) {
		return errors.New("not a public address")
	}
	return nil
}
