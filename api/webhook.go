package api

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"

	"github.com/shoalsearch/shoal/node"
)

// webhook is POST /api/webhook/{connection}: a code host tells of a push. It
// has to be signed with the connection's secret, in whichever way the host
// signs, or carry an owner's key.
func (s *Server) webhook(ctx context.Context, c *call) error {
	body := c.requestBody()
	if !s.signed(c, body) {
		if err := s.authenticate(ctx, c, accessOwner); err != nil {
			return err
		}
	}
	req := node.WebhookRequest{Connection: c.wild[0]}
	if len(body) > 0 {
		var push pushJSON
		if err := json.Unmarshal(body, &push); err != nil {
			return invalidBody("malformed event: %v", err)
		}
		req.CloneURLs, req.Names = push.repositories()
	}
	r, err := s.node.Webhook(ctx, node.Owner(), req)
	if err != nil {
		return err
	}
	c.status = 202
	return c.json(struct {
		Repos []string `json:"repos"`
	}{list(r.Repos)})
}

// signed reports whether an event carries a good signature of its connection.
func (s *Server) signed(c *call, body []byte) bool {
	secret, err := s.node.WebhookSecret(c.wild[0])
	if err != nil || secret == "" {
		return false
	}
	if token := c.requestHeader("X-Gitlab-Token"); token != "" {
		return hmac.Equal([]byte(token), []byte(secret))
	}
	for _, name := range []string{"X-Hub-Signature-256", "X-Hub-Signature", "X-Gitea-Signature", "X-Shoal-Signature"} {
		if given := c.requestHeader(name); given != "" {
			mac := hmac.New(sha256.New, []byte(secret))
			mac.Write(body)
			want := hex.EncodeToString(mac.Sum(nil))
			return hmac.Equal([]byte(strings.TrimPrefix(given, "sha256=")), []byte(want))
		}
	}
	return false
}

// pushJSON is what the hosts' push events have in common with one another:
// somewhere in them the repository is named.
type pushJSON struct {
	Repository repositoryJSON `json:"repository"` // GitHub, Gitea, Bitbucket, GitLab
	Project    repositoryJSON `json:"project"`    // GitLab
	Resource   struct {
		Repository repositoryJSON `json:"repository"`
	} `json:"resource"` // Azure DevOps
}

type repositoryJSON struct {
	CloneURL   string `json:"clone_url"`
	HTMLURL    string `json:"html_url"`
	SSHURL     string `json:"ssh_url"`
	GitHTTPURL string `json:"git_http_url"`
	WebURL     string `json:"web_url"`
	RemoteURL  string `json:"remoteUrl"`
	FullName   string `json:"full_name"`
	Path       string `json:"path_with_namespace"`
	Links      struct {
		HTML struct {
			Href string `json:"href"`
		} `json:"html"`
	} `json:"links"`
}

func (p *pushJSON) repositories() (urls, names []string) {
	for _, r := range []repositoryJSON{p.Repository, p.Project, p.Resource.Repository} {
		for _, u := range []string{r.CloneURL, r.HTMLURL, r.SSHURL, r.GitHTTPURL, r.WebURL, r.RemoteURL, r.Links.HTML.Href} {
			if u != "" {
				urls = append(urls, u)
			}
		}
		for _, n := range []string{r.FullName, r.Path} {
			if n != "" {
				names = append(names, n)
			}
		}
	}
	return urls, names
}

// webhookSecret is GET /api/webhook/{connection}: what to enter at the code host.
func (s *Server) webhookSecret(_ context.Context, c *call) error {
	secret, err := s.node.WebhookSecret(c.wild[0])
	if err != nil {
		return err
	}
	return c.json(struct {
		URL    string `json:"url"`
		Secret string `json:"secret"`
	}{s.node.BaseURL() + "/api/webhook/" + c.wild[0], secret})
}
