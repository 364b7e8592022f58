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
	maxAnswer = 64 << 20         // bytes of one answer
	tries     = 5                // of one call
	firstWait = time.Second      // before the second try; doubled for each further one
	stall     = time.Minute      // for the next piece of an answer
	piece     = 4 << 10          // bytes of it that count as one
	headers   = 30 * time.Second // until the head of an answer is there
)

// Tools are what all hosts need to ask.
type Tools struct {
	Secret    Secret
	Forget    func()            // has kept secrets asked for anew, since one was refused; nil where none are kept
	Transport http.RoundTripper // with the proxy and the certificates of the process
	Budgets   *Budgets
	Now       func() time.Time
	// Wait returns after d, or with the cause of ctx when that ends first.
	Wait      func(ctx context.Context, d time.Duration) error
	LookupEnv func(string) (string, bool)
	// Apps are those of the configuration; nil for none. Installations has
	// their tokens.
	Apps          func() []config.App
	Installations *Installations
	Answers       *Answers // that outlive the process; nil keeps none
}

// Refused is to be called by whoever was refused with a secret: where secrets are
// kept, they are asked for anew.
func (t *Tools) Refused() {
	if t.Forget != nil {
		t.Forget()
	}
}

// idlePerHost is how many connections to a host wait for the next call.
const idlePerHost = 8

// NewTools are the tools of a process: hosts are asked through the proxy and with
// the certificates of its environment, as git asks them.
func NewTools(secret Secret, lookupEnv func(string) (string, bool), apps func() []config.App, now func() time.Time) Tools {
	// The usual settings of Go, with the way out that git takes.
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

// proxyAnswered tells a proxy that does not let a call through.
func proxyAnswered(_ context.Context, proxy *url.URL, _ *http.Request, res *http.Response) error {
	switch {
	case res.StatusCode == http.StatusOK:
		return nil
	case res.StatusCode == http.StatusProxyAuthRequired:
		return proxyRefused(proxy.Host)
	}
	return refusal(Unreachable, res.StatusCode, "the proxy %s does not lead there: it answered with status %d", proxy.Host, res.StatusCode)
}

// proxyRefused is the refusal of a proxy that does not take our password.
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

// client asks the API of one host with one credential. It waits for limits,
// tries again what may pass, and never takes a page for people for an answer.
// It may be used from any goroutine.
type client struct {
	tools   Tools
	product string   // as people call it
	name    string   // of the connection, for sentences
	base    *url.URL // of the API, without a slash at the end
	header  http.Header
	key     string // tells the credential apart; empty where nobody asks for it
	budget  *budget
	timeout time.Duration // until the head of an answer is there; 0 is 30 s
	keep    float64       // the share of the limit that is left to others

	// authorize returns the value of the Authorization header, empty for
	// none. It is asked at each call, so that a token that was changed works.
	authorize func(ctx context.Context) (string, error)

	// explain reads an answer that is not 2xx in the way of the host; nil or
	// a nil result leaves it to the client.
	explain func(res *http.Response, body []byte) *Refusal

	// signIn is what a page to sign in means at hosts that answer a bad token
	// with one: status 203, or a way to another host. Nil elsewhere.
	signIn func() *Refusal

	// expires reads when the credential ends; nil for hosts that say nothing.
	expires func(h http.Header) time.Time

	// scopes reads what the credential may do; nil for hosts that do not say
	// it with each answer.
	scopes func(h http.Header) []string

	// limits reads what an answer says of the limit; nil for hosts that say
	// nothing.
	limits func(h http.Header) (limit, remaining int, reset time.Time)

	// memory tells the credential apart among kept answers. It is empty where
	// none is kept: of a credential that is another every hour, as that of an app,
	// the versions of answers are others, too.
	memory string

	ahead atomic.Int64 // by how many nanoseconds the clock of the host is ahead of ours
}

// Allowance tells how the credential stands, as far as this node knows.
func (c *client) Allowance() Allowance { return c.budget.snapshot() }

// at joins escaped parts of a path to the address of the API.
func (c *client) at(query url.Values, parts ...string) *url.URL {
	u := *c.base
	for _, p := range parts {
		u.RawPath = u.EscapedPath() + "/" + url.PathEscape(p)
		u.Path += "/" + p
	}
	u.RawQuery = query.Encode()
	return &u
}

// get asks for JSON and decodes it. It returns the head of the answer.
func (c *client) get(ctx context.Context, u *url.URL, into any) (http.Header, error) {
	return c.patiently(ctx, question{at: u}, into)
}

// question is what is asked for: an address, and the version of the answer
// that is known.
type question struct {
	at     *url.URL
	known  string
	method string // GET unless it is set
	body   []byte // of JSON; nil for none
	plain  bool   // the answer must not be compressed
	sent   string // the credential that it was asked with last
}

// patiently asks again where that may help.
func (c *client) patiently(ctx context.Context, q question, into any) (http.Header, error) {
	wait := firstWait
	again := false
	for try := 1; ; try++ {
		head, err := c.once(ctx, &q, into)

		// A credential that was changed a moment ago counts at once.
		if RefusesToken(err) && !again && c.changed(ctx, q.sent) {
			again = true
			continue
		}

		if err == nil || try == tries || ctx.Err() != nil || !passes(err) {
			return head, err
		}

		// Some proxies end an answer early that they compress.
		q.plain = q.plain || endsEarly(err)

		// The host's own word on when to come back wins over ours. Full
		// jitter keeps many calls that failed together apart.
		delay := time.Duration(rand.Int64N(int64(wait)))
		if r := (*Refusal)(nil); errors.As(err, &r) && !r.Until.IsZero() {
			delay = r.Until.Sub(c.tools.Now())
		}
		if delay > longest {
			return nil, err
		}
		if err := c.tools.Wait(ctx, max(delay, 0)); err != nil {
			return nil, err
		}
		wait *= 2
	}
}

// changed reports whether the credential is another than the one that was refused.
func (c *client) changed(ctx context.Context, refused string) bool {
	c.tools.Refused()
	value, err := c.authorize(ctx)
	return err == nil && value != refused
}

// endsEarly reports whether an answer broke off, or was no good once it was unpacked.
func endsEarly(err error) bool {
	return errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, gzip.ErrHeader) || errors.Is(err, gzip.ErrChecksum) || errors.As(err, new(flate.CorruptInputError))
}

