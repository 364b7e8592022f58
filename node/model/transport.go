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

// Limits of one call. A model that thinks may send no data for minutes; every byte, even a
// comment, shows that it works.
const (
	dialTime    = 10 * time.Second
	headerTime  = 120 * time.Second
	silentTime  = 180 * time.Second
	maxStream   = 50 << 20 // bytes of an answer
	maxPart     = 4 << 20  // bytes of one part of an answer
	maxCalls    = 64       // calls of tools in one answer
	maxAttempts = 4
)

// newTransport returns the transport that all clients of a node share.
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

// guardedTransport sends the requests of one model. Only it adds credentials. It drops unneeded
// headers, follows no redirect, since that would leak credentials, and limits responses.
type guardedTransport struct {
	next    http.RoundTripper
	silent  time.Duration
	sign    func(ctx context.Context, h http.Header) error // sets the credential
	headers http.Header                                    // of the configuration
	query   map[string]string                              // of the configuration
}

// neededHeaders are the library's headers that a provider needs. The others would reveal this
// host and its programs.
var neededHeaders = []string{"Content-Type", "Accept", "Anthropic-Version", "Content-Encoding"}

// signedPrefix begins the headers that Bedrock's signature covers.
const signedPrefix = "X-Amz-"

// RoundTrip implements [http.RoundTripper]. It returns an *Error unless the status is 200.
func (g *guardedTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	// Use a context that the silence timer can cancel with a reason. Copy the request, because
	// RoundTrip must not change it.
	ctx, cancel := context.WithCancelCause(req.Context())
	out := req.Clone(ctx)
	if err := g.setHeaders(ctx, out, req.Header); err != nil {
		cancel(err)
		return nil, err
	}

	resp, err := g.next.RoundTrip(out)
	if err != nil {
		cancel(err)
		// The caller gave up: this is no failure of the provider.
		if req.Context().Err() != nil {
			return nil, err
		}
		return nil, unreachableError(err)
	}

	// Read the error here: the libraries' own errors would quote bodies and headers.
	if resp.StatusCode != http.StatusOK {
		defer cancel(nil)
		defer resp.Body.Close()
		return nil, errorFromResponse(resp)
	}

	// From here on, closing the body ends the context.
	resp.Body = newBoundedBody(resp.Body, g.silent, cancel)
	return resp, nil
}

// setHeaders sets the headers of the outgoing request.
func (g *guardedTransport) setHeaders(ctx context.Context, out *http.Request, from http.Header) error {
	out.Header = http.Header{"User-Agent": {"shoal"}}
	for _, name := range neededHeaders {
		if v := from.Values(name); v != nil {
			out.Header[name] = v
		}
	}
	for name, v := range from {
		if strings.HasPrefix(name, signedPrefix) {
			out.Header[name] = v
		}
	}

	// Bedrock's library signs the request. Drop any other credential that a library adds.
	signed := from.Get("Authorization")
	ours := strings.HasPrefix(signed, "AWS4-HMAC-SHA256 ")
	if ours {
		out.Header.Set("Authorization", signed)
	}

	// Configured headers must not replace a credential.
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

	// The credential comes last and replaces any header of its name.
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

// unreachableError makes an Error of a connection failure, without addresses, which could contain
// secrets.
func unreachableError(err error) *Error {
	kind := Unreachable
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		kind = Silent
	}
	return &Error{Kind: kind, Message: oneLine(err.Error())}
}

// boundedBody limits the size and the silence of a response body.
type boundedBody struct {
	io.ReadCloser
	bytesLeft int64
	timer     *time.Timer
	silent    time.Duration
	cancel    context.CancelCauseFunc
}

func newBoundedBody(body io.ReadCloser, silent time.Duration, cancel context.CancelCauseFunc) *boundedBody {
	b := &boundedBody{ReadCloser: body, bytesLeft: maxStream, silent: silent, cancel: cancel}
	b.timer = time.AfterFunc(silent, func() { cancel(&Error{Kind: Silent, Message: fmt.Sprintf("nothing for %v", silent)}) })
	return b
}

// Read implements [io.Reader].
func (b *boundedBody) Read(p []byte) (int, error) {
	if b.bytesLeft <= 0 {
		return 0, &Error{Kind: Broken, Message: fmt.Sprintf("an answer of more than %d MiB", maxStream>>20)}
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.bytesLeft)])
	b.bytesLeft -= int64(n)
	// Any byte shows that the provider works.
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
