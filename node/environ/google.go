package environ

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/jwt"

	"github.com/shoalsearch/shoal/clock"
)

// secretName matches names of secrets, which are safe in a URL.
func secretName() *regexp.Regexp {
	return regexp.MustCompile(`^projects/[A-Za-z0-9:._-]+/secrets/[A-Za-z0-9_-]+/versions/[A-Za-z0-9_-]+$`)
}

// googleSecret reads a secret from Google Secret Manager, with the credentials that Google's
// libraries would use.
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

	// Editors may have added a newline at the end.
	return string(bytes.TrimRight(answer.Payload.Data, "\r\n")), nil
}

// GoogleToken returns an access token for Google Cloud. It comes from a key file: the given one, or
// else the one in GOOGLE_APPLICATION_CREDENTIALS. Without a key file it comes from the metadata
// server of a Google machine. Tokens are cached until a minute before they end. Concurrent callers
// share one request.
func (e *Environment) GoogleToken(ctx context.Context, path string) (string, error) {
	if path == "" {
		path, _ = e.d.Process("GOOGLE_APPLICATION_CREDENTIALS")
	}

	if have := e.cachedToken(path); have != "" {
		return have, nil
	}

	// The request continues if this caller gives up, because others may wait for it. The HTTP
	// client limits its time.
	asked := e.asking.DoChan(path, func() (any, error) {
		// An earlier request may have ended just now.
		if have := e.cachedToken(path); have != "" {
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

// cachedToken returns the valid cached token of a key file, or "".
func (e *Environment) cachedToken(path string) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	if have := e.tokens[path]; e.d.Now().Before(have.until) {
		return have.value
	}
	return ""
}

// newToken requests a token and caches it.
func (e *Environment) newToken(ctx context.Context, path string) (string, error) {
	// Without a key file, ask the machine. Only Google's machines answer.
	var token string
	var lasts time.Duration
	var err error
	if path == "" {
		token, lasts, err = e.machineToken(ctx)
	} else if token, lasts, err = e.fileToken(ctx, path); err != nil {
		err = fmt.Errorf("google credentials in %s: %w", path, err)
	}
	if err != nil {
		return "", err
	}

	if token == "" {
		return "", errors.New("no Google credentials: the answer has no token")
	}

	// End it a minute early, so that no call is under way with an ended token.
	now := e.d.Now()
	until := now.Add(lasts - time.Minute)

	e.mu.Lock()
	defer e.mu.Unlock()
	e.tokens[path] = cachedSecret{value: token, from: now, until: until}
	return token, nil
}

// machineToken asks the metadata server, which only Google's machines have.
func (e *Environment) machineToken(ctx context.Context) (token string, lasts time.Duration, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://metadata.google.internal/computeMetadata/v1/instance/service-accounts/default/token", nil)
	if err != nil {
		return "", 0, err
	}
	req.Header.Set("Metadata-Flavor", "Google")

	var answer struct {
		AccessToken string `json:"access_token"`
		ExpiresIn   int    `json:"expires_in"`
	}
	if err := e.fetch(req, &answer); err != nil {
		return "", 0, fmt.Errorf("no Google credentials: set GOOGLE_APPLICATION_CREDENTIALS to a key file, or run at Google: %w", err)
	}
	return answer.AccessToken, time.Duration(answer.ExpiresIn) * time.Second, nil
}

// fileToken requests a token with a key file.
func (e *Environment) fileToken(ctx context.Context, path string) (token string, lasts time.Duration, err error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return "", 0, err
	}

	var key struct {
		Type         string `json:"type"`
		ClientEmail  string `json:"client_email"`
		PrivateKey   string `json:"private_key"`
		TokenURI     string `json:"token_uri"`
		ClientID     string `json:"client_id"`
		ClientSecret string `json:"client_secret"`
		RefreshToken string `json:"refresh_token"`
	}
	if err := json.Unmarshal(raw, &key); err != nil {
		return "", 0, err
	}
	at := cmp.Or(key.TokenURI, "https://oauth2.googleapis.com/token")

	// Google has two kinds of key files. That of a service account has a signing key; that of a
	// person has a refresh token.
	var source oauth2.TokenSource
	ctx = context.WithValue(ctx, oauth2.HTTPClient, e.client)
	switch key.Type {
	case "service_account":
		account := jwt.Config{Email: key.ClientEmail, PrivateKey: []byte(key.PrivateKey), TokenURL: at, Scopes: []string{"https://www.googleapis.com/auth/cloud-platform"}}
		source = account.TokenSource(ctx)
	case "authorized_user":
		person := oauth2.Config{ClientID: key.ClientID, ClientSecret: key.ClientSecret, Endpoint: oauth2.Endpoint{TokenURL: at, AuthStyle: oauth2.AuthStyleInParams}}
		source = person.TokenSource(ctx, &oauth2.Token{RefreshToken: key.RefreshToken})
	default:
		return "", 0, fmt.Errorf("type %q is not supported: use service_account or authorized_user", key.Type)
	}

	// Leave the body out of the error, because it may repeat the secret.
	got, err := source.Token()
	if refused := (*oauth2.RetrieveError)(nil); errors.As(err, &refused) {
		return "", 0, fmt.Errorf("%s answers %s", at, refused.Response.Status)
	}
	if err != nil {
		return "", 0, err
	}
	return got.AccessToken, got.Expiry.Sub(clock.Now()).Round(time.Second), nil
}

// fetch sends a request and decodes the answer.
func (e *Environment) fetch(req *http.Request, into any) error {
	resp, err := e.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()

	// Answers are small. The limit protects against a wrong server.
	body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return err
	}

	// Leave out the body, because it may repeat the secret.
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", req.URL.Host, resp.Status)
	}
	return json.Unmarshal(body, into)
}
