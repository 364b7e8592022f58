package node

import (
	"bytes"
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
	"io"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/shoalsearch/shoal/cluster/config"
)

// environment is the process environment with the overrides of the
// configuration over it, and the one place where token references become
// secrets. Nothing of a secret is ever logged or proposed.
type environment struct {
	n      *Node
	client *http.Client

	mu     sync.Mutex // guards the fields below
	cached map[string]cachedSecret
	token  cachedSecret // access token for the secret manager
}

type cachedSecret struct {
	value string
	until time.Time
}

// secretTime is how long a secret of the manager is kept.
const secretTime = 5 * time.Minute

func newEnvironment(n *Node) *environment {
	return &environment{n: n, client: &http.Client{Timeout: 20 * time.Second}, cached: map[string]cachedSecret{}}
}

// lookup gives a variable: an override of the configuration wins over the
// environment of the process. An override by reference that cannot be
// resolved counts as unset, and is logged.
func (e *environment) lookup(name string) (string, bool) {
	for _, o := range e.n.cluster.View().File().Overrides {
		if o.Name != name {
			continue
		}
		if o.Token == nil {
			return o.Value, true
		}
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		value, err := e.secret(ctx, *o.Token)
		if err != nil {
			e.n.opt.Log.Error("an environment override cannot be resolved", "name", name, "err", err)
			return "", false
		}
		return value, true
	}
	return e.n.opt.LookupEnv(name)
}

// flag gives a variable that must be true or false; anything else is unset.
func (e *environment) flag(name string) (value, set bool) {
	text, _ := e.lookup(name)
	value, err := strconv.ParseBool(strings.TrimSpace(text))
	return value, err == nil
}

