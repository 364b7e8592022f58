package model

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/shoalsearch/shoal/cluster/config"
)

// Deps are the functions that calls of models use.
type Deps struct {
	Secret      func(ctx context.Context, t config.Token) (string, error)
	Forget      func() // drops cached secrets, because one was refused; nil if none are cached
	Lookup      func(variable string) (string, bool)
	GoogleToken func(ctx context.Context, keyFile string) (string, error) // "" means the host's credentials
	Wait        func(ctx context.Context, d time.Duration) bool           // false if ctx ended
	Transport   http.RoundTripper                                         // nil means one that uses the proxy variables
}

// Models opens the models of a configuration. It is safe for concurrent use.
type Models struct {
	d       Deps
	learned sync.Map // *quirks by provider/model and base URL
}

// New makes Models.
func New(d Deps) *Models {
	if d.Transport == nil {
		d.Transport = newTransport()
	}
	return &Models{d: d}
}

// wire implements one protocol. It is not safe for concurrent use.
type wire interface {
	// send runs one step. It passes pieces to on and returns the whole answer.
	send(ctx context.Context, r *Request, on func(Event)) (*Answer, error)
}

// Client calls one model. It keeps the secrets from when it was opened, or reopened after one was
// refused. It is not safe for concurrent use.
type Client struct {
	models *Models
	e      *endpoint
	wire   wire
}

// Open resolves the credentials of a model, without calling it. It fails with an *Error if a
// credential or a required property is missing.
func (ms *Models) Open(ctx context.Context, m *config.Model) (*Client, error) {
	p := providerOf(m.Provider)
	if p == nil {
		return nil, &Error{Kind: NoKey, Provider: string(m.Provider), Message: "There is no such provider."}
	}

	// All requests go through guard, also those of the libraries.
	guard := &guardedTransport{next: ms.d.Transport, silent: silentTime}
	e := &endpoint{provider: p, m: m, d: &ms.d, guard: guard, http: &http.Client{Transport: guard}}
	// Errors from here on may contain secrets.
	if err := e.prepareAddress(ctx); err != nil {
		return nil, e.redact(toError(ctx, err))
	}

	// The key includes the address: behind a gateway the same name may be another model.
	kept, _ := ms.learned.LoadOrStore(e.name()+" "+e.base, &quirks{refused: map[string]bool{}})
	e.quirks = kept.(*quirks)

	w, err := p.wire(e)
	if err != nil {
		return nil, e.redact(toError(ctx, err))
	}
	return &Client{ms, e, w}, nil
}

// Name returns provider/model.
func (c *Client) Name() string { return c.e.name() }

// Answer runs one step of a conversation. It passes pieces of the answer to on, from the caller's
// goroutine. If the provider is overloaded or the answer breaks off, it retries at most three
// times. It fails with an *Error, or with ctx's error.
func (c *Client) Answer(ctx context.Context, r *Request, on func(Event)) (*Answer, error) {
	for try := 1; ; try++ {
		a, err := c.wire.send(ctx, r, on)
		if err == nil {
			return a, nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}

		e := c.e.redact(toError(ctx, err))
		e.Tries = try

		// If the model refuses a property, ask without it. That does not count as a retry, because
		// each property can be refused only once.
		if property := c.e.quirks.learnRefused(e); property != "" {
			on(Event{Again: true, Note: fmt.Sprintf("%s does not take %s; asked without", c.Name(), property)})
			try--
			continue
		}

		// A refused key may have just been replaced.
		if e.Kind == BadKey && try == 1 && c.reopen(ctx) {
			continue
		}

		if !e.isTemporary() || try == maxAttempts {
			return nil, e
		}

		pause := pauseBefore(try, e.RetryAfter)
		on(Event{Again: true, Note: fmt.Sprintf("%s Trying again in %v.", fmt.Sprintf(rowOf(e.Kind).sentence, e.Provider), pause.Round(time.Second))})
		if !c.e.d.Wait(ctx, pause) {
			return nil, ctx.Err()
		}
	}
}

// reopen reads the secrets again, and reports whether they have changed.
func (c *Client) reopen(ctx context.Context) bool {
	if c.models.d.Forget != nil {
		c.models.d.Forget()
	}

	fresh, err := c.models.Open(ctx, c.e.m)
	if err != nil || slices.Equal(fresh.e.secrets, c.e.secrets) {
		return false
	}
	*c = *fresh
	return true
}

