package host

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/cluster/config"
)

// appSite is a GitHub server with an app, installed by acme and ann, and suspended by late. A token
// of an installation sees the repositories of its owner.
type appSite struct {
	*httptest.Server
	t    *testing.T
	key  *rsa.PrivateKey
	now  func() time.Time
	made int // number of tokens

	says    bool // whether answers have the server's time
	refused int  // number of refused proofs
}

func (s *appSite) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header()["Date"] = nil
	if s.says {
		w.Header().Set("Date", s.now().UTC().Format(http.TimeFormat))
	}
	w.Header().Set("Content-Type", "application/json")
	path, bearer := strings.TrimPrefix(r.URL.Path, "/api/v3/"), strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	if strings.HasPrefix(path, "app/") {
		if !s.proves(bearer) {
			s.refused++
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		if path == "app/installations" && r.Method == "GET" {
			fmt.Fprint(w, `[{"id":1,"account":{"login":"Acme"}},{"id":2,"account":{"login":"ann"}},{"id":3,"account":{"login":"late"},"suspended_at":"2026-01-01T00:00:00Z"}]`)
			return
		}
		var id int
		if _, err := fmt.Sscanf(path, "app/installations/%d/access_tokens", &id); err == nil && r.Method == "POST" {
			s.made++
			w.WriteHeader(http.StatusCreated)
			fmt.Fprintf(w, `{"token":"ghs_%d_%d"}`, id, s.made)
			return
		}
	}
	whose := strings.Join(strings.Split(bearer, "_")[:min(2, strings.Count(bearer, "_")+1)], "_")
	answer, known := map[string]string{
		"ghs_1 orgs/acme/repos":           `[{"id":11,"full_name":"acme/app","private":true}]`,
		"ghs_1 repositories/11":           `{"id":11,"full_name":"acme/app","private":true}`,
		"ghs_2 users/ann/repos":           `[{"id":21,"full_name":"ann/open"}]`,
		"ghs_2 installation/repositories": `{"total_count":2,"repositories":[{"id":21,"full_name":"ann/open"},{"id":22,"full_name":"ann/own","private":true}]}`,
		"sekret orgs/other/repos":         `[{"id":31,"full_name":"other/tool"}]`,
		"sekret orgs/late/repos":          `[]`,
	}[whose+" "+path]
	if !known {
		w.WriteHeader(http.StatusNotFound)
	}
	fmt.Fprint(w, answer)
}

// proves checks an app's proof of identity.
func (s *appSite) proves(token string) bool {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return false
	}
	signature, err := base64.RawURLEncoding.DecodeString(parts[2])
	sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	if err != nil || rsa.VerifyPKCS1v15(&s.key.PublicKey, crypto.SHA256, sum[:], signature) != nil {
		return false
	}
	text, err := base64.RawURLEncoding.DecodeString(parts[1])
	var claims struct {
		Issuer string `json:"iss"`
		IAT    int64  `json:"iat"`
		EXP    int64  `json:"exp"`
	}
	if err != nil || json.Unmarshal(text, &claims) != nil {
		return false
	}
	now := s.now().Unix()
	return claims.Issuer == "42" && claims.IAT < now && claims.EXP > now && claims.EXP-claims.IAT <= 600
}

// newAppSite returns an appSite, and the tools of a node with the app. The key has its lines
// joined, as in a variable.
func newAppSite(t *testing.T) (*appSite, Tools) {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	tools := tools(t)
	s := &appSite{t: t, key: key, now: tools.Now}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	text := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})
	tools.Secret = func(_ context.Context, ref config.Token) (string, error) {
		if ref.Env == "KEY" {
			return strings.ReplaceAll(string(text), "\n", `\n`), nil
		}
		return "sekret", nil
	}
	app := config.App{Type: "github", ID: "42", PrivateKey: &config.Token{Env: "KEY"}, DeploymentHostname: strings.TrimPrefix(s.URL, "http://")}
	tools.Apps, tools.Installations = func() []config.App { return []config.App{app} }, NewInstallations()
	return s, tools
}

// Each owner is listed with the token of its installation. An owner without one is listed with the
// connection's token, and an issue.
func TestGitHubApp_listsItsInstallations(t *testing.T) {
	t.Parallel()
	s, tools := newAppSite(t)
	conn := &config.GitHub{URL: s.URL, Token: &config.Token{Env: "T"}, Orgs: []string{"acme", "other", "late"}, Users: []string{"ann"}}
	h, err := Open(conn, tools)
	if err != nil {
		t.Fatal(err)
	}
	var got recorder
	if err := h.List(t.Context(), &got); err != nil {
		t.Fatal(err)
	}
	if got.names() != "acme/app ann/open ann/own other/tool" {
		t.Errorf("listed %s", got.names())
	}
	if got.problems() != "AUTHENTICATION_FALLBACK@orgs/late! AUTHENTICATION_FALLBACK@orgs/other! TARGET_EMPTY@orgs/late" {
		t.Errorf("issues %s: %+v", got.problems(), got.issues)
	}
	if s.made != 2 {
		t.Errorf("%d tokens were made, want one for each installation", s.made)
	}

	// Only the owner's installation sees a private repository. If an app fails, a missing
	// repository is not certainly gone.
	prefix := "github:" + strings.TrimPrefix(s.URL, "http://") + ":"
	if r, chosen, err := h.(Finder).Lookup(t.Context(), prefix+"11"); err != nil || !chosen || r.DisplayName != "acme/app" {
		t.Errorf("a look-up: %+v, %v, %v", r, chosen, err)
	}
	if _, _, err := h.(Finder).Lookup(t.Context(), prefix+"99"); err == nil || errors.Is(err, ErrGone) {
		t.Errorf("a look-up of what nobody sees: %v", err)
	}
	conn.Orgs = []string{"acme"}
	if _, _, err := h.(Finder).Lookup(t.Context(), prefix+"99"); !errors.Is(err, ErrGone) {
		t.Errorf("a look-up of what is gone: %v", err)
	}
}

// Git fetches with the installation's token, which is renewed before it ends.
func TestGitHubApp_renewsTokens(t *testing.T) {
	t.Parallel()
	s, tools := newAppSite(t)
	conn := &config.GitHub{URL: s.URL, Token: &config.Token{Env: "T"}, Orgs: []string{"acme"}}
	var passwords []string
	for _, c := range []struct {
		repo string
		wait time.Duration
	}{{"acme/app.git", 0}, {"ACME/app.git", 40 * time.Minute}, {"acme/app.git", 11 * time.Minute}, {"other/tool.git", 0}} {
		if err := tools.Wait(t.Context(), c.wait); err != nil {
			t.Fatal(err)
		}
		cred, err := Credential(t.Context(), conn, s.URL+"/"+c.repo, tools)
		if err != nil || cred.User != "x-access-token" {
			t.Fatalf("%s: %+v, %v", c.repo, cred.User, err)
		}
		passwords = append(passwords, cred.Password)
	}
	if want := []string{"ghs_1_1", "ghs_1_1", "ghs_1_2", "sekret"}; !slices.Equal(passwords, want) {
		t.Errorf("git is given %v, want %v", passwords, want)
	}
}

// The error of an invalid key does not contain the key.
func TestGitHubApp_errorHidesAnInvalidKey(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"hunter2", "-----BEGIN PRIVATE KEY-----\naHVudGVyMg==\n-----END PRIVATE KEY-----\n"} {
		if _, err := rsaKey(text); err == nil || strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "aHVu") {
			t.Errorf("%q: %v", text, err)
		}
	}
}
