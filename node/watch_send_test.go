package node_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/emersion/go-smtp"

	"github.com/shoalsearch/shoal/node"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/node/nodetest"
	watches "github.com/shoalsearch/shoal/node/watch"
	"github.com/shoalsearch/shoal/shard/change"
)

// hookServer takes requests of webhooks, or refuses them.
type hookServer struct {
	refuses atomic.Bool

	mu    sync.Mutex
	calls []hookCall
}

type hookCall struct {
	ID, signature string
	body          []byte
	refused       bool
}

func (h *hookServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	h.mu.Lock()
	defer h.mu.Unlock()
	refused := h.refuses.Load()
	h.calls = append(h.calls, hookCall{r.Header.Get("X-Shoal-Delivery"), r.Header.Get("X-Shoal-Signature"), body, refused})
	if refused {
		w.WriteHeader(http.StatusBadGateway)
	}
}

// taken lists the repositories and paths of what was taken, in order, without repetitions.
func (h *hookServer) taken() (all []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	ids := map[string]bool{}
	for _, c := range h.calls {
		var body struct {
			Repository string
			Matches    []struct{ Path string }
		}
		if c.refused || ids[c.ID] || json.Unmarshal(c.body, &body) != nil {
			continue
		}
		ids[c.ID] = true
		for _, m := range body.Matches {
			all = append(all, body.Repository+" "+m.Path)
		}
	}
	return all
}

// A watch of text tells of files that are new by path and content. A webhook is signed, is tried
// again with the same id and in order, and is told nothing that the owner may not see; so is the
// owner by mail.
func TestWatch_sendsToAWebhookAndByMail(t *testing.T) {
	t.Parallel()
	hook := &hookServer{}
	server := httptest.NewServer(hook)
	t.Cleanup(server.Close)
	box := make(letterbox, 100)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	post := smtp.NewServer(box)
	go func() { _ = post.Serve(ln) }()
	t.Cleanup(func() { _ = post.Close() })

	dir := t.TempDir()
	app := nodetest.NewRepo(t, filepath.Join(dir, "app"), map[string]string{"a.go": "package a\n\nvar octopus = 1\n"})
	secret := nodetest.NewRepo(t, filepath.Join(dir, "secret"), map[string]string{"b.go": "package b\n"})
	var passed atomic.Int64
	config := nodetest.Config{
		Env: map[string]string{"SMTP_CONNECTION_URL": "smtp://" + ln.Addr().String(), "EMAIL_FROM_ADDRESS": "shoal@example.com", watches.ReceiversVariable: "any"},
		Edit: func(o *node.Options) {
			o.History = change.Bound{All: true}
			o.Now = func() time.Time { return time.Now().Add(time.Duration(passed.Load())) }
		},
		File: fmt.Sprintf(`{"connections": {"local": {"type": "git", "url": "file://%s/*", "enforcePermissions": true}}}`, dir),
	}
	n := nodetest.Start(t, config)
	n.WaitIndexed(2)
	ann := person(t, n, "ann@example.com", "local/app")
	query, mailed := "octopus", true
	made, err := n.Watches.CreateWatch(t.Context(), ann, watches.Change{Query: &query, Mail: &mailed})
	if err != nil {
		t.Fatal(err)
	}
	hooked, err := n.Watches.SetWebhook(t.Context(), ann, made.ID, server.URL)
	if err != nil {
		t.Fatal(err)
	}
	push := func(r *nodetest.Repo, name, path string) {
		t.Helper()
		r.Commit(map[string]string{path: "package a\n\n// an octopus in " + path + "\n"})
		pushed(t, n, name)
	}
	wait := func(want ...string) {
		t.Helper()
		n.Wait("the webhook", func() error {
			passed.Add(int64(time.Minute))
			if got := hook.taken(); !slices.Equal(got, want) {
				return fmt.Errorf("%q, want %q; %s", got, want, told(n, ann, made.ID))
			}
			return nil
		})
	}

	push(secret, "local/secret", "hidden.go")
	push(app, "local/app", "b.go")
	wait("local/app b.go")
	if letter := <-box; !strings.Contains(letter, "b.go") || !strings.Contains(letter, "To: <ann@example.com>") {
		t.Errorf("the letter is\n%s", letter)
	}
	mac := hmac.New(sha256.New, []byte(hooked.Secret))
	mac.Write(hook.calls[0].body)
	if want := hex.EncodeToString(mac.Sum(nil)); hook.calls[0].signature != want {
		t.Errorf("signed by %s, not by %s", hook.calls[0].signature, want)
	}

	// While it fails, the watch says so, and nothing is lost or out of order.
	hook.refuses.Store(true)
	push(app, "local/app", "c.go")
	problem := func(want string) {
		t.Helper()
		n.Wait("the problem", func() error {
			passed.Add(int64(time.Minute))
			d, err := n.Watches.Watch(t.Context(), ann, made.ID)
			if err != nil || (d.Info.Problem == "") != (want == "") || !strings.Contains(d.Info.Problem, want) {
				return fmt.Errorf("%+v, %v", d, err)
			}
			return nil
		})
	}
	problem("answers 502")
	push(app, "local/app", "d.go")
	n.Wait("the other push", func() error {
		if got := told(n, ann, made.ID); strings.Count(got, "local/") != 3 {
			return errors.New(got)
		}
		return nil
	})
	n.Stop()
	n.Start()
	hook.refuses.Store(false)
	wait("local/app b.go", "local/app c.go", "local/app d.go")
	problem("")

	// What the owner may not see any more is passed over.
	hook.refuses.Store(true)
	push(app, "local/app", "e.go")
	n.Wait("the push", func() error {
		if got := told(n, ann, made.ID); strings.Count(got, "local/") != 4 {
			return errors.New(got)
		}
		return nil
	})
	problem("answers 502")
	grant := func(add, remove []string) {
		if _, err := n.People.Grant(t.Context(), account.Operator(), account.GrantRequest{User: "ann@example.com", Add: add, Remove: remove}); err != nil {
			t.Fatal(err)
		}
	}
	grant(nil, []string{"local/app"})
	hook.refuses.Store(false)
	problem("") // it is passed over
	grant([]string{"local/app"}, nil)
	push(app, "local/app", "f.go")
	wait("local/app b.go", "local/app c.go", "local/app d.go", "local/app f.go")

	// A file that only moves is new; one that is unchanged is not.
	for _, address := range []string{"ftp://example.com/", "https://user:x@example.com/", "", "https:///x"} {
		if _, err := n.Watches.SetWebhook(t.Context(), ann, made.ID, address); !errors.Is(err, call.ErrInvalid) {
			t.Errorf("%s: %v", address, err)
		}
	}
}

// Receivers at private addresses are refused, unless the operator allows them.
func TestWatchWebhook_refusesPrivateAddresses(t *testing.T) {
	t.Parallel()
	n := withHistory(t, t.TempDir())
	ann := person(t, n, "ann@example.com")
	query := "type:diff x"
	made, err := n.Watches.CreateWatch(t.Context(), ann, watches.Change{Query: &query})
	if err != nil {
		t.Fatal(err)
	}
	for _, address := range []string{"http://example.com/", "https://127.0.0.1/", "https://10.0.0.1/x", "https://[::1]/"} {
		if _, err := n.Watches.SetWebhook(t.Context(), ann, made.ID, address); !errors.Is(err, call.ErrInvalid) {
			t.Errorf("%s: %v", address, err)
		}
	}
}