// pauseBefore returns the pause after a failed try: 1, 4, 16 s plus up to a quarter, at least
// what the provider demands, at most a minute.
func pauseBefore(try int, demanded time.Duration) time.Duration {
	d := time.Second << (2 * (try - 1))
	d += time.Duration(rand.Int64N(int64(d) / 4))
	return min(max(d, demanded), time.Minute)
}

// redact removes the model's secrets from an error.
func (e *endpoint) redact(err *Error) *Error {
	err.Provider = string(e.m.Provider)
	for _, s := range e.secrets {
		err.Message = strings.ReplaceAll(err.Message, s, "[secret]")
		// The ends of a short secret would match too many words.
		if len(s) < 16 {
			continue
		}
		// Providers show keys as sk-a***wxyz.
		for word := range strings.FieldsSeq(err.Message) {
			word = strings.Trim(word, `.,:;'"()[]`)
			if strings.HasPrefix(word, s[:4]) && strings.HasSuffix(word, s[len(s)-4:]) {
				err.Message = strings.ReplaceAll(err.Message, word, "[secret]")
			}
		}
	}
	return err
}

// quirks are properties that a model refuses. They are kept while the node runs, since finding
// each one out costs a call.
type quirks struct {
	mu      sync.Mutex
	refused map[string]bool

	asked    bool     // the provider was asked about thinking
	thinking []string // supported kinds of thinking, for Messages
}

// optional lists properties that some models refuse, with phrases of the refusals.
var optional = []struct {
	member  string
	phrases []string
}{
	{"temperature", []string{"temperature"}},
	{"stream_options", []string{"stream_options"}},
	{"summary", []string{"reasoning.summary", "reasoning summaries", "reasoning summary"}},
	{"reasoning", []string{"reasoning.effort", "reasoning_effort", "reasoning.encrypted_content", "'reasoning'", "encrypted content"}},
	{"thinkingLevel", []string{"thinking level", "thinking_level", "thinkinglevel"}},
	{"thinking", []string{"thinking"}},
	{"cache", []string{"cache_control", "cachepoint", "prompt caching", "cache point"}},
}

// learnRefused returns the property that an error refuses, and remembers it; "" if the error is about
// something else, or the property is known already.
func (l *quirks) learnRefused(e *Error) string {
	// Other kinds of errors may contain the phrases by chance.
	if e.Kind != Refused {
		return ""
	}

	text := strings.ToLower(e.Message)
	if strings.Contains(text, "thought_signature") || strings.Contains(text, "reasoning_content") || strings.Contains(text, "signature") {
		return "" // a property is missing, not refused
	}

	// Learn one property for each call, the narrower ones first, so that little is lost.
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, o := range optional {
		for _, p := range o.phrases {
			if strings.Contains(text, p) && !l.refused[o.member] {
				l.refused[o.member] = true
				return o.member
			}
		}
	}
	return ""
}

// supports reports whether the model may be sent a property.
func (e *endpoint) supports(member string) bool {
	e.quirks.mu.Lock()
	defer e.quirks.mu.Unlock()
	return !e.quirks.refused[member]
}

// temperature returns the configured temperature; nil for none.
func (e *endpoint) temperature() *float64 {
	if !e.supports("temperature") {
		return nil
	}
	return e.m.Temperature
}

// checkAnswer enforces the limits of an answer, for all wires. It sets Finish to Calls if there are
// calls, because some services say "stop".
func (e *endpoint) checkAnswer(a *Answer) (*Answer, error) {
	calls := a.Message.Calls()
	if len(calls) > maxCalls {
		return nil, &Error{Kind: Broken, Message: fmt.Sprintf("%d calls in one step, at most %d are taken", len(calls), maxCalls)}
	}

	size := len(a.Message.Text())
	for i, c := range calls {
		size += len(c.Arguments)
		// Some services send no ids, but results must name their call.
		if c.ID == "" {
			c.ID = fmt.Sprintf("call_%d", i+1)
		}
	}

	if size > maxPart {
		return nil, &Error{Kind: Broken, Message: fmt.Sprintf("an answer of more than %d MiB", maxPart>>20)}
	}

	// Only replace Done: an answer that was cut off may end in half a call.
	if len(calls) > 0 && a.Finish == Done {
		a.Finish = Calls
	}
	a.Message.Role = Assistant
	return a, nil
}

// errCut reports a stream that ended before the answer did.
var errCut = errors.New("the stream ended before the answer did")

func brokenError() *Error { return &Error{Kind: Broken, Message: errCut.Error()} }
