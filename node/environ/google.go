package environ

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
	"strings"
	"time"
)

// secretName is the shape of a secret's name, so that it can stand in a URL.
func secretName() *regexp.Regexp {
	return regexp.MustCompile(`^projects/[A-Za-z0-9:._-]+/secrets/[A-Za-z0-9_-]+/versions/[A-Za-z0-9_-]+$`)
}

// googleSecret asks Google Secret Manager, with the credentials that the
// Google libraries would use.
func (e *Environment) googleSecret(ctx context.Context, name string) (string, error) {
	if !secretName().MatchString(name) {
		return "", errors.New("must be projects/<project>/secrets/<secret>/versions/<version>")
	}

	token, err := e.GoogleToken(ctx, "")
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

	// Who wrote it with an editor left a newline behind it.
	return string(bytes.TrimRight(answer.Payload.Data, "\r\n")), nil
}

// GoogleToken gives an access token for Google's cloud: from a key file, where
// none is given from the one that GOOGLE_APPLICATION_CREDENTIALS names, else
// from the metadata server of a machine at Google. A token is kept until a
// minute before its end; many who need the next one at once ask for it once.
func (e *Environment) GoogleToken(ctx context.Context, path string) (string, error) {
	if path == "" {
		path, _ = e.d.Process("GOOGLE_APPLICATION_CREDENTIALS")
	}

	if have := e.keptToken(path); have != "" {
		return have, nil
	}

	// Who gives up does not end the question of the others; the client bounds it.
	asked := e.asking.DoChan(path, func() (any, error) {
		// The one before may have brought it while this one was on its way here.
		if have := e.keptToken(path); have != "" {
			return have, nil
		}
		return e.newToken(context.WithoutCancel(ctx), path)
	})
	select {
	case <-ctx.Done():
		return "", ctx.Err()
	case r := <-asked:
		if r.Err != nil {
			return "", r.Err
		}
		return r.Val.(string), nil
	}
}

// keptToken is the token of a key file that has not ended, "" for none.
func (e *Environment) keptToken(path string) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	if have := e.tokens[path]; e.d.Now().Before(have.until) {
		return have.value
	}
	return ""
}

// newToken asks for a token and keeps it.
func (e *Environment) newToken(ctx context.Context, path string) (string, error) {
	// Without a key file, the machine itself is asked: at Google it answers.
	var req *http.Request
	var err error
	if path != "" {
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

	// A minute early, so that no call is under way with a token that ends.
	now := e.d.Now()
	until := now.Add(time.Duration(answer.ExpiresIn)*time.Second - time.Minute)

	e.mu.Lock()
	defer e.mu.Unlock()
	e.tokens[path] = cachedSecret{value: answer.AccessToken, from: now, until: until}
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
func (e *Environment) tokenRequest(ctx context.Context, path string) (*http.Request, error) {
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

	// Google has two kinds of key files: of a service, which signs, and of a person, who has a token.
	form := url.Values{}
	switch c.Type {
	case "service_account":
		assertion, err := c.sign(e.d.Now())
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

	// Google writes its key files in this form, and with keys of this kind, alone.
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

	// The token is header.claims.signature, each in base64.
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
func (e *Environment) fetch(req *http.Request, into any) error {
	resp, err := e.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()

	// An answer has a few kilobytes: who sends more is somebody else.
	body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return err
	}

	// The body is not told: it may repeat what was sent.
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", req.URL.Host, resp.Status)
	}
	return json.Unmarshal(body, into)
}
