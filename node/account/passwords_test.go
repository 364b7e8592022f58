package account

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/call"
)

func passwordsOn(l *countingCatalog, vars map[string]string) *Passwords {
	lookup := func(name string) (string, bool) { v, ok := vars[name]; return v, ok }
	k := NewKeyring(l, lookup, l.time, slog.New(slog.DiscardHandler))
	return NewPasswords(k, NewSessions(k, lookup), lookup)
}

const good = "correct horse battery"

func TestPasswordSignIn_failuresLookAlikeAndWriteNothing(t *testing.T) {
	t.Parallel()
	l := newCountingCatalog(t)
	p := passwordsOn(l, nil)
	ann := l.person("ann@example.com", catalog.RoleMember)
	l.person("bob@example.com", catalog.RoleMember) // has no password
	if _, err := p.SetPassword(t.Context(), Operator(), SetPasswordRequest{User: ann.Email, Password: good}); err != nil {
		t.Fatal(err)
	}
	begin := func(email, password string) error {
		l.pass(time.Hour + time.Second)
		_, err := p.BeginWithPassword(t.Context(), email, password, SignIn{Address: "192.0.2.1"})
		return err
	}

	if err := begin(" Ann@Example.com", good); err != nil {
		t.Error(err)
	}
	before := l.entries()
	var texts []string
	for _, c := range [][2]string{{"ann@example.com", "wrong horse battery"}, {"bob@example.com", good}, {"bob@example.com", ""}, {"nobody@example.com", good}, {"", ""}, {"ann@example.com", good + strings.Repeat("x", 5000)}} {
		err := begin(c[0], c[1])
		if !errors.Is(err, call.ErrUnauthenticated) {
			t.Errorf("%q: %v", c[0], err)
		}
		texts = append(texts, fmt.Sprint(err))
	}
	for _, text := range texts {
		if text != texts[0] {
			t.Errorf("failures can be told apart: %q and %q", texts[0], text)
		}
	}
	if got := l.entries() - before; got != 0 {
		t.Errorf("failures wrote %d entries", got)
	}

	if _, err := NewPeople(l).ChangeUser(t.Context(), Operator(), ChangeUserRequest{User: ann.ID, State: catalog.AccountSuspended}); err != nil {
		t.Fatal(err)
	}
	if err := begin(ann.Email, good); !errors.Is(err, call.ErrForbidden) {
		t.Errorf("somebody suspended: %v", err)
	}
	off := passwordsOn(l, map[string]string{"AUTH_CREDENTIALS_LOGIN_ENABLED": "false"})
	if _, err := off.BeginWithPassword(t.Context(), ann.Email, good, SignIn{}); !errors.Is(err, call.ErrForbidden) {
		t.Errorf("where passwords are off: %v", err)
	}
}

func TestPasswordRule_refusesWeakPasswords(t *testing.T) {
	t.Parallel()
	l := newCountingCatalog(t)
	p := passwordsOn(l, nil)
	l.person("ann@example.com", catalog.RoleMember)
	for _, bad := range []string{"", "short", "ann@example.com", "aaaaaaaaaaaaaaaa", strings.Repeat("ab", 600)} {
		if _, err := p.SetPassword(t.Context(), Operator(), SetPasswordRequest{User: "ann@example.com", Password: bad}); !errors.Is(err, call.ErrInvalid) || bad != "" && strings.Contains(err.Error(), bad) {
			t.Errorf("%.20q: %v", bad, err)
		}
	}
}

func TestSignInLink_isAcceptedOnce(t *testing.T) {
	t.Parallel()
	l := newCountingCatalog(t)
	p := passwordsOn(l, nil)
	l.person("ann@example.com", catalog.RoleMember)
	link, err := p.NewLink(t.Context(), Operator(), NewLinkRequest{User: "ann@example.com", Join: true})
	if err != nil || link.Expires.Sub(l.time()) != joinLink {
		t.Fatalf("%+v, %v", link, err)
	}
	if u, err := p.LinkOwner(t.Context(), link.Token); err != nil || u.Email != "ann@example.com" {
		t.Errorf("the link is of %+v, %v", u, err)
	}
	if _, err := p.BeginWithLink(t.Context(), link.Token, "short", SignIn{}); !errors.Is(err, call.ErrInvalid) {
		t.Errorf("a bad password: %v", err)
	}
	if _, err := p.BeginWithLink(t.Context(), link.Token, good, SignIn{}); err != nil {
		t.Fatal(err)
	}
	for _, token := range []string{link.Token, "", zeros} {
		if _, err := p.BeginWithLink(t.Context(), token, good, SignIn{}); !errors.Is(err, call.ErrNotFound) {
			t.Errorf("%q again: %v", token, err)
		}
	}
	if _, err := p.BeginWithPassword(t.Context(), "ann@example.com", good, SignIn{}); err != nil {
		t.Errorf("with the password: %v", err)
	}
}

