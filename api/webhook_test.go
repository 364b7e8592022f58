package api

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/clock"
	"github.com/shoalsearch/shoal/node"
	"github.com/shoalsearch/shoal/node/account"
	callerr "github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/node/host"
	"github.com/shoalsearch/shoal/node/nodetest"
	"github.com/shoalsearch/shoal/node/operate"
)

func TestWebhook_acceptsOnlySignedEvents(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	app := nodetest.NewRepo(t, filepath.Join(dir, "app"), map[string]string{"a.txt": "walrus\n"})
	n := nodetest.Start(t, nodetest.Config{File: fmt.Sprintf(`{"connections": {"local": {"type": "git", "url": "file://%s/*"}}}`, dir)})
	n.WaitIndexed(1)
	s := start(t, partsOf(n.Node))
	app.Commit(map[string]string{"b.txt": "narwhal\n"})
	// An unknown connection has no secret that a user could enter.
	if keys, err := n.Operate.WebhookKeys(t.Context(), "nope"); !errors.Is(err, callerr.ErrNotFound) || keys.Secret != "" {
		t.Errorf("the secret of no connection: %+v, %v", keys, err)
	}
	keys, err := n.Operate.WebhookKeys(t.Context(), "local")
	if err != nil {
		t.Fatal(err)
	}
	secret := keys.Secret
	const body = `{}`
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(body))
	good := hex.EncodeToString(mac.Sum(nil))
	post := func(path, header, value string) int {
		t.Helper()
		req, err := http.NewRequest("POST", "http://"+s.Addr().String()+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		if header != "" {
			req.Header.Set(header, value)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp.StatusCode
	}
	bad := strings.Repeat("0", len(good))
	for _, c := range [][3]string{
		{"/api/webhook/local", "", ""},
		{"/api/webhook/local", "X-Hub-Signature-256", "sha256=" + bad},
		{"/api/webhook/local", "X-Gitea-Signature", bad},
		{"/api/webhook/local", "X-Gitlab-Token", "wrong"},
		{"/api/webhook/other", "X-Hub-Signature-256", "sha256=" + good}, // the secret of another connection
	} {
		if status := post(c[0], c[1], c[2]); status != http.StatusUnauthorized && status != http.StatusForbidden {
			t.Errorf("%q gives %d", c, status)
		}
	}
	if got := n.Find("narwhal"); len(got) != 0 {
		t.Errorf("a refused event brought %q", got)
	}
	if status := post("/api/webhook/local", "X-Hub-Signature-256", "sha256="+good); status != http.StatusAccepted {
		t.Fatalf("a signed event gives %d", status)
	}
	n.Wait("the new commit", func() error {
		if got := n.Find("narwhal"); len(got) != 1 || got[0] != "local/app:b.txt" {
			return fmt.Errorf("found %q", got)
		}
		return nil
	})
	if status := post("/api/webhook/local", "X-Gitlab-Token", secret); status != http.StatusAccepted {
		t.Errorf("the secret as a token gives %d", status)
	}
}

// A replaced secret works for one more day. A repeated delivery has no second effect.
func TestWebhook_oldSecretWorksForOneMoreDay(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	nodetest.NewRepo(t, filepath.Join(dir, "app"), map[string]string{"a.txt": "walrus\n"})
	day := clock.Now()
	var later atomic.Int64 // how far the node's clock is ahead
	n := nodetest.Start(t, nodetest.Config{
		File: fmt.Sprintf(`{"connections": {"local": {"type": "git", "url": "file://%s/*"}}}`, dir),
		Edit: func(o *node.Options) {
			o.Now = func() time.Time { return clock.Now().Add(time.Duration(later.Load())) }
		},
	})
	n.WaitIndexed(1)
	keys := func() operate.WebhookKeys {
		t.Helper()
		k, err := n.Operate.WebhookKeys(t.Context(), "local")
		if err != nil {
			t.Fatal(err)
		}
		return k
	}

	first := keys()
	if again := keys(); again.Secret != first.Secret || first.Previous != "" {
		t.Errorf("the secret is %+v and then %+v", first, again)
	}
	made, err := n.Operate.RotateWebhook(t.Context(), account.Operator(), "local")
	if err != nil || made.Secret == first.Secret || made.Previous != first.Secret || made.Until.Before(day.Add(23*time.Hour)) {
		t.Fatalf("replaced: %+v, %v", made, err)
	}
	if now := keys(); !slices.Equal(now.Valid(), []string{made.Secret, first.Secret}) {
		t.Errorf("good are %v", now.Valid())
	}
	later.Store(int64(25 * time.Hour))
	if now := keys(); !slices.Equal(now.Valid(), []string{made.Secret}) {
		t.Errorf("a day later good are %v", now.Valid())
	}
	if _, err := n.Operate.RotateWebhook(t.Context(), account.Operator(), "none"); !errors.Is(err, callerr.ErrNotFound) {
		t.Errorf("of a connection that is not there: %v", err)
	}

	event := operate.WebhookRequest{Connection: "local", Event: host.Event{Pushed: true}, Delivery: "d1"}
	for i, want := range []int{1, 0} {
		if r, err := n.Operate.Webhook(t.Context(), account.Operator(), event); err != nil || len(r.Repos) != want {
			t.Errorf("call %d queues %+v, %v", i, r, err)
		}
	}
}

// A push of many commits has a body larger than other routes accept.
func TestWebhook_acceptsLargerBodiesThanOtherRoutes(t *testing.T) {
	t.Parallel()
	s := start(t, &fake{})
	for size, want := range map[int]int{2 << 20: 202, host.MaxDelivery + 1: 413} {
		body := `{"a":"` + strings.Repeat("x", size-8) + `"}`
		resp, _ := ask(t, s, "POST", "/api/webhook/main", body)
		if resp.StatusCode != want {
			t.Errorf("%d bytes: %d, want %d", size, resp.StatusCode, want)
		}
	}
}

// claim returns the head of a delivery that may be signed.
func claim() string {
	return fmt.Sprintf("webhook-id: 1\r\nwebhook-timestamp: %d\r\nwebhook-signature: v1,x\r\n", time.Now().Unix())
}

// Failed webhook calls are rate limited like other requests.
func TestWebhook_failedCallsAreRateLimited(t *testing.T) {
	t.Parallel()
	f := newFlooded(t, false, func(o *Options) { o.Limits = Limits{Rate: 0.0001} })
	for i, want := range []string{"401", "429"} {
		c := f.send("127.0.0.1", head("/api/webhook/main", claim()+"Connection: close\r\nContent-Length: 2\r\n")+"{}")
		if answer, err := io.ReadAll(c); err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 "+want) {
			t.Errorf("call %d: %q %v, want %s", i+1, answer, err, want)
		}
	}
}

// The head of a delivery decides whether its body is read.
func TestWebhook_readsTheBodyOnlyIfTheHeadIsOfADelivery(t *testing.T) {
	t.Parallel()
	f := newFlooded(t, false, func(*Options) {})
	for name, c := range map[string]struct{ rest, want string }{
		"nothing":               {"", "401"},
		"the scheme of another": {"X-Hub-Signature-256: sha256=" + strings.Repeat("0", 64) + "\r\n", "401"},
		"a token that is wrong": {"X-Gitlab-Token: wrong\r\n", "401"},
		"a member's key":        {"Authorization: Bearer " + memberKey + "\r\n", "403"},
		"a key that is wrong":   {"Authorization: Bearer " + forgedKey + "\r\n", "401"},
	} {
		conn := f.send("127.0.0.1", head("/api/webhook/main", c.rest+"Content-Length: 9\r\n")+"{")
		if answer, err := io.ReadAll(conn); err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 "+c.want) {
			t.Errorf("%s: %q %v, want %s", name, answer, err, c.want)
		}
	}
	if used := f.memory.used(); used != 0 {
		t.Errorf("%v bytes are held", used)
	}
}
