package host

import (
	"bytes"
	"cmp"
	"compress/flate"
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/shoalsearch/shoal/cluster/config"
	"github.com/shoalsearch/shoal/shard/git/run"
)

const (
	maxAnswer     = 64 << 20         // bytes of one answer
	maxAttempts   = 5                // attempts of one call
	firstWait     = time.Second      // before the second attempt; doubled for each further one
	stallTimeout  = time.Minute      // for the next piece of an answer
	pieceSize     = 4 << 10          // bytes of a piece
	headerTimeout = 30 * time.Second // until the headers arrive
)

// Tools are what all hosts need to make calls.
type Tools struct {
	Secret    Secret
	Forget    func()            // drops cached secrets after one was refused; nil if none are cached
	Transport http.RoundTripper // uses the proxy and certificates of the process
	Budgets   *Budgets
	Now       func() time.Time
	// Wait returns after d, or with the cause of ctx if that ends first.
	Wait      func(ctx context.Context, d time.Duration) error
	LookupEnv func(string) (string, bool)
	// Apps returns the apps of the configuration; nil: none. Installations has their tokens.
	Apps          func() []config.App
	Installations *Installations
	Answers       *Answers // cache that survives restarts; nil: no cache
}

// Refused drops cached secrets. Callers use it after a secret was refused.
func (t *Tools) Refused() {
	if t.Forget != nil {
		t.Forget()
	}
}

// idlePerHost is how many idle connections are kept per host.
const idlePerHost = 8

// NewTools returns the tools of a process. They use the proxy and certificates of its environment,
// as git does.
func NewTools(secret Secret, lookupEnv func(string) (string, bool), apps func() []config.App, now func() time.Time) Tools {
	// Go's defaults, with git's choice of proxy.
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = idlePerHost
	transport.Proxy = func(r *http.Request) (*url.URL, error) { return run.Proxy(r.URL) }
	transport.OnProxyConnectResponse = proxyAnswered

	return Tools{
		Secret:        secret,
		Transport:     transport,
		Budgets:       NewBudgets(now),
		Now:           now,
		Wait:          Pause,
		LookupEnv:     lookupEnv,
		Apps:          apps,
		Installations: NewInstallations(),
	}
}

// proxyAnswered returns the error of a proxy that refuses a call.
func proxyAnswered(_ context.Context, proxy *url.URL, _ *http.Request, res *http.Response) error {
	switch {
	case res.StatusCode == http.StatusOK:
		return nil
	case res.StatusCode == http.StatusProxyAuthRequired:
		return proxyRefused(proxy.Host)
	}
	return refusal(Unreachable, res.StatusCode, "the proxy %s does not lead there: it answered with status %d", proxy.Host, res.StatusCode)
}

// proxyRefused returns the refusal of a proxy that wants another password.
func proxyRefused(name string) *Refusal {
	return refusal(Unreachable, http.StatusProxyAuthRequired,
		"the proxy %s asks for a user and a password, or refuses those of HTTP_PROXY or HTTPS_PROXY (http://user:password@proxy)", name)
}

// Pause waits by the real clock; see [Tools].
func Pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// client calls the API of one host with one credential. It waits for limits, retries temporary
// errors, and never accepts a page for people as an answer. It is safe for concurrent use.
type client struct {
	tools   Tools
	product string   // display name
	name    string   // name of the connection, for messages
	base    *url.URL // URL of the API, without a trailing slash
	header  http.Header
	key     string // identifies the credential; "" if nothing needs it
	budget  *budget
	timeout time.Duration // until the headers arrive; 0: 30 s
	keep    float64       // share of the limit that is left to others

	// authorize returns the Authorization header, or "". It is called for each request, so that a
	// changed token counts.
	authorize func(ctx context.Context) (string, error)

	// explain interprets an answer that is not 2xx. If it is nil or returns nil, the client does.
	explain func(res *http.Response, body []byte) *Refusal

	// signInRefusal returns the refusal for a sign-in page. Some hosts answer a bad token with one:
	// with status 203, or a redirect to another host. Nil for other hosts.
	signInRefusal func() *Refusal

	// expires returns when the credential ends; nil if the host does not tell.
	expires func(h http.Header) time.Time

	// scopes returns what the credential may do; nil if the host does not tell.
	scopes func(h http.Header) []string

	// limits returns the limit in an answer; nil if the host announces none.
	limits func(h http.Header) (limit, remaining int, reset time.Time)

	// memory identifies the credential among cached answers. "" disables the cache, for credentials
	// that change every hour, such as an app's, because the versions of their answers change too.
	cacheKey string

	ahead atomic.Int64 // nanoseconds by which the host's clock is ahead of ours
}

