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
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/shoalsearch/shoal/cluster/config"
)

const (
	installationsTTL     = 10 * time.Minute // cache time of the list of installations
	installationTokenTTL = 50 * time.Minute // use time of a token, which is valid for an hour
)

// Installations returns tokens of GitHub Apps. Owners of repositories install an app. Each
// installation has a token, which is renewed before it ends. Installations is safe for concurrent
// use.
type Installations struct {
	mu   sync.Mutex // guards the field below
	apps map[string]*githubApp
}

// NewInstallations returns an Installations without tokens.
func NewInstallations() *Installations { return &Installations{apps: map[string]*githubApp{}} }

// githubApp is one app at one host.
type githubApp struct {
	*client
	app config.App

	mu      sync.Mutex // guards the fields below; held during requests
	listed  time.Time
	ids     map[string]int64 // of installations, by owner in lower case
	stopped map[string]bool  // owners who suspended their installation
	tokens  map[int64]madeToken
}

type madeToken struct {
	secret string
	made   time.Time
}

// errNotInstalled is the error for an owner without an installed app.
var errNotInstalled = errors.New("no GitHub App is installed there")

// tokenOf returns the token of an owner's installation, of the first app at a site that has one.
func (s *Installations) tokenOf(ctx context.Context, t Tools, web *url.URL, owner string) (string, error) {
	err := errNotInstalled
	for _, app := range appsOf(t, web) {
		secret, failed := s.appState(t, web, app).token(ctx, owner)
		if failed == nil {
			return secret, nil
		}
		if !errors.Is(failed, errNotInstalled) {
			err = failed
		}
	}
	return "", err
}

// appsOf returns the configured apps of a site.
func appsOf(t Tools, web *url.URL) (apps []config.App) {
	if t.Apps == nil || t.Installations == nil {
		return nil
	}
	for _, app := range t.Apps() {
		if app.Type == "github" && strings.EqualFold(app.DeploymentHostname, web.Host) {
			apps = append(apps, app)
		}
	}
	return apps
}

// appState returns the state of an app, which it creates on first use. Changed settings give a new one.
func (s *Installations) appState(t Tools, web *url.URL, app config.App) *githubApp {
	key := strings.Join([]string{web.String(), app.ID, app.PrivateKey.String()}, " ")

	s.mu.Lock()
	defer s.mu.Unlock()
	if s.apps[key] == nil {
		// A changed key makes a new app, so that no old token is used.
		a := &githubApp{app: app, tokens: map[int64]madeToken{}}
		a.client = githubClient(t, web, "GitHub App "+app.ID, "app "+app.ID, func(ctx context.Context) (string, error) {
			signed, err := a.sign(ctx)
			return "Bearer " + signed, err
		})
		s.apps[key] = a
	}
	return s.apps[key]
}

// token returns the token of an owner's installation, cached until it must be renewed. It returns
// errNotInstalled if the owner has not installed the app.
func (a *githubApp) token(ctx context.Context, owner string) (string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()

	owner, now := strings.ToLower(owner), a.tools.Now()

	// An unknown owner may have just installed the app. List again, at most once a minute.
	if _, known := a.ids[owner]; !known && now.Sub(a.listed) > time.Minute || now.Sub(a.listed) > installationsTTL {
		if err := a.listInstallations(ctx); err != nil {
			return "", fmt.Errorf("GitHub App %s: %w", a.app.ID, err)
		}
	}

	if a.stopped[owner] {
		return "", refusal(Forbidden, 0, "%s has suspended the GitHub App %s", owner, a.app.ID)
	}

	id, known := a.ids[owner]
	if !known {
		return "", errNotInstalled
	}

	// A token is valid for an hour, and renewed some minutes before.
	if issued := a.tokens[id]; issued.secret != "" && now.Sub(issued.made) < installationTokenTTL {
		return issued.secret, nil
	}

	var fresh struct {
		Token string `json:"token"`
	}
	at := a.at(nil, "app", "installations", strconv.FormatInt(id, 10), "access_tokens")
	if _, err := a.callWithRetry(ctx, apiCall{at: at, method: http.MethodPost}, &fresh); err != nil {
		return "", fmt.Errorf("GitHub App %s: make a token for %s: %w", a.app.ID, owner, err)
	}

	if fresh.Token == "" {
		return "", refusal(InvalidResponse, http.StatusOK, "GitHub made no token for %s", owner)
	}

	a.tokens[id] = madeToken{fresh.Token, now}
	return fresh.Token, nil
}

// listInstallations asks where the app is installed. Callers hold the mutex.
func (a *githubApp) listInstallations(ctx context.Context) error {
	type installation struct {
		ID        int64      `json:"id"`
		Account   githubUser `json:"account"`
		Suspended *time.Time `json:"suspended_at"`
	}

	// Keep the last list until the new one is complete.
	ids, stopped := map[string]int64{}, map[string]bool{}
	take := func(i *installation) error {
		owner := strings.ToLower(i.Account.Login)
		ids[owner], stopped[owner] = i.ID, i.Suspended != nil
		return nil
	}

	first := a.at(url.Values{"per_page": {"100"}}, "app", "installations")
	err := listArrays(ctx, a.client, first, nil, take, func(at *url.URL, head http.Header, _ int) *url.URL { return a.nextLink(at, head) })
	if err != nil {
		return err
	}

	a.ids, a.stopped, a.listed = ids, stopped, a.tools.Now()
	return nil
}

// sign returns the JSON web token that proves the app's identity, valid for nine minutes by the
// host's clock. If it is refused, the client calls sign again. By then it knows the host's time,
// and sign reads the key again.
func (a *githubApp) sign(ctx context.Context) (string, error) {
	text, err := a.tools.secretOf(ctx, "the private key of GitHub App "+a.app.ID, *a.app.PrivateKey)
	if err != nil {
		return "", err
	}
	key, err := rsaKey(text)
	if err != nil {
		return "", fmt.Errorf("the private key of GitHub App %s: %w", a.app.ID, err)
	}

	now := a.hostNow()
	claims, err := json.Marshal(map[string]any{"iat": now.Add(-time.Minute).Unix(), "exp": now.Add(9 * time.Minute).Unix(), "iss": a.app.ID})
	if err != nil {
		return "", err
	}

	// header.claims.signature, each in base64
	b64 := base64.RawURLEncoding.EncodeToString
	signed := b64([]byte(`{"alg":"RS256","typ":"JWT"}`)) + "." + b64(claims)

	sum := sha256.Sum256([]byte(signed))
	signature, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, sum[:])
	if err != nil {
		return "", fmt.Errorf("sign as GitHub App %s: %w", a.app.ID, err)
	}
	return signed + "." + b64(signature), nil
}

// rsaKey parses a PEM key in either common form. In a variable, \n may be written instead of line
// ends.
func rsaKey(text string) (*rsa.PrivateKey, error) {
	block, _ := pem.Decode([]byte(strings.ReplaceAll(text, `\n`, "\n")))
	if block == nil {
		return nil, errors.New("it is not PEM, which begins with -----BEGIN")
	}

	if key, err := x509.ParsePKCS1PrivateKey(block.Bytes); err == nil {
		return key, nil
	}

	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, errors.New("it holds no private key") // the library's error may quote the key
	}

	r, ok := key.(*rsa.PrivateKey)
	if !ok {
		return nil, errors.New("it is not an RSA key")
	}
	return r, nil
}
