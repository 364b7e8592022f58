package environ

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shoalsearch/shoal/cluster/config"
)

// fakeGoogle implements Google's token servers. Each token is different and lasts an hour.
type fakeGoogle struct {
	asked atomic.Int64
	last  atomic.Pointer[http.Request]
	body  atomic.Pointer[string]
	wait  chan struct{} // answers wait for it; nil: they do not wait
	down  atomic.Bool
	bad   atomic.Bool // refuses, and repeats the request in the body
}

func (g *fakeGoogle) RoundTrip(req *http.Request) (*http.Response, error) {
	n := g.asked.Add(1)
	g.last.Store(req)
	if req.Body != nil {
		raw, err := io.ReadAll(req.Body)
		if err != nil {
			return nil, err
		}
		text := string(raw)
		g.body.Store(&text)
	}
	if g.wait != nil {
		<-g.wait
	}
	if g.down.Load() {
		return nil, errors.New("refused")
	}
	if g.bad.Load() {
		return &http.Response{StatusCode: http.StatusBadRequest, Status: "400 Bad Request", Body: io.NopCloser(strings.NewReader(*g.body.Load())), Request: req}, nil
	}
	answer := fmt.Sprintf(`{"access_token":"ya29.%d","expires_in":3600}`, n)
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(answer))}, nil
}

// keyFile writes a key file and returns its path.
func keyFile(t *testing.T, content map[string]string) string {
	t.Helper()
	raw, err := json.Marshal(content)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "key.json")
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// A cached token is replaced a minute before it ends.
func TestGoogleToken_isRenewedBeforeItExpires(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := &fakeGoogle{}
		e := newEnvironment(nil)
		e.client.Transport = g
		for _, step := range []struct {
			after time.Duration
			want  string
		}{
			{0, "ya29.1"},
			{58 * time.Minute, "ya29.1"},
			{59*time.Minute + time.Second, "ya29.2"},
			{60 * time.Minute, "ya29.2"},
			{119 * time.Minute, "ya29.3"},
		} {
			start := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC) // the start time of a synctest bubble
			time.Sleep(time.Until(start.Add(step.after)))
			if got, err := e.GoogleToken(t.Context(), ""); got != step.want || err != nil {
				t.Errorf("after %v: %q, %v; want %q", step.after, got, err, step.want)
			}
		}
		if h := g.last.Load().Header.Get("Metadata-Flavor"); h != "Google" {
			t.Errorf("the machine is asked without its header: %q", h)
		}
	})
}

// Concurrent callers cause one request, also if the first of them gives up.
func TestGoogleToken_concurrentCallersShareARequest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := &fakeGoogle{wait: make(chan struct{})}
		e := newEnvironment(nil)
		e.client.Transport = g

		first, giveUp := context.WithCancel(t.Context())
		var all sync.WaitGroup
		all.Go(func() {
			if _, err := e.GoogleToken(first, ""); !errors.Is(err, context.Canceled) {
				t.Errorf("who gave up: %v", err)
			}
		})
		synctest.Wait()
		for range 16 {
			all.Go(func() {
				if got, err := e.GoogleToken(t.Context(), ""); got != "ya29.1" || err != nil {
					t.Errorf("%q, %v", got, err)
				}
			})
		}
		synctest.Wait()
		giveUp()
		synctest.Wait()
		close(g.wait)
		all.Wait()
		if n := g.asked.Load(); n != 1 {
			t.Errorf("asked %d times, want once", n)
		}
	})
}