// passes reports whether an error may be gone at the next try.
func passes(err error) bool {
	r := (*Refusal)(nil)
	if !errors.As(err, &r) {
		return false
	}
	return r.Code == RateLimited || r.Code == Unreachable && !lasts(r.cause)
}

// lasts reports whether an error of the network stays until somebody does
// something: the certificate of the host is not good.
func lasts(err error) bool {
	bad := (*tls.CertificateVerificationError)(nil)
	return errors.As(err, &bad) || errors.Is(err, http.ErrSchemeMismatch)
}

// once makes one call.
func (c *client) once(ctx context.Context, q *question, into any) (http.Header, error) {
	leave, err := c.budget.enter(ctx, c.tools.Wait)
	if err != nil {
		return nil, err
	}
	defer leave()

	// The call ends when nothing comes for too long, however long it takes.
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	quiet := time.AfterFunc(cmp.Or(c.timeout, headers), func() { cancel(errors.New("it does not answer in time")) })
	defer quiet.Stop()

	req, err := c.request(ctx, q)
	if err != nil {
		return nil, err
	}
	if q.known != "" {
		req.Header.Set("If-None-Match", q.known)
	}
	if q.plain {
		req.Header.Set("Accept-Encoding", "identity")
	}

	res, err := c.http().Do(req)
	if err != nil {
		return nil, c.unreachable(ctx, err)
	}
	defer res.Body.Close()
	quiet.Reset(stall)
	c.noted(res.Header)

	body := &io.LimitedReader{R: &watchedBody{Reader: res.Body, quiet: quiet}, N: maxAnswer + 1}
	if res.StatusCode == http.StatusNotModified && q.known != "" {
		return res.Header, errSame
	}
	if res.StatusCode/100 != 2 {
		return res.Header, c.refused(res, body)
	}

	// Some hosts answer, and ask for a pause before the next call.
	if until := c.retryAfter(res.Header); !until.IsZero() {
		c.budget.pause(until)
	}
	return res.Header, c.decode(ctx, res, body, into)
}

