package environ

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/shoalsearch/shoal/cluster/config"
)

// Deps is what an Environment works with.
type Deps struct {
	File    func() *config.File              // the configuration in force
	Process func(name string) (string, bool) // the environment of the process
	Now     func() time.Time
	Log     *slog.Logger
}

// Environment is the variables that a node goes by. It is safe for concurrent
// use.
type Environment struct {
	d      Deps
	client *http.Client

	mu     sync.Mutex // guards the fields below
	cached map[string]cachedSecret
	tokens map[string]cachedSecret // access tokens of Google, by key file

	asking singleflight.Group // for access tokens, by key file
}

type cachedSecret struct {
	value string
	from  time.Time // when it was asked for
	until time.Time
}

const (
	secretTime = 5 * time.Minute  // that a secret of the manager is kept
	freshTime  = 10 * time.Second // that it is kept whoever refuses it, so that refusals are no calls without end
)

// New makes an Environment.
func New(d Deps) *Environment {
	return &Environment{d: d, client: &http.Client{Timeout: 20 * time.Second}, cached: map[string]cachedSecret{}, tokens: map[string]cachedSecret{}}
}

// Lookup gives a variable: an override of the configuration wins over the
// environment of the process. An override by reference that cannot be
// resolved counts as unset, and is logged.
func (e *Environment) Lookup(name string) (string, bool) {
	for _, o := range e.d.File().Overrides {
		if o.Name != name {
			continue
		}
		if o.Token == nil {
			return o.Value, true
		}

		// A bound, since whoever looks a variable up waits for it.
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		value, err := e.Secret(ctx, *o.Token)
		if err != nil {
			e.d.Log.Error("an environment override cannot be resolved", "name", name, "err", err)
			return "", false
		}
		return value, true
	}
	return e.d.Process(name)
}

// Flag gives a variable that must be true or false; anything else is unset.
func (e *Environment) Flag(name string) (value, set bool) {
	text, _ := e.Lookup(name)
	value, err := strconv.ParseBool(strings.TrimSpace(text))
	return value, err == nil
}

// Secret gives the value of a token reference.
func (e *Environment) Secret(ctx context.Context, t config.Token) (string, error) {
	if t.Env != "" {
		// The environment of the process, not the overrides: an override that
		// refers to itself would never end.
		value, ok := e.d.Process(t.Env)
		if !ok || value == "" {
			return "", fmt.Errorf("environment variable %s is not set", t.Env)
		}
		return value, nil
	}

	// Kept for a while, so that not each call of a host is one of the manager, too.
	e.mu.Lock()
	have, ok := e.cached[t.GoogleCloud]
	e.mu.Unlock()
	if ok && e.d.Now().Before(have.until) {
		return have.value, nil
	}

	value, err := e.googleSecret(ctx, t.GoogleCloud)
	if err != nil {
		return "", fmt.Errorf("secret %s: %w", t.GoogleCloud, err)
	}

	e.mu.Lock()
	defer e.mu.Unlock()
	now := e.d.Now()
	e.cached[t.GoogleCloud] = cachedSecret{value: value, from: now, until: now.Add(secretTime)}
	return value, nil
}

// Forget has the secrets of the manager and the access tokens of Google asked
// for anew, but those of the last ten seconds. It is for whoever was refused with
// one: it may have been changed.
func (e *Environment) Forget() {
	e.mu.Lock()
	defer e.mu.Unlock()

	old := e.d.Now().Add(-freshTime)
	stale := func(_ string, s cachedSecret) bool { return s.from.Before(old) }
	maps.DeleteFunc(e.cached, stale)
	maps.DeleteFunc(e.tokens, stale)
}
