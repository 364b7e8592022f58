package model

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// The bounds of one call of a provider. A model that thinks may be silent for
// minutes; any byte, a comment too, shows that it is there.
const (
	dialTime    = 10 * time.Second
	headerTime  = 120 * time.Second
	silentTime  = 180 * time.Second
	maxStream   = 50 << 20 // bytes of an answer
	maxPart     = 4 << 20  // bytes of one part of an answer
	maxCalls    = 64       // calls of tools in one answer
	maxAttempts = 4
)

// newTransport is how providers are reached, by all clients of a node together.
func newTransport() *http.Transport {
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: dialTime, KeepAlive: 30 * time.Second}).DialContext,
		TLSHandshakeTimeout:   dialTime,
		ResponseHeaderTimeout: headerTime,
		ForceAttemptHTTP2:     true,
		MaxIdleConnsPerHost:   8,
		IdleConnTimeout:       90 * time.Second,
	}
}

// guarded sends the requests of one model. It alone writes credentials, it
// passes on no header that is not needed, follows no redirect (credentials
// would go along), and bounds what comes back.
type guarded struct {
	next    http.RoundTripper
	silent  time.Duration
	sign    func(ctx context.Context, h http.Header) error // sets the credential
	headers http.Header                                    // of the configuration
	query   map[string]string                              // of the configuration
}

// kept are the headers of the libraries that a provider needs. What else they
// send tells of this host and its programs.
var kept = []string{"Content-Type", "Accept", "Anthropic-Version", "Content-Encoding"}

// signedPrefix begins headers that the signature of Bedrock covers.
const signedPrefix = "X-Amz-"

// RoundTrip implements [http.RoundTripper]. Whatever is no good answer is an *Error.
func (g *guarded) RoundTrip(req *http.Request) (*http.Response, error) {
	// A context of its own: the watch over silence ends it, with the reason. The request is a
	// copy, as the interface forbids to change it.
	ctx, cancel := context.WithCancelCause(req.Context())
	out := req.Clone(ctx)
	if err := g.dress(ctx, out, req.Header); err != nil {
		cancel(err)
		return nil, err
	}

	resp, err := g.next.RoundTrip(out)
	if err != nil {
		cancel(err)
		// Whoever asked has gone: that is no failure of the provider.
		if req.Context().Err() != nil {
			return nil, err
		}
		return nil, unreachable(err)
	}

	// Read here and now: the libraries' own errors would quote bodies and headers.
	if resp.StatusCode != http.StatusOK {
		defer cancel(nil)
		defer resp.Body.Close()
		return nil, fromResponse(resp)
	}

	// From here on the body ends the context, when it is closed.
	resp.Body = newBoundedBody(resp.Body, g.silent, cancel)
	return resp, nil
}

// dress writes the headers of a request anew.
func (g *guarded) dress(ctx context.Context, out *http.Request, from http.Header) error {
	out.Header = http.Header{"User-Agent": {"shoal"}}
	for _, name := range kept {
		if v := from.Values(name); v != nil {
			out.Header[name] = v
		}
	}
	for name, v := range from {
		if strings.HasPrefix(name, signedPrefix) {
			out.Header[name] = v
		}
	}

	// Of Bedrock, whose library signs what is sent; anything else that a library puts there is
	// dropped.
	signed := from.Get("Authorization")
	ours := strings.HasPrefix(signed, "AWS4-HMAC-SHA256 ")
	if ours {
		out.Header.Set("Authorization", signed)
	}

	// The configuration may add headers, but not take the place of a credential.
	var credential http.Header
	if g.sign != nil {
		credential = http.Header{}
		if err := g.sign(ctx, credential); err != nil {
			return err
		}
	}

	for name, v := range g.headers {
		switch {
		case name == "Host" || name == "Content-Length" || name == "Authorization" && ours:
		case credential.Get(name) == "":
			out.Header[name] = v
		}
	}

	// Last: whatever stood under that name before.
	for name, v := range credential {
		out.Header[name] = v
	}

	if len(g.query) > 0 {
		q := out.URL.Query()
		for name, v := range g.query {
			q.Set(name, v)
		}
		out.URL.RawQuery = q.Encode()
	}
	return nil
}

// unreachable is the failure of a connection, without addresses that could
// have secrets in them.
func unreachable(err error) *Error {
	kind := Unreachable
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		kind = Silent
	}
	return &Error{Kind: kind, Message: clip(err.Error())}
}

// boundedBody is the body of an answer within its bounds of size and silence.
type boundedBody struct {
	io.ReadCloser
	left   int64
	timer  *time.Timer
	silent time.Duration
	cancel context.CancelCauseFunc
}

func newBoundedBody(body io.ReadCloser, silent time.Duration, cancel context.CancelCauseFunc) *boundedBody {
	b := &boundedBody{ReadCloser: body, left: maxStream, silent: silent, cancel: cancel}
	b.timer = time.AfterFunc(silent, func() { cancel(&Error{Kind: Silent, Message: fmt.Sprintf("nothing for %v", silent)}) })
	return b
}

// Read implements [io.Reader].
func (b *boundedBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, &Error{Kind: Broken, Message: fmt.Sprintf("an answer of more than %d MiB", maxStream>>20)}
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	// Any byte shows that the other side is there.
	b.timer.Reset(b.silent)
	return n, err
}

// Close ends the request.
func (b *boundedBody) Close() error {
	b.timer.Stop()
	err := b.ReadCloser.Close()
	b.cancel(nil)
	return err
}
