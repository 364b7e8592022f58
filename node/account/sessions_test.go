package account

import (
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/call"
)

// sessionsOn returns sessions on a ledger, with these variables.
func sessionsOn(l *countingCatalog, vars map[string]string) *Sessions {
	lookup := func(name string) (string, bool) { v, ok := vars[name]; return v, ok }
	k := NewKeyring(l, lookup, l.time, slog.New(slog.DiscardHandler))
	return NewSessions(k, lookup)
}

// The use of a session is recorded once a day, however many requests it has.
func TestSessions_useIsRecordedDaily(t *testing.T) {
	t.Parallel()
	l := newCountingCatalog(t)
	s := sessionsOn(l, nil)
	ann := l.person("ann@example.com", catalog.RoleMember)
	begun, err := s.Begin(t.Context(), ann.ID, SignIn{})
	if err != nil {
		t.Fatal(err)
	}
	before := l.entries()

	// Ninety days with a thousand requests each, and a round every hour.
	for day := range 89 {
		for range 1000 {
			if _, err := s.SessionViewer(t.Context(), begun.Token); err != nil {
				t.Fatalf("day %d: %v", day, err)
			}
		}
		for range 24 {
			l.pass(time.Hour)
			s.recordUse(t.Context(), sessionTouch)
		}
	}
	if got := l.entries() - before; got == 0 || got > 90 {
		t.Errorf("89,000 requests in 89 days wrote %d entries, want about one a day", got)
	}

	// It ends even if it is in use.
	l.pass(25 * time.Hour)
	if _, err := s.SessionViewer(t.Context(), begun.Token); !errors.Is(err, call.ErrUnauthenticated) {
		t.Errorf("after 90 days: %v", err)
	}
	l.pass(2 * time.Hour)
	s.recordUse(t.Context(), sessionTouch)
	if l.View().SessionByHash(nil) != nil || len(sessionsOfAll(l)) != 0 {
		t.Errorf("what has ended is still there: %v", sessionsOfAll(l))
	}
}

func sessionsOfAll(l *countingCatalog) (ids []string) {
	for x := range l.View().Sessions() {
		ids = append(ids, x.ID)
	}
	return ids
}

func TestSession_endsIfUnused(t *testing.T) {
	t.Parallel()
	l := newCountingCatalog(t)
	ann := l.person("ann@example.com", catalog.RoleMember)
	for _, c := range []struct {
		vars map[string]string
		idle time.Duration
	}{
		{nil, sessionIdle},
		{map[string]string{"AUTH_SESSION_MAX_AGE_SECONDS": "3600"}, time.Hour},
		{map[string]string{"AUTH_SESSION_MAX_AGE_SECONDS": "never"}, sessionIdle},
	} {
		s := sessionsOn(l, c.vars)
		begun, err := s.Begin(t.Context(), ann.ID, SignIn{})
		if err != nil {
			t.Fatal(err)
		}
		l.pass(c.idle - time.Second)
		if _, err := s.SessionViewer(t.Context(), begun.Token); err != nil {
			t.Errorf("%v: before its end: %v", c.vars, err)
		}
		l.pass(time.Second)
		if _, err := s.SessionViewer(t.Context(), begun.Token); !errors.Is(err, call.ErrUnauthenticated) {
			t.Errorf("%v: after its end: %v", c.vars, err)
		}
	}
}

// A variable sets how often the use of a session is recorded.
func TestSessions_recordUseAsOftenAsTheVariableSays(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]uint64{"": 1, "86400": 1, "3600": 24, "60": 24, "seldom": 1} {
		l := newCountingCatalog(t)
		s := sessionsOn(l, map[string]string{"AUTH_SESSION_UPDATE_AGE_SECONDS": text})
		ann := l.person("ann@example.com", catalog.RoleMember)
		begun, err := s.Begin(t.Context(), ann.ID, SignIn{})
		if err != nil {
			t.Fatal(err)
		}
		before := l.entries()

		// One request and one round per hour of a day.
		for range 24 {
			l.pass(time.Hour)
			if _, err := s.SessionViewer(t.Context(), begun.Token); err != nil {
				t.Fatal(err)
			}
			_, touch := s.ages()
			s.recordUse(t.Context(), touch)
		}
		if got := l.entries() - before; got != want {
			t.Errorf("%q: a day of use wrote %d entries, want %d", text, got, want)
		}
	}
}

// A sign-in replaces a token that somebody else may have planted in the browser.
func TestSignIn_replacesThePreviousSession(t *testing.T) {
	t.Parallel()
	l := newCountingCatalog(t)
	s := sessionsOn(l, nil)
	ann := l.person("ann@example.com", catalog.RoleMember)
	first, err := s.Begin(t.Context(), ann.ID, SignIn{})
	if err != nil {
		t.Fatal(err)
	}
	second, err := s.Begin(t.Context(), ann.ID, SignIn{Instead: first.Token})
	if err != nil || second.Token == first.Token {
		t.Fatalf("the second token is the first, or %v", err)
	}
	if _, err := s.SessionViewer(t.Context(), first.Token); !errors.Is(err, call.ErrUnauthenticated) {
		t.Errorf("the former session goes on: %v", err)
	}
	if _, err := s.SessionViewer(t.Context(), second.Token); err != nil {
		t.Error(err)
	}
}

// Random tokens write nothing.
func TestSessions_randomTokensWriteNothing(t *testing.T) {
	t.Parallel()
	l := newCountingCatalog(t)
	s := sessionsOn(l, nil)
	for _, token := range []string{"", "x", "shoal_" + zeros, zeros, zeros + "0"} {
		if _, err := s.SessionViewer(t.Context(), token); !errors.Is(err, call.ErrUnauthenticated) {
			t.Errorf("%q: %v", token, err)
		}
		if _, err := s.BeginWithKey(t.Context(), token, SignIn{}); !errors.Is(err, call.ErrUnauthenticated) {
			t.Errorf("key %q: %v", token, err)
		}
		if err := s.EndSession(t.Context(), token); err != nil {
			t.Errorf("sign out with %q: %v", token, err)
		}
	}
	if l.entries() != 0 {
		t.Errorf("strangers wrote %d entries", l.entries())
	}
}

const zeros = "0000000000000000000000000000000000000000000000000000000000000000"