// A failure is not cached.
func TestGoogleToken_retriesAfterFailure(t *testing.T) {
	t.Parallel()
	g := &fakeGoogle{}
	g.down.Store(true)
	e := newEnvironment(nil)
	e.client.Transport = g
	if _, err := e.GoogleToken(t.Context(), ""); err == nil || !strings.Contains(err.Error(), "GOOGLE_APPLICATION_CREDENTIALS") {
		t.Errorf("%v; want what to set", err)
	}
	g.down.Store(false)
	if got, err := e.GoogleToken(t.Context(), ""); got != "ya29.2" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

// Tokens come from each kind of key file, and from the one that the variable names.
func TestGoogleToken_comesFromEachKindOfKeyFile(t *testing.T) {
	t.Parallel()
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	block := string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8}))

	account := keyFile(t, map[string]string{"type": "service_account", "client_email": "shoal@example.test", "private_key": block})
	user := keyFile(t, map[string]string{"type": "authorized_user", "client_id": "id", "client_secret": "s", "refresh_token": "r1", "token_uri": "https://tokens.example.test/"})
	odd := keyFile(t, map[string]string{"type": "external_account"})

	g := &fakeGoogle{}
	e := newEnvironment(map[string]string{"GOOGLE_APPLICATION_CREDENTIALS": user})
	e.client.Transport = g
	for _, tt := range []struct{ path, want, url, body, fails string }{
		{account, "ya29.1", "https://oauth2.googleapis.com/token", "assertion=", ""},
		{"", "ya29.2", "https://tokens.example.test/", "refresh_token=r1", ""},
		{user, "ya29.2", "", "", ""}, // same file, cached
		{account, "ya29.1", "", "", ""},
		{odd, "", "", "", "external_account"},
		{filepath.Join(t.TempDir(), "away.json"), "", "", "", "away.json"},
	} {
		got, err := e.GoogleToken(t.Context(), tt.path)
		if tt.fails != "" {
			if err == nil || !strings.Contains(err.Error(), tt.fails) {
				t.Errorf("%s: %v, want %q", tt.path, err, tt.fails)
			}
			continue
		}
		if got != tt.want || err != nil {
			t.Errorf("%s: %q, %v; want %q", tt.path, got, err, tt.want)
		}
		if tt.url != "" && (g.last.Load().URL.String() != tt.url || !strings.Contains(*g.body.Load(), tt.body)) {
			t.Errorf("%s: asked %s for %s", tt.path, g.last.Load().URL, *g.body.Load())
		}
	}
}

// The error of a refusal has the status but not the body.
func TestGoogleToken_errorHidesTheBody(t *testing.T) {
	t.Parallel()
	path := keyFile(t, map[string]string{"type": "authorized_user", "client_secret": "hidden", "refresh_token": "hidden"})
	g := &fakeGoogle{}
	g.bad.Store(true)
	e := newEnvironment(nil)
	e.client.Transport = g
	if _, err := e.GoogleToken(t.Context(), path); err == nil || !strings.Contains(err.Error(), "400 Bad Request") || strings.Contains(err.Error(), "hidden") {
		t.Errorf("%v, want the status alone", err)
	}
}

// Secrets are cached for five minutes. After Forget, a secret is read again, but at most once in
// ten seconds.
func TestForgetSecret_readsItAgain(t *testing.T) {
	t.Parallel()
	const name = "projects/p/secrets/s/versions/latest"
	synctest.Test(t, func(t *testing.T) {
		m := &fakeManager{}
		e := newEnvironment(nil)
		e.client.Transport = m
		for _, step := range []struct {
			after   time.Duration
			refused bool
			want    string
		}{
			{0, false, "1"},
			{4 * time.Minute, false, "1"},
			{0, true, "2"},
			{5 * time.Second, true, "2"}, // requested just now
			{6 * time.Second, true, "3"},
			{6 * time.Minute, false, "4"},
		} {
			time.Sleep(step.after)
			if step.refused {
				e.Forget()
			}
			got, err := e.Secret(t.Context(), config.Token{GoogleCloud: name})
			if err != nil || got != step.want {
				t.Errorf("after %v, refused %v: %q, %v; want %q", step.after, step.refused, got, err, step.want)
			}
		}
	})
}

// fakeManager implements Google's servers and its secret manager. Each read returns another version.
type fakeManager struct{ looks atomic.Int64 }

func (m *fakeManager) RoundTrip(req *http.Request) (*http.Response, error) {
	answer := `{"access_token":"ya29","expires_in":3600}`
	if req.URL.Host == "secretmanager.googleapis.com" {
		version := fmt.Sprint(m.looks.Add(1), "\n")
		answer = fmt.Sprintf(`{"payload":{"data":%q}}`, base64.StdEncoding.EncodeToString([]byte(version)))
	}
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(answer))}, nil
}
