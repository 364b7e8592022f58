package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

// guesser is strangers who sign in and fail: whose account each attempt is at,
// and the address that it comes from.
type guesser struct {
	name           string
	email, address func() string
}

// guessers each get around a bound that holds the one before.
func guessers() []guesser {
	always := func(s string) func() string { return func() string { return s } }
	anyAddress := func() string {
		return fmt.Sprintf("198.%d.%d.%d", 18+rand.IntN(2), rand.IntN(256), rand.IntN(256))
	}
	anybody := func() string { return fmt.Sprintf("%x@example.com", rand.Uint64()) }

	return []guesser{
		{"one address, one account", always(guessedAt), always("192.0.2.1")},
		{"one address, any account", anybody, always("192.0.2.2")},
		{"any address, one account", always(guessedAt), anyAddress},
		{"any address, any account", anybody, anyAddress},
	}
}

// guessedAt is somebody who has a password.
const guessedAt = "somebody@example.com"

// partSignIns searches alone, and while strangers sign in and fail.
func partSignIns(ctx context.Context, r *run) (*Part, error) {
	p := &Part{Title: "Searches (50 documents, 4 connections) while strangers sign in and fail (16 connections)",
		Columns: []string{"who guesses", "attempts/s", "refused at once/s", "passwords tried/s", "attempt's p99", "searches/s", "search's median", "p99", "median / alone"}}
	s, err := r.entrance(ctx)
	if err != nil {
		return nil, err
	}
	defer s.stop()

	var bodies [][]byte
	for _, q := range selective() {
		bodies = append(bodies, q.body(50, false))
	}

	const length = 10 * time.Second
	alone := s.load(ctx, 4, length, bodies)
	p.row("nobody", "", "", "", "", alone.perSecond(), median(alone.took), quantile(alone.took, 0.99), ratio(1))

	for _, g := range guessers() {
		guessed := make(chan guesses, 1)
		guessing, stop := context.WithCancel(ctx)
		go func() { guessed <- s.guess(guessing, g, 16) }()

		l := s.load(ctx, 4, length, bodies)
		stop()
		a := <-guessed
		if a.failed != nil {
			return nil, fmt.Errorf("%s: sign in: %w", g.name, a.failed)
		}
		if l.errors > 0 {
			return nil, fmt.Errorf("%s: %d searches failed", g.name, l.errors)
		}

		second := func(n int) float64 { return float64(n) / a.wall.Seconds() }
		p.row(g.name, second(len(a.took)), second(a.refused), second(len(a.took)-a.refused), quantile(a.took, 0.99),
			l.perSecond(), median(l.took), quantile(l.took, 0.99), ratio(float64(median(l.took))/float64(median(alone.took))))
	}

	p.note("Addresses are what a trusted proxy says. An attempt that is refused at once is answered 429 without a look at the password.")
	return p, nil
}

// entrance is a node with L that believes the addresses that it is told, and an
// account with a password.
func (r *run) entrance(ctx context.Context) (*server, error) {
	repo, err := r.corpora.large(ctx)
	if err != nil {
		return nil, err
	}
	s, _, err := r.indexAnew(ctx, "S", "off", 1, map[string]connection{"L": {"type": "git", "url": "file://" + repo}})
	if err != nil {
		return nil, err
	}
	if err := s.stop(); err != nil {
		return nil, err
	}

	s, err = serve(ctx, s.dir, r.configOf("S"), "off", "--trusted-proxies", "127.0.0.0/8,::1")
	if err != nil {
		return nil, err
	}

	err = s.send(ctx, "/api/users", map[string]any{"email": guessedAt}, nil)
	if err == nil {
		err = s.send(ctx, "/api/users/"+guessedAt+"/password", map[string]any{"password": fmt.Sprintf("%016x", rand.Uint64())}, nil)
	}
	if err != nil {
		return nil, errors.Join(err, s.stop())
	}
	return s, nil
}

// guesses is what strangers got.
type guesses struct {
	took    []time.Duration
	refused int // without a look at the password
	failed  error
	wall    time.Duration
}

// guess signs in from some connections until ctx ends.
func (s *server) guess(ctx context.Context, g guesser, conns int) guesses {
	var mu sync.Mutex
	var all guesses
	var wg sync.WaitGroup
	start := time.Now()

	for range conns {
		wg.Go(func() {
			for ctx.Err() == nil {
				began := time.Now()
				status, err := s.signIn(ctx, g.email(), g.address())
				took := time.Since(began)
				if ctx.Err() != nil {
					return
				}

				mu.Lock()
				all.took = append(all.took, took)
				switch {
				case err != nil:
					all.failed = err
				case status == http.StatusTooManyRequests:
					all.refused++
				case status != http.StatusUnauthorized:
					all.failed = fmt.Errorf("status %d", status)
				}
				mu.Unlock()
			}
		})
	}

	wg.Wait()
	all.wall = time.Since(start)
	return all
}

// signIn sends the form of the page with a password that nobody has.
func (s *server) signIn(ctx context.Context, email, address string) (status int, err error) {
	form := url.Values{"email": {email}, "password": {fmt.Sprintf("%x", rand.Uint64())}}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+"/login", strings.NewReader(form.Encode()))
	if err != nil {
		return 0, err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Sec-Fetch-Site", "same-origin")
	req.Header.Set("X-Forwarded-For", address)

	resp, err := s.client.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, err
}