// maxAhead is how far the clocks of a host and of this node may be apart for the
// host's to be believed.
const maxAhead = 24 * time.Hour

// noted takes what the head of an answer says: what time it is there, and of the
// credential its limits, its end, and what it may do.
func (c *client) noted(head http.Header) {
	// First the clock: the times that follow are by it.
	if date, err := http.ParseTime(head.Get("Date")); err == nil {
		if ahead := date.Sub(c.tools.Now()); ahead.Abs() < maxAhead {
			c.ahead.Store(int64(ahead))
		}
	}

	if c.limits != nil {
		limit, remaining, reset := c.limits(head)
		c.budget.note(limit, remaining, c.ours(reset), c.keep)
	}

	if c.expires != nil {
		if at := c.expires(head); !at.IsZero() {
			c.budget.ends(c.ours(at))
		}
	}

	if c.scopes != nil {
		if list := c.scopes(head); len(list) > 0 {
			c.budget.may(list)
		}
	}
}

// ours is a time of the host by the clock of this node.
func (c *client) ours(at time.Time) time.Time { return at.Add(-time.Duration(c.ahead.Load())) }

// theirs is the time that it is at the host.
func (c *client) theirs() time.Time { return c.tools.Now().Add(time.Duration(c.ahead.Load())) }

func (c *client) request(ctx context.Context, q *question) (*http.Request, error) {
	u := q.at

	// An address that the host named itself, as that of a next page, must not carry the
	// token elsewhere.
	if u.Scheme != c.base.Scheme || !strings.EqualFold(u.Host, c.base.Host) {
		return nil, refusal(InvalidResponse, 0, "%s leads to another host, %s, which is not asked", c.product, u.Host)
	}

	req, err := http.NewRequestWithContext(ctx, cmp.Or(q.method, http.MethodGet), u.String(), bytes.NewReader(q.body))
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w", c.product, err)
	}

	req.Header = c.header.Clone()
	if req.Header == nil {
		req.Header = http.Header{}
	}
	req.Header.Set("User-Agent", "shoal")
	if q.body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if req.Header.Get("Accept") == "" {
		req.Header.Set("Accept", "application/json")
	}

	value, err := c.authorize(ctx)
	if err != nil {
		return nil, err
	}
	q.sent = value
	if value != "" {
		req.Header.Set("Authorization", value)
	}
	return req, nil
}

// http is a client that follows redirects of the same host only: a token is
// never carried elsewhere.
func (c *client) http() *http.Client {
	return &http.Client{Transport: c.tools.Transport, CheckRedirect: func(req *http.Request, via []*http.Request) error {
		first := via[0].URL
		if len(via) > 5 {
			return refusal(InvalidResponse, 0, "%s redirects in a circle", c.product)
		}

		// Where a host signs people in elsewhere, being sent there means that the token is no good.
		if c.signIn != nil && !strings.EqualFold(req.URL.Host, first.Host) {
			return c.signIn()
		}
		if !strings.EqualFold(req.URL.Host, first.Host) || first.Scheme == "https" && req.URL.Scheme != "https" {
			return refusal(InvalidResponse, 0, "%s redirects to %s://%s; set the url of connection %s to it if that is right", c.product, req.URL.Scheme, req.URL.Host, c.name)
		}
		return nil
	}}
}

// unreachable tells an error of the network without what the address may say.
func (c *client) unreachable(ctx context.Context, err error) error {
	r := (*Refusal)(nil)
	if errors.As(err, &r) {
		return r
	}

	// The end of a job is the job's to tell; a deadline of our own is the host's fault.
	if cause := context.Cause(ctx); cause != nil {
		err = cause
		if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
			return err
		}
	}

	if u := (*url.Error)(nil); errors.As(err, &u) {
		err = u.Err
	}

	r = refusal(Unreachable, 0, "%s at %s cannot be reached: %s", c.product, c.base.Host, c.network(err))
	r.cause = err
	return r
}

