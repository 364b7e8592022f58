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

// Deps are the other parts that an Environment uses.
type Deps struct {
	File    func() *config.File              // returns the configuration in force
	Process func(name string) (string, bool) // looks up the environment of the process
	Now     func() time.Time
	Log     *slog.Logger
}

// Environment looks up a node's variables and secrets. It is safe for concurrent use.
type Environment struct {
	d      Deps
	client *http.Client

	mu     sync.Mutex // guards the fields below
	cached map[string]cachedSecret
	tokens map[string]cachedSecret // Google's access tokens, by key file

	asking singleflight.Group // for access tokens, by key file
}

type cachedSecret struct {
	value string
	from  time.Time // when it was requested
	until time.Time
}

const (
	secretLife   = 5 * time.Minute  // cache time of a secret
	minForgetAge = 10 * time.Second // minimum age of a cached secret before Forget removes it, which limits calls to the manager
)

// New returns an Environment.
func New(d Deps) *Environment {
	return &Environment{d: d, client: &http.Client{Timeout: 20 * time.Second}, cached: map[string]cachedSecret{}, tokens: map[string]cachedSecret{}}
}

// Lookup returns a variable. An override of the configuration wins over the environment of the
// process. An override by reference that cannot be resolved counts as unset, and is logged.
func (e *Environment) Lookup(name string) (string, bool) {
	for _, o := range e.d.File().Overrides {
		if o.Name != name {
			continue
		}
		if o.Token == nil {
			return o.Value, true
		}

		// The caller waits, so set a time limit.
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

// Flag returns a boolean variable. Anything but true or false counts as unset.
func (e *Environment) Flag(name string) (value, set bool) {
	text, _ := e.Lookup(name)
	value, err := strconv.ParseBool(strings.TrimSpace(text))
	return value, err == nil
}

// Secret returns the value of the secret that a token of the configuration names: an environment
// variable, or a secret at Google Cloud, which is cached for a while.
func (e *Environment) Secret(ctx context.Context, t config.Token) (string, error) {
	if t.Env != "" {
		// Read the environment of the process, without overrides. Otherwise an override that refers
		// to itself would recurse forever.
		value, ok := e.d.Process(t.Env)
		if !ok || value == "" {
			return "", fmt.Errorf("environment variable %s is not set", t.Env)
		}
		return value, nil
	}

	// Cached, so that not each call to a host calls the manager.
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
	e.cached[t.GoogleCloud] = cachedSecret{value: value, from: now, until: now.Add(secretLife)}
	return value, nil
}

// Forget removes cached secrets and Google access tokens that are older than ten seconds. Callers
// use it when a host refused one, because it may have changed.
func (e *Environment) Forget() {
	e.mu.Lock()
	defer e.mu.Unlock()

	old := e.d.Now().Add(-minForgetAge)
	stale := func(_ string, s cachedSecret) bool { return s.from.Before(old) }
	maps.DeleteFunc(e.cached, stale)
	maps.DeleteFunc(e.tokens, stale)
}
