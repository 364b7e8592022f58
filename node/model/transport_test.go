package model

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shoalsearch/shoal/cluster/config"
)

// slow is a body that returns a byte after each of these pauses.
type slow struct {
	ctx    context.Context
	pauses []time.Duration
}

func (s *slow) Read(p []byte) (int, error) {
	if len(s.pauses) == 0 {
		return 0, io.EOF
	}
	select {
	case <-s.ctx.Done():
		return 0, s.ctx.Err()
	case <-time.After(s.pauses[0]):
	}
	s.pauses = s.pauses[1:]
	return copy(p, ":"), nil
}

func (s *slow) Close() error { return nil }

// roundTrip is a function as an [http.RoundTripper].
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// A thinking model may be silent for long, and any byte shows that it is there.
func TestModelAnswer_endsAfterTooLongSilence(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		pauses []time.Duration
		bytes  int
		silent bool
	}{
		{"a byte just in time, often", []time.Duration{179 * time.Second, 179 * time.Second, 179 * time.Second}, 3, false},
		{"no byte for too long", []time.Duration{time.Second, 181 * time.Second}, 1, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			g := &guardedTransport{silent: silentTime, next: roundTrip(func(req *http.Request) (*http.Response, error) {
				return &http.Response{StatusCode: http.StatusOK, Body: &slow{req.Context(), tt.pauses}}, nil
			})}
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://model.example.test/", nil)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := g.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()

			got, err := io.ReadAll(resp.Body)
			if len(got) != tt.bytes || (err != nil) != tt.silent {
				t.Errorf("%s: %d bytes, %v", tt.name, len(got), err)
			}
		})
	}
}

// The limit is 50 MiB.
func TestModelAnswer_above50MiBFails(t *testing.T) {
	t.Parallel()
	endless := io.NopCloser(io.LimitReader(zeros{}, maxStream+1<<20))
	b := newBoundedBody(endless, time.Hour, func(error) {})
	defer b.Close()
	n, err := io.Copy(io.Discard, struct{ io.Reader }{b})
	if e := (*Error)(nil); n != maxStream || !errors.As(err, &e) || e.Kind != Broken {
		t.Errorf("%d bytes, %v", n, err)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

// The configuration knows exactly the variables that providers read for the destination of a key.
func TestProviderVariables_areThoseOfTheConfiguration(t *testing.T) {
	t.Parallel()
	for _, p := range providers {
		m := config.Model{Provider: p.name}
		for _, k := range p.keys {
			if k.variable != "" && !slices.Contains(m.Variables(), k.variable) {
				t.Errorf("%s reads %s, which is not among %v", p.name, k.variable, m.Variables())
			}
		}
	}
}