// Allowance returns the state of the credential, as far as this node knows.
func (c *client) Allowance() Allowance { return c.budget.snapshot() }

// at returns a URL of the API with escaped path parts.
func (c *client) at(query url.Values, parts ...string) *url.URL {
	u := *c.base
	for _, p := range parts {
		u.RawPath = u.EscapedPath() + "/" + url.PathEscape(p)
		u.Path += "/" + p
	}
	u.RawQuery = query.Encode()
	return &u
}

// get requests JSON and decodes it. It returns the headers.
func (c *client) get(ctx context.Context, u *url.URL, into any) (http.Header, error) {
	return c.callWithRetry(ctx, apiCall{at: u}, into)
}

// apiCall is a request to the API.
type apiCall struct {
	at      *url.URL
	version string // of the cached answer; "": none
	method  string // "": GET
	body    []byte // JSON; nil: none
	plain   bool   // without compression
	sent    string // credential of the last attempt
}

// callWithRetry makes a call, and decodes its answer into into. After a temporary error it waits and
// repeats the call, up to maxAttempts.
func (c *client) callWithRetry(ctx context.Context, call apiCall, into any) (http.Header, error) {
	wait := firstWait
	renewed := false
	for try := 1; ; try++ {
		head, err := c.callOnce(ctx, &call, into)

		// If the refused credential has just been replaced, try the new one at once.
		if RefusesToken(err) && !renewed && c.credentialChanged(ctx, call.sent) {
			renewed = true
			continue
		}

		if err == nil || try == maxAttempts || ctx.Err() != nil || !isTemporary(err) {
			return head, err
		}

		// Some proxies cut compressed answers short.
		call.plain = call.plain || endsEarly(err)

		// Wait for a random time, so that calls that failed together spread. If the host has said
		// when to come back, use that time.
		delay := time.Duration(rand.Int64N(int64(wait)))
		if r := (*Refusal)(nil); errors.As(err, &r) && !r.Until.IsZero() {
			delay = r.Until.Sub(c.tools.Now())
		}
		if delay > maxWait {
			return nil, err
		}
		if err := c.tools.Wait(ctx, max(delay, 0)); err != nil {
			return nil, err
		}
		wait *= 2
	}
}

// credentialChanged reports whether the credential differs from the refused one.
func (c *client) credentialChanged(ctx context.Context, refused string) bool {
	c.tools.Refused()
	value, err := c.authorize(ctx)
	return err == nil && value != refused
}

// endsEarly reports whether an answer was cut short, or could not be decompressed.
func endsEarly(err error) bool {
	return errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, gzip.ErrHeader) || errors.Is(err, gzip.ErrChecksum) || errors.As(err, new(flate.CorruptInputError))
}

// isTemporary reports whether an error may go away at the next attempt.
func isTemporary(err error) bool {
	r := (*Refusal)(nil)
	if !errors.As(err, &r) {
		return false
	}
	return r.Code == RateLimited || r.Code == Unreachable && !isPermanent(r.cause)
}

// isPermanent reports whether a network error stays until somebody acts, such as a bad certificate.
func isPermanent(err error) bool {
	bad := (*tls.CertificateVerificationError)(nil)
	return errors.As(err, &bad) || errors.Is(err, http.ErrSchemeMismatch)
}