// network tells what the network or the other side's certificate is short of,
// and what to do about it.
func (c *client) network(err error) string {
	// The most telling cause first: a certificate that has ended is often of an unknown
	// authority, too.
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

// decode reads an answer of JSON. A page for people with status 200 is a
// sign-in page, a proxy or a wall against robots.
func (c *client) decode(ctx context.Context, res *http.Response, body *io.LimitedReader, into any) error {
	// What is not JSON is not read as an empty list: nothing may be let go for it.
	kind := res.Header.Get("Content-Type")
	if res.StatusCode == http.StatusNonAuthoritativeInfo && c.signIn != nil {
		return c.signIn()
	}
	if res.StatusCode == http.StatusNonAuthoritativeInfo || kind != "" && !strings.Contains(strings.ToLower(kind), "json") {
		return refusal(InvalidResponse, res.StatusCode, "%s at %s answered with %s instead of JSON: a sign-in page or a proxy stands before its API", c.product, c.base.Host, firstOf(kind, ";"))
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

// refused reads an answer that is not 2xx.
func (c *client) refused(res *http.Response, body io.Reader) error {
	text, _ := io.ReadAll(io.LimitReader(body, 64<<10))
	until := c.retryAfter(res.Header)

	// A product knows better what its answer means. A page for people is not the
	// word of its API, least of all that something is gone.
	r := (*Refusal)(nil)
	switch {
	case c.pageForPeople(res):
		r = refusal(InvalidResponse, res.StatusCode, "%s answers with a page for people and status %d in place of the API of %s. The url of connection %s is that of something else, or a proxy stands before it",
			c.base.Host, res.StatusCode, c.product, c.name)
	case c.explain != nil:
		r = c.explain(res, text)
	}
	if r == nil {
		r = c.general(res.StatusCode)
	}

	if r.Until.IsZero() {
		r.Until = until
	}

	if r.Code == RateLimited && !r.Until.IsZero() {
		c.budget.pause(r.Until)
	}
	return r
}

// pageForPeople tells an answer of 404 or 410 that is none of the API. Azure DevOps,
// which signs in by pages, has no other for an organisation that is not there.
func (c *client) pageForPeople(res *http.Response) bool {
	missing := res.StatusCode == http.StatusNotFound || res.StatusCode == http.StatusGone
	return missing && c.signIn == nil && strings.Contains(strings.ToLower(res.Header.Get("Content-Type")), "html")
}

// general reads a status alone.
func (c *client) general(status int) *Refusal {
	// A host that explains nothing is understood by its status alone.
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

// retryAfter reads when to come back, as seconds or as a date. What lies in
// the past, or beyond a day, says nothing.
func (c *client) retryAfter(h http.Header) time.Time {
	text := h.Get("Retry-After")
	now := c.tools.Now()
	until := time.Time{}

	// Both forms of the header are in use.
	if seconds, err := strconv.Atoi(text); err == nil {
		until = now.Add(time.Duration(min(seconds, 1<<30)) * time.Second)
	} else if date, err := http.ParseTime(text); err == nil {
		until = c.ours(date)
	}
	if !until.After(now) || until.Sub(now) > 24*time.Hour {
		return time.Time{}
	}
	return until
}

// watchedBody puts off the end of a quiet call with each piece that comes: a
// host that sends a byte now and then is not waited for.
type watchedBody struct {
	io.Reader
	quiet *time.Timer
	came  int // bytes since the last piece
}

// Read reads on.
func (w *watchedBody) Read(p []byte) (int, error) {
	n, err := w.Reader.Read(p)
	if w.came += n; w.came >= piece {
		w.came = 0
		w.quiet.Reset(stall)
	}
	return n, err
}

// firstOf is the text before a mark.
func firstOf(text, mark string) string {
	before, _, _ := strings.Cut(text, mark)
	return before
}