// secret gives the value of a token reference.
func (e *environment) secret(ctx context.Context, t config.Token) (string, error) {
	if t.Env != "" {
		// The environment of the process, not the overrides: an override that
		// refers to itself would never end.
		value, ok := e.n.opt.LookupEnv(t.Env)
		if !ok || value == "" {
			return "", fmt.Errorf("environment variable %s is not set", t.Env)
		}
		return value, nil
	}
	e.mu.Lock()
	have, ok := e.cached[t.GoogleCloud]
	e.mu.Unlock()
	if ok && e.n.opt.Now().Before(have.until) {
		return have.value, nil
	}
	value, err := e.googleSecret(ctx, t.GoogleCloud)
	if err != nil {
		return "", fmt.Errorf("secret %s: %w", t.GoogleCloud, err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.cached[t.GoogleCloud] = cachedSecret{value, e.n.opt.Now().Add(secretTime)}
	return value, nil
}

// secretName is the shape of a secret's name, so that it can stand in a URL.
func secretName() *regexp.Regexp {
	return regexp.MustCompile(`^projects/[A-Za-z0-9:._-]+/secrets/[A-Za-z0-9_-]+/versions/[A-Za-z0-9_-]+$`)
}

// googleSecret asks Google Secret Manager, with the credentials that the
// Google libraries would use.
func (e *environment) googleSecret(ctx context.Context, name string) (string, error) {
	if !secretName().MatchString(name) {
		return "", errors.New("must be projects/<project>/secrets/<secret>/versions/<version>")
	}
	token, err := e.googleToken(ctx)
	if err != nil {
		return "", err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://secretmanager.googleapis.com/v1/"+name+":access", nil)
	if err != nil {
		return "", err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	var answer struct {
		Payload struct {
			Data []byte `json:"data"`
		} `json:"payload"`
	}
	if err := e.fetch(req, &answer); err != nil {
		return "", err
	}
	return string(bytes.TrimRight(answer.Payload.Data, "\r\n")), nil
}

// googleToken gives an access token: from the key file that
// GOOGLE_APPLICATION_CREDENTIALS names, else from the metadata server of a
// machine at Google.
func (e *environment) googleToken(ctx context.Context) (string, error) {
	e.mu.Lock()
	have := e.token
	e.mu.Unlock()
	if have.value != "" && e.n.opt.Now().Before(have.until) {
		return have.value, nil
	}
	var req *http.Request
	var err error
	if path, ok := e.n.opt.LookupEnv("GOOGLE_APPLICATION_CREDENTIALS"); ok && path != "" {
		req, err = e.tokenRequest(ctx, path)
	} else {
		req, err = http.NewRequestWithContext(ctx, http.MethodGet, "http://metadata.google.internal/computeMetadata/v1/instance/service-accounts/default/token", nil)
		if err == nil {
			req.Header.Set("Metadata-Flavor", "Google")
		}
	}
	if err != nil {
		return "", err
	}
	var answer struct {
		AccessToken string `json:"access_token"`
		ExpiresIn   int    `json:"expires_in"`
	}
	if err := e.fetch(req, &answer); err != nil {
		return "", fmt.Errorf("no Google credentials: set GOOGLE_APPLICATION_CREDENTIALS to a key file, or run at Google: %w", err)
	}
	if answer.AccessToken == "" {
		return "", errors.New("no Google credentials: the answer has no token")
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.token = cachedSecret{answer.AccessToken, e.n.opt.Now().Add(time.Duration(answer.ExpiresIn)*time.Second - time.Minute)}
	return answer.AccessToken, nil
}

// credentials is a key file of Google.
type credentials struct {
	Type         string `json:"type"`
	ClientEmail  string `json:"client_email"`
	PrivateKey   string `json:"private_key"`
	TokenURI     string `json:"token_uri"`
	ClientID     string `json:"client_id"`
	ClientSecret string `json:"client_secret"`
	RefreshToken string `json:"refresh_token"`
}

// tokenRequest asks for a token with a key file.
func (e *environment) tokenRequest(ctx context.Context, path string) (*http.Request, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("google credentials: %w", err)
	}
	var c credentials
	if err := json.Unmarshal(raw, &c); err != nil {
		return nil, fmt.Errorf("google credentials in %s: %w", path, err)
	}
	if c.TokenURI == "" {
		c.TokenURI = "https://oauth2.googleapis.com/token"
	}
	form := url.Values{}
	switch c.Type {
	case "service_account":
		assertion, err := c.sign(e.n.opt.Now())
		if err != nil {
			return nil, fmt.Errorf("google credentials in %s: %w", path, err)
		}
		form.Set("grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer")
		form.Set("assertion", assertion)
	case "authorized_user":
		form.Set("grant_type", "refresh_token")
		form.Set("client_id", c.ClientID)
		form.Set("client_secret", c.ClientSecret)
		form.Set("refresh_token", c.RefreshToken)
	default:
		return nil, fmt.Errorf("google credentials in %s: type %q is not supported: use service_account or authorized_user", path, c.Type)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.TokenURI, strings.NewReader(form.Encode()))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return req, nil
}

// sign makes the signed assertion of a service account.
func (c *credentials) sign(now time.Time) (string, error) {
	block, _ := pem.Decode([]byte(c.PrivateKey))
	if block == nil {
		return "", errors.New("the private key is not PEM")
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return "", err
	}
	key, ok := parsed.(*rsa.PrivateKey)
	if !ok {
		return "", errors.New("the private key is not RSA")
	}
	claims, err := json.Marshal(map[string]any{
		"iss": c.ClientEmail, "scope": "https://www.googleapis.com/auth/cloud-platform", "aud": c.TokenURI,
		"iat": now.Unix(), "exp": now.Add(time.Hour).Unix(),
	})
	if err != nil {
		return "", err
	}
	enc := base64.RawURLEncoding
	text := enc.EncodeToString([]byte(`{"alg":"RS256","typ":"JWT"}`)) + "." + enc.EncodeToString(claims)
	sum := sha256.Sum256([]byte(text))
	sig, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, sum[:])
	if err != nil {
		return "", err
	}
	return text + "." + enc.EncodeToString(sig), nil
}

// fetch does a request and decodes its answer.
func (e *environment) fetch(req *http.Request, into any) error {
	resp, err := e.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", req.URL.Host, resp.Status)
	}
	return json.Unmarshal(body, into)
}

// alwaysPatterns is ALWAYS_INDEX_FILE_PATTERNS: globs of paths that the
// limits of size and trigrams do not concern.
func (n *Node) alwaysPatterns() []string {
	text, _ := n.env.lookup("ALWAYS_INDEX_FILE_PATTERNS")
	var out []string
	for _, p := range strings.Split(text, ",") {
		if p = strings.TrimSpace(p); p != "" {
			out = append(out, p)
		}
	}
	return out
}

// defaultMatches is the bound of a search that names none.
func (n *Node) defaultMatches() int {
	text, _ := n.env.lookup("DEFAULT_MAX_MATCH_COUNT")
	if m, err := strconv.Atoi(strings.TrimSpace(text)); err == nil && m >= 1 {
		return min(m, maxMatches)
	}
	return defaultMatches
}

// AnonymousAccess reports whether a request without a credential is served:
// FORCE_ENABLE_ANONYMOUS_ACCESS decides, without it the deprecated
// settings.enablePublicAccess.
func (n *Node) AnonymousAccess() bool {
	if value, set := n.env.flag("FORCE_ENABLE_ANONYMOUS_ACCESS"); set {
		return value
	}
	return n.cluster.View().File().Settings.EnablePublicAccess
}