// callOnce makes one call to the code host's API, without retries, and decodes its answer into into.
func (c *client) callOnce(ctx context.Context, call *apiCall, into any) (http.Header, error) {
	leave, err := c.budget.waitForCall(ctx, c.tools.Wait)
	if err != nil {
		return nil, err
	}
	defer leave()

	// The call ends after a silence, however long the whole answer takes.
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silence := time.AfterFunc(cmp.Or(c.timeout, headerTimeout), func() { cancel(errors.New("it does not answer in time")) })
	defer silence.Stop()

	req, err := c.newRequest(ctx, call)
	if err != nil {
		return nil, err
	}
	if call.version != "" {
		req.Header.Set("If-None-Match", call.version)
	}
	if call.plain {
		req.Header.Set("Accept-Encoding", "identity")
	}

	res, err := c.httpClient().Do(req)
	if err != nil {
		return nil, c.unreachable(ctx, err)
	}
	defer res.Body.Close()
	silence.Reset(stallTimeout)
	c.recordHeaders(res.Header)

	body := &io.LimitedReader{R: &watchedBody{Reader: res.Body, silence: silence}, N: maxAnswer + 1}
	if res.StatusCode == http.StatusNotModified && call.version != "" {
		return res.Header, errSame
	}
	if res.StatusCode/100 != 2 {
		return res.Header, c.refusalOf(res, body)
	}

	// Some hosts answer and still ask for a pause.
	if until := c.retryAfter(res.Header); !until.IsZero() {
		c.budget.pauseUntil(until)
	}
	return res.Header, c.decode(ctx, res, body, into)
}

// maxAhead is the largest believable difference between the clocks of a host and this node.
const maxAhead = 24 * time.Hour

// recordHeaders records what the headers say: the host's clock, and the limits, end and scopes of the
// credential.
func (c *client) recordHeaders(head http.Header) {
	// Set the clock first, because the other times depend on it.
	if date, err := http.ParseTime(head.Get("Date")); err == nil {
		if ahead := date.Sub(c.tools.Now()); ahead.Abs() < maxAhead {
			c.ahead.Store(int64(ahead))
		}
	}

	if c.limits != nil {
		limit, remaining, reset := c.limits(head)
		c.budget.recordLimit(limit, remaining, c.toOwnClock(reset), c.keep)
	}

	if c.expires != nil {
		if at := c.expires(head); !at.IsZero() {
			c.budget.setEnd(c.toOwnClock(at))
		}
	}

	if c.scopes != nil {
		if list := c.scopes(head); len(list) > 0 {
			c.budget.setScopes(list)
		}
	}
}

// toOwnClock converts a time of the host to this node's clock.
func (c *client) toOwnClock(at time.Time) time.Time { return at.Add(-time.Duration(c.ahead.Load())) }

// hostNow returns the present time of the host's clock.
func (c *client) hostNow() time.Time { return c.tools.Now().Add(time.Duration(c.ahead.Load())) }

// newRequest returns the HTTP request of a call, with the present credential.
func (c *client) newRequest(ctx context.Context, call *apiCall) (*http.Request, error) {
	u := call.at

	// A URL from the host, such as that of the next page, must not take the token to another host.
	if u.Scheme != c.base.Scheme || !strings.EqualFold(u.Host, c.base.Host) {
		return nil, refusal(InvalidResponse, 0, "%s leads to another host, %s, which is not asked", c.product, u.Host)
	}

	req, err := http.NewRequestWithContext(ctx, cmp.Or(call.method, http.MethodGet), u.String(), bytes.NewReader(call.body))
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w", c.product, err)
	}

	req.Header = c.header.Clone()
	if req.Header == nil {
		req.Header = http.Header{}
	}
	req.Header.Set("User-Agent", "shoal")
	if call.body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if req.Header.Get("Accept") == "" {
		req.Header.Set("Accept", "application/json")
	}

	value, err := c.authorize(ctx)
	if err != nil {
		return nil, err
	}
	call.sent = value
	if value != "" {
		req.Header.Set("Authorization", value)
	}
	return req, nil
}