func TestChangePassword_endsOtherSessions(t *testing.T) {
	t.Parallel()
	l := newCountingCatalog(t)
	p := passwordsOn(l, nil)
	ann := l.person("ann@example.com", catalog.RoleMember)
	if _, err := p.SetPassword(t.Context(), Operator(), SetPasswordRequest{User: ann.ID, Password: good}); err != nil {
		t.Fatal(err)
	}
	var tokens []string
	for range 2 {
		begun, err := p.BeginWithPassword(t.Context(), ann.Email, good, SignIn{})
		if err != nil {
			t.Fatal(err)
		}
		tokens = append(tokens, begun.Token)
	}
	v, err := p.sessions.SessionViewer(t.Context(), tokens[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := p.ChangePassword(t.Context(), Person{v}, "not the old one", "another good one", ""); !errors.Is(err, call.ErrInvalid) {
		t.Errorf("without the old password: %v", err)
	}
	if err := p.ChangePassword(t.Context(), Person{v}, good, "another good one", ""); err != nil {
		t.Fatal(err)
	}
	if _, err := p.sessions.SessionViewer(t.Context(), tokens[0]); err != nil {
		t.Errorf("this session: %v", err)
	}
	if _, err := p.sessions.SessionViewer(t.Context(), tokens[1]); !errors.Is(err, call.ErrUnauthenticated) {
		t.Errorf("the other session: %v", err)
	}
}

// Guessing gets slower for the guesser, and hardly for others.
func TestPasswordAttempts_guessingGetsSlower(t *testing.T) {
	t.Parallel()
	l := newCountingCatalog(t)
	x := newAttempts(l.time)
	tries := 0
	for began := l.time(); l.time().Sub(began) < 24*time.Hour; {
		if wait := x.waitTime("ann@x", "192.0.2.1"); wait > 0 {
			l.pass(wait)
		}
		x.recordFailure("ann@x", "192.0.2.1")
		tries++
	}
	if tries > 200 {
		t.Errorf("one address guesses %d times a day", tries)
	}
	if wait := x.waitTime("ann@x", "198.51.100.1"); wait > accountWait {
		t.Errorf("the account is locked for others: %v", wait)
	}
	if x.waitTime("bob@x", "198.51.100.1") != 0 {
		t.Error("somebody else has to wait")
	}
	if x.waitTime("new@x", "192.0.2.1") == 0 {
		t.Error("the address goes on with other accounts")
	}
	if networkOf("2001:db8::1") != networkOf("2001:db8::ffff") || networkOf("2001:db8::1") == networkOf("2001:db8:1::1") {
		t.Error("an address of IPv6 does not count as its /64")
	}
	for i := range 3 * maxAttempts {
		x.recordFailure(fmt.Sprint(i), fmt.Sprint(i))
	}
	if len(x.counts) > maxAttempts {
		t.Errorf("%d counts are remembered", len(x.counts))
	}
}

// After setting the clock back, failures in the future are dropped first.
func TestPasswordAttempts_inTheFutureAreDroppedFirst(t *testing.T) {
	t.Parallel()
	for _, back := range []time.Duration{time.Minute, 48 * time.Hour} {
		l := newCountingCatalog(t)
		x := newAttempts(l.time)
		for i := range maxAttempts {
			x.counts[fmt.Sprint(i)] = &failures{count: 1, last: l.time()}
		}

		l.pass(-back)
		done := make(chan struct{})
		go func() {
			defer close(done)
			x.recordFailure("ann@x", "192.0.2.1")
		}()
		select {
		case <-done:
		case <-time.After(10 * time.Second):
			t.Fatalf("%v back: room is made without end", back)
		}
		if f := x.counts["to ann@x"]; f == nil || len(x.counts) > maxAttempts {
			t.Errorf("%v back: %d counts are remembered, of the last failure %v", back, len(x.counts), f)
		}
	}
}

// Setting the clock back does not lengthen the wait.
func TestPasswordAttempts_clockSetBackDoesNotLengthenTheWait(t *testing.T) {
	t.Parallel()
	for _, failures := range []int{freeAttempts, freeAttempts + 3, 200} {
		l := newCountingCatalog(t)
		x := newAttempts(l.time)
		for range failures {
			x.recordFailure("ann@x", "192.0.2.1")
		}
		before := x.waitTime("ann@x", "192.0.2.1")

		l.pass(-365 * 24 * time.Hour)
		wait := x.waitTime("ann@x", "192.0.2.1")
		if wait <= 0 || wait > before || before > maxWait {
			t.Errorf("%d failures: a wait of %v, before the clock went back %v", failures, wait, before)
		}
		l.pass(wait)
		if wait := x.waitTime("ann@x", "192.0.2.1"); wait > 0 {
			t.Errorf("%d failures: a wait of %v once it is over", failures, wait)
		}
	}
}

// However many sign in at once, few hashes are computed, and the others get an error.
func TestPasswordSignIn_limitsConcurrentHashes(t *testing.T) {
	t.Parallel()
	l := newCountingCatalog(t)
	p := passwordsOn(l, nil)
	var leave []func()
	for range hashesAtOnce {
		done, _, err := p.hashing.Enter(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		leave = append(leave, done)
	}
	refused := make(chan error, 100)
	var wg sync.WaitGroup
	for i := range 100 {
		wg.Go(func() {
			_, err := p.BeginWithPassword(t.Context(), fmt.Sprint(i, "@x"), good, SignIn{Address: fmt.Sprint("192.0.2.", i)})
			if errors.Is(err, call.ErrOverloaded) {
				refused <- err
			}
		})
	}
	for range 100 - hashesWaiting {
		<-refused
	}
	for _, done := range leave {
		done()
	}
	wg.Wait()
	if n := len(refused); n != 0 {
		t.Errorf("%d more were refused", n)
	}
}
