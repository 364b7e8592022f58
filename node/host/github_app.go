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
	installationsLife = 10 * time.Minute // of the list of an app's installations
	installationToken = 50 * time.Minute // that a token is used, of the hour that it is good
)

// Installations gives tokens of GitHub Apps. An app is installed by the owners
// of repositories; each installation has a token of its own, which is made
// anew before it ends. It may be used from any goroutine.
type Installations struct {
	mu   sync.Mutex // guards the field below
	apps map[string]*githubApp
}

// NewInstallations returns one that knows no token yet.
func NewInstallations() *Installations { return &Installations{apps: map[string]*githubApp{}} }

// githubApp is one app at one host.
type githubApp struct {
	*client
	app config.App

	mu      sync.Mutex // guards the fields below, and is held while the host is asked
	listed  time.Time
	ids     map[string]int64 // of installations, by their owners in lower case
	stopped map[string]bool  // owners that have suspended theirs
	tokens  map[int64]madeToken
}

type madeToken struct {
	secret string
	made   time.Time
}

// errNotInstalled is the error for an owner who has not installed an app.
var errNotInstalled = errors.New("no GitHub App is installed there")

// token returns the token of the installation of an owner, of the first app of a
// site that has one.
func (s *Installations) token(ctx context.Context, t Tools, web *url.URL, owner string) (string, error) {
	err := errNotInstalled
	for _, app := range appsOf(t, web) {
		secret, failed := s.of(t, web, app).token(ctx, owner)
		if failed == nil {
			return secret, nil
		}
		if !errors.Is(failed, errNotInstalled) {
			err = failed
		}
	}
	return "", err
}

// appsOf are the apps of the configuration that are registered at a site.
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

// of returns what is known of an app, by all that it is.
func (s *Installations) of(t Tools, web *url.URL, app config.App) *githubApp {
	key := strings.Join([]string{web.String(), app.ID, app.PrivateKey.String()}, " ")

	s.mu.Lock()
	defer s.mu.Unlock()
	if s.apps[key] == nil {
		// A key that was changed is another app: nothing of the last one is used on.
		a := &githubApp{app: app, tokens: map[int64]madeToken{}}
		a.client = githubClient(t, web, "GitHub App "+app.ID, "app "+app.ID, func(ctx context.Context) (string, error) {
			signed, err := a.sign(ctx)
			return "Bearer " + signed, err
		})
		s.apps[key] = a
	}
	return s.apps[key]
}

// token returns the token of the installation of an owner.
func (a *githubApp) token(ctx context.Context, owner string) (string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()

	owner, now := strings.ToLower(owner), a.tools.Now()

	// An owner who is not known may have installed it just now: that is asked for once a
	// minute at most.
	if _, known := a.ids[owner]; !known && now.Sub(a.listed) > time.Minute || now.Sub(a.listed) > installationsLife {
		if err := a.list(ctx); err != nil {
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

	// A token is good for an hour, and is made anew some minutes before.
	if made := a.tokens[id]; made.secret != "" && now.Sub(made.made) < installationToken {
		return made.secret, nil
	}

	var fresh struct {
		Token string `json:"token"`
	}
	at := a.at(nil, "app", "installations", strconv.FormatInt(id, 10), "access_tokens")
	if _, err := a.retry(ctx, question{at: at, method: http.MethodPost}, &fresh); err != nil {
		return "", fmt.Errorf("GitHub App %s: make a token for %s: %w", a.app.ID, owner, err)
	}

	if fresh.Token == "" {
		return "", refusal(InvalidResponse, http.StatusOK, "GitHub made no token for %s", owner)
	}

	a.tokens[id] = madeToken{fresh.Token, now}
	return fresh.Token, nil
}

// list asks where the app is installed. The mutex is held.
func (a *githubApp) list(ctx context.Context) error {
	type installation struct {
		ID        int64      `json:"id"`
		Account   githubUser `json:"account"`
		Suspended *time.Time `json:"suspended_at"`
	}

	// The last answer stays in force until the whole list is there.
	ids, stopped := map[string]int64{}, map[string]bool{}
	take := func(i *installation) error {
		owner := strings.ToLower(i.Account.Login)
		ids[owner], stopped[owner] = i.ID, i.Suspended != nil
		return nil
	}

	first := a.at(url.Values{"per_page": {"100"}}, "app", "installations")
	err := arrays(ctx, a.client, first, nil, take, func(at *url.URL, head http.Header, _ int) *url.URL { return a.nextLink(at, head) })
	if err != nil {
		return err
	}

	a.ids, a.stopped, a.listed = ids, stopped, a.tools.Now()
	return nil
}

// sign makes the JSON web token by which an app proves what it is, for nine
// minutes by the clock of the host. A proof that is refused is made once more: by
// then the host has told what time it is there, and the key is read anew each time.
func (a *githubApp) sign(ctx context.Context) (string, error) {
	text, err := a.tools.secretOf(ctx, "the private key of GitHub App "+a.app.ID, *a.app.PrivateKey)
	if err != nil {
		return "", err
	}
	key, err := rsaKey(text)
	if err != nil {
		return "", fmt.Errorf("the private key of GitHub App %s: %w", a.app.ID, err)
	}

	now := a.theirs()
	claims, err := json.Marshal(map[string]any{"iat": now.Add(-time.Minute).Unix(), "exp": now.Add(9 * time.Minute).Unix(), "iss": a.app.ID})
	if err != nil {
		return "", err
	}

	// The token is header.claims.signature, each in base64.
	b64 := base64.RawURLEncoding.EncodeToString
	signed := b64([]byte(`{"alg":"RS256","typ":"JWT"}`)) + "." + b64(claims)

	sum := sha256.Sum256([]byte(signed))
	signature, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, sum[:])
	if err != nil {
		return "", fmt.Errorf("sign as GitHub App %s: %w", a.app.ID, err)
	}
	return signed + "." + b64(signature), nil
}

// rsaKey reads a key in PEM, in one of the two forms that are in use. In a
// variable its lines may be joined by \n.
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
		return nil, errors.New("it holds no private key") // what the library says may quote it
	}

	r, ok := key.(*rsa.PrivateKey)
	if !ok {
		return nil, errors.New("it is not an RSA key")
	}
	return r, nil
}