// httpClient returns a client that follows redirects within the same host only, so that the token
// never goes elsewhere.
func (c *client) httpClient() *http.Client {
	return &http.Client{Transport: c.tools.Transport, CheckRedirect: func(req *http.Request, via []*http.Request) error {
		first := via[0].URL
		if len(via) > 5 {
			return refusal(InvalidResponse, 0, "%s redirects in a circle", c.product)
		}

		// If the host signs people in elsewhere, a redirect there means that the token is bad.
		if c.signInRefusal != nil && !strings.EqualFold(req.URL.Host, first.Host) {
			return c.signInRefusal()
		}
		if !strings.EqualFold(req.URL.Host, first.Host) || first.Scheme == "https" && req.URL.Scheme != "https" {
			return refusal(InvalidResponse, 0, "%s redirects to %s://%s; set the url of connection %s to it if that is right", c.product, req.URL.Scheme, req.URL.Host, c.name)
		}
		return nil
	}}
}

// unreachable returns the refusal for a network error, without the URL, which may contain secrets.
func (c *client) unreachable(ctx context.Context, err error) error {
	r := (*Refusal)(nil)
	if errors.As(err, &r) {
		return r
	}

	// If the job was cancelled, return that. A time limit of our own is the host's fault.
	if cause := context.Cause(ctx); cause != nil {
		err = cause
		if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
			return err
		}
	}

	if u := (*url.Error)(nil); errors.As(err, &u) {
		err = u.Err
	}

	r = refusal(Unreachable, 0, "%s at %s cannot be reached: %s", c.product, c.base.Host, c.networkHint(err))
	r.cause = err
	return r
}

// networkHint returns a text about a network or certificate error that says how to solve it.
func (c *client) networkHint(err error) string {
	// Check expiry first: an expired certificate often has an unknown authority, too.
	unknown, invalid, name := x509.UnknownAuthorityError{}, x509.CertificateInvalidError{}, x509.HostnameError{}
	day := func(t time.Time) string { return t.UTC().Format("2 January 2006 15:04 MST") }
	switch {
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return fmt.Sprintf("its certificate is good from %s to %s, and this node's clock says %s; renew the certificate there, or set the clock of this node",
			day(invalid.Cert.NotBefore), day(invalid.Cert.NotAfter), day(c.tools.Now()))

	case errors.As(err, &name):
		return fmt.Sprintf("its certificate is for another name: %v; write the url of connection %s with a name that the certificate is for", err, c.name)

	case errors.As(err, &unknown):
		return fmt.Sprintf("%v; a certificate authority of your own is named by SSL_CERT_FILE or SSL_CERT_DIR, for the API and for git alike", err)

	case errors.Is(err, http.ErrSchemeMismatch):
		return fmt.Sprintf("it speaks http there and not https; write the url of connection %s with http:// if that is right", c.name)
	}
	return err.Error()
}

// decode reads a JSON answer. A page for people with status 200 comes from a sign-in, a proxy or a
// bot check.
func (c *client) decode(ctx context.Context, res *http.Response, body *io.LimitedReader, into any) error {
	// Anything but JSON is an error, because an empty list would remove repositories.
	kind := res.Header.Get("Content-Type")
	if res.StatusCode == http.StatusNonAuthoritativeInfo && c.signInRefusal != nil {
		return c.signInRefusal()
	}
	if res.StatusCode == http.StatusNonAuthoritativeInfo || kind != "" && !strings.Contains(strings.ToLower(kind), "json") {
		return refusal(InvalidResponse, res.StatusCode, "%s at %s answered with %s instead of JSON: a sign-in page or a proxy stands before its API", c.product, c.base.Host, textBefore(kind, ";"))
	}

	text, err := io.ReadAll(body)
	if err != nil {
		return c.unreachable(ctx, err)
	}

	if body.N == 0 {
		return refusal(InvalidResponse, res.StatusCode, "an answer of %s is larger than %d MiB", c.product, maxAnswer>>20)
	}
	return c.parse(text, res.StatusCode, into)
}

