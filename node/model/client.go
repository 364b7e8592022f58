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

// Deps is what models are called with.
type Deps struct {
	Secret      func(ctx context.Context, t config.Token) (string, error)
	Forget      func() // has kept secrets asked for anew, since one was refused; nil where none are kept
	Lookup      func(variable string) (string, bool)
	GoogleToken func(ctx context.Context, keyFile string) (string, error) // "" for the credentials of the host
	Wait        func(ctx context.Context, d time.Duration) bool           // false where ctx ended
	Transport   http.RoundTripper                                         // nil for one that goes by the proxy variables
}

// Models opens the models that a configuration names. It may be used by many
// at once.
type Models struct {
	d       Deps
	learned sync.Map // of *learned, by provider, base and model
}

// New makes Models.
func New(d Deps) *Models {
	if d.Transport == nil {
		d.Transport = newTransport()
	}
	return &Models{d: d}
}

// wire speaks one protocol. It may be used by one at a time.
type wire interface {
	// answer does one step: what comes goes to on, the whole is returned.
	answer(ctx context.Context, r *Request, on func(Event)) (*Answer, error)
}

// Client is one model, ready to be called. It holds its secrets as they were
// when it was opened, or when one was refused. It may be used by one at a time.
type Client struct {
	models *Models
	e      *endpoint
	wire   wire
}

// Open resolves what a model needs. It fails with an *Error, without a call,
// where the credential or a needed property is not there.
func (ms *Models) Open(ctx context.Context, m *config.Model) (*Client, error) {
	p := providerOf(m.Provider)
	if p == nil {
		return nil, &Error{Kind: NoKey, Provider: string(m.Provider), Message: "There is no such provider."}
	}

	// All requests of this model go through it, also those that a library makes.
	guard := &guarded{next: ms.d.Transport, silent: silentTime}
	e := &endpoint{provider: p, m: m, d: &ms.d, guard: guard, http: &http.Client{Transport: guard}}
	// Whatever fails from here on may have a secret in its text.
	if err := e.prepare(ctx); err != nil {
		return nil, e.redacted(toError(ctx, err))
	}

	// By address too: the same name behind a gateway may be another model.
	kept, _ := ms.learned.LoadOrStore(e.name()+" "+e.base, &learned{refused: map[string]bool{}})
	e.learned = kept.(*learned)

	w, err := p.wire(e)
	if err != nil {
		return nil, e.redacted(toError(ctx, err))
	}
	return &Client{ms, e, w}, nil
}

// Name is provider/model.
func (c *Client) Name() string { return c.e.name() }

// Answer does one step of a conversation. What comes goes to on while it
// comes, from the goroutine of the caller. Where the provider is overloaded or
// the answer breaks off it is asked again, at most three times. It fails with
// an *Error, or with the error of ctx where that ended.
func (c *Client) Answer(ctx context.Context, r *Request, on func(Event)) (*Answer, error) {
	for try := 1; ; try++ {
		a, err := c.wire.answer(ctx, r, on)
		if err == nil {
			return a, nil
		}
		// Whoever gave up gets that error, not what it broke in the wire.
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}

		e := c.e.redacted(toError(ctx, err))
		e.Tries = try

		// A property that the model does not take is left out from now on. It is no
		// try: each is learned once.
		if what := c.e.learned.learn(e); what != "" {
			on(Event{Again: true, Note: fmt.Sprintf("%s does not take %s; asked without", c.Name(), what)})
			try--
			continue
		}

		// A secret that was changed a moment ago counts at once.
		if e.Kind == BadKey && try == 1 && c.reopen(ctx) {
			continue
		}

		if !e.again() || try == maxAttempts {
			return nil, e
		}

		pause := pauseBefore(try, e.RetryAfter)
		on(Event{Again: true, Note: fmt.Sprintf("%s Trying again in %v.", fmt.Sprintf(rowOf(e.Kind).sentence, e.Provider), pause.Round(time.Second))})
		if !c.e.d.Wait(ctx, pause) {
			return nil, ctx.Err()
		}
	}
}

// reopen takes the secrets of now, and reports whether they are others than those
// that were refused.
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

// pauseBefore is how long to wait after a try: 1, 4, 16 s and up to a quarter
// more, never less than the provider says, and at most a minute.
func pauseBefore(try int, told time.Duration) time.Duration {
	d := time.Second << (2 * (try - 1))
	d += time.Duration(rand.Int64N(int64(d) / 4))
	return min(max(d, told), time.Minute)
}

// redacted cuts the secrets of the model out of an error.
func (e *endpoint) redacted(err *Error) *Error {
	err.Provider = string(e.m.Provider)
	for _, s := range e.secrets {
		err.Message = strings.ReplaceAll(err.Message, s, "[secret]")
		// Of a short secret the ends would fit too many words.
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

// learned is what a model was found not to take. It is kept as long as the
// node runs, since each refusal costs a call.
type learned struct {
	mu      sync.Mutex
	refused map[string]bool

	asked    bool     // whether thinking was asked for
	thinking []string // the ways to think, of Messages
}

// optional are members of requests that some models refuse, and how they say so.
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

// learn takes from a refusal what the model does not take; "" where that is
// not what it says, or was known.
func (l *learned) learn(e *Error) string {
	// Only what was refused: other failures may have these words in them by chance.
	if e.Kind != Refused {
		return ""
	}

	text := strings.ToLower(e.Message)
	if strings.Contains(text, "thought_signature") || strings.Contains(text, "reasoning_content") || strings.Contains(text, "signature") {
		return "" // it misses something that has to come back
	}

	// One at a time, the narrower ones first: each costs a call, and less is lost.
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

// takes reports whether a member may be sent.
func (e *endpoint) takes(member string) bool {
	e.learned.mu.Lock()
	defer e.learned.mu.Unlock()
	return !e.learned.refused[member]
}

// temperature is the configured one, nil for none.
func (e *endpoint) temperature() *float64 {
	if !e.takes("temperature") {
		return nil
	}
	return e.m.Temperature
}

// finished checks an answer against the bounds and sets its reason to stop:
// some services say "stop" with calls.
func (e *endpoint) finished(a *Answer) (*Answer, error) {
	// One bound for all wires, as each of them puts answers together in its own way.
	calls := a.Message.Calls()
	if len(calls) > maxCalls {
		return nil, &Error{Kind: Broken, Message: fmt.Sprintf("%d calls in one step, at most %d are taken", len(calls), maxCalls)}
	}

	size := len(a.Message.Text())
	for i, c := range calls {
		size += len(c.Arguments)
		// Some services name no calls; results have to say which call they are of.
		if c.ID == "" {
			c.ID = fmt.Sprintf("call_%d", i+1)
		}
	}

	if size > maxPart {
		return nil, &Error{Kind: Broken, Message: fmt.Sprintf("an answer of more than %d MiB", maxPart>>20)}
	}

	// Only over done: an answer that was cut may end in half a call.
	if len(calls) > 0 && a.Finish == Done {
		a.Finish = Calls
	}
	a.Message.Role = Assistant
	return a, nil
}

// errCut is a stream that ended before its end.
var errCut = errors.New("the stream ended before the answer did")

func cut() *Error { return &Error{Kind: Broken, Message: errCut.Error()} }