// refusalOf returns the refusal for an answer that is not 2xx.
func (c *client) refusalOf(res *http.Response, body io.Reader) error {
	text, _ := io.ReadAll(io.LimitReader(body, 64<<10))
	until := c.retryAfter(res.Header)

	// A page for people does not come from the API, so its status proves nothing. Otherwise what the
	// product says itself is more exact than the status.
	r := (*Refusal)(nil)
	switch {
	case c.pageForPeople(res):
		r = refusal(InvalidResponse, res.StatusCode, "%s answers with a page for people and status %d in place of the API of %s. The url of connection %s is that of something else, or a proxy stands before it",
			c.base.Host, res.StatusCode, c.product, c.name)
	case c.explain != nil:
		r = c.explain(res, text)
	}
	if r == nil {
		r = c.refusalOfStatus(res.StatusCode)
	}

	if r.Until.IsZero() {
		r.Until = until
	}

	if r.Code == RateLimited && !r.Until.IsZero() {
		c.budget.pauseUntil(r.Until)
	}
	return r
}

// pageForPeople reports whether a 404 or 410 is not from the API. It excludes Azure DevOps, which
// answers with pages for unknown organisations.
func (c *client) pageForPeople(res *http.Response) bool {
	missing := res.StatusCode == http.StatusNotFound || res.StatusCode == http.StatusGone
	return missing && c.signInRefusal == nil && strings.Contains(strings.ToLower(res.Header.Get("Content-Type")), "html")
}

// refusalOfStatus returns the refusal for an answer of which only the status is known.
func (c *client) refusalOfStatus(status int) *Refusal {
	switch {
	case status == http.StatusUnauthorized:
		return refusal(TokenRefused, status, "%s refused the token of connection %s: it may have expired or been revoked; give it a new one", c.product, c.name)
	case status == http.StatusForbidden:
		return refusal(Forbidden, status, "the token of connection %s may not read this at %s", c.name, c.product)
	case status == http.StatusNotFound || status == http.StatusGone:
		r := refusal(TargetNotFound, status, "%s has nothing of this name, or the token of connection %s may not see it", c.product, c.name)
		r.cause = ErrGone
		return r
	case status == http.StatusProxyAuthRequired:
		return proxyRefused("before " + c.base.Host)
	case status == http.StatusTooManyRequests:
		return refusal(RateLimited, status, "%s asks for fewer calls", c.product)
	case status == http.StatusRequestTimeout || status/100 == 5:
		return refusal(Unreachable, status, "%s at %s answered with status %d", c.product, c.base.Host, status)
	}
	return refusal(InvalidResponse, status, "%s at %s answered with status %d", c.product, c.base.Host, status)
}

// retryAfter returns when the host wants the next call: from seconds or a date. It returns zero for
// times in the past or more than a day ahead.
func (c *client) retryAfter(h http.Header) time.Time {
	text := h.Get("Retry-After")
	now := c.tools.Now()
	until := time.Time{}

	// Hosts use both forms.
	if seconds, err := strconv.Atoi(text); err == nil {
		until = now.Add(time.Duration(min(seconds, 1<<30)) * time.Second)
	} else if date, err := http.ParseTime(text); err == nil {
		until = c.toOwnClock(date)
	}
	if !until.After(now) || until.Sub(now) > 24*time.Hour {
		return time.Time{}
	}
	return until
}

// watchedBody postpones the timeout of a silent call for each piece that arrives. A host that sends
// single bytes slowly still times out.
type watchedBody struct {
	io.Reader
	silence *time.Timer // cancels the call
	came    int         // bytes since the timer was last reset
}

// Read implements io.Reader.
func (w *watchedBody) Read(p []byte) (int, error) {
	n, err := w.Reader.Read(p)
	if w.came += n; w.came >= pieceSize {
		w.came = 0
		w.silence.Reset(stallTimeout)
	}
	return n, err
}

// textBefore returns the text before a separator.
func textBefore(text, separator string) string {
	before, _, _ := strings.Cut(text, separator)
	return before
}
