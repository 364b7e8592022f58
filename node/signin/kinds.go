package signin

import (
	"context"

	"golang.org/x/oauth2"

	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/host"
)

// kind is a row of the table of providers.
type kind struct {
	name   string   // as in the configuration
	title  string   // for people, where the configuration names none
	base   string   // address of the provider where the configuration gives none; "" for none
	scopes []string // that say who somebody is
	way    way
	asks   *asking // nil where nothing can be asked in somebody's name
}

// asking is how a code host is asked what somebody may read, in their name.
type asking struct {
	scopes []string // that allow it, beside those that say who somebody is
	open   host.OpenOwn
	user   bool // the person's name there goes with the token
}

// way is how a kind of provider tells who somebody is.
type way interface {
	// reach finds where a provider is asked, or by which name it answers where
	// it stands in front of this service and is never asked.
	reach(ctx context.Context, s *Server, p *provider) (*reached, error)
	// who tells who got a token. It fills in all of the proof but the names of
	// the provider.
	who(ctx context.Context, s *Server, p *provider, at *reached, t *oauth2.Token, nonce string) (account.Proof, error)
}

// kinds is the table of providers. To add one: a row, a definition in the schema
// of the configuration, and a row of docs/reference/sign-in.md.
var kinds = []kind{
	{"google", "Google", "https://accounts.google.com", openIDScopes, openID{proven: saysVerified}, nil},
	{"okta", "Okta", "", openIDScopes, openID{proven: saysVerified}, nil},
	{"keycloak", "Keycloak", "", openIDScopes, openID{proven: saysVerified}, nil},
	{"authentik", "authentik", "", openIDScopes, openID{proven: saysVerified}, nil},
	{"jumpcloud", "JumpCloud", "", openIDScopes, openID{proven: saysVerified}, nil},
	{"idira", "Idira", "", openIDScopes, openID{proven: saysVerified}, nil},
	{"auth0", "Auth0", "", openIDScopes, openID{proven: saysVerified}, nil},
	{"oidc", "Single sign-on", "", openIDScopes, openID{proven: saysVerified}, nil},

	// Its administrators write addresses as they like; the subject differs for
	// each application, the object id does not.
	{"microsoft-entra-id", "Microsoft", "", openIDScopes, openID{proven: domainOwned, subject: objectID}, nil},

	// GitLab confirms addresses. Gitea calls every active account's address
	// verified, also where it confirms none.
	{"gitlab", "GitLab", "https://gitlab.com", openIDScopes, openID{proven: saysVerified}, &asking{scopes: []string{"read_api"}, open: host.GitLabOwn}},
	{"gitea", "Gitea", "https://gitea.com", openIDScopes, openID{proven: never}, giteaAsking},
	{"forgejo", "Forgejo", "https://codeberg.org", openIDScopes, openID{proven: never}, giteaAsking},

	{"github", "GitHub", "https://github.com", []string{"read:user", "user:email"}, gitHub{}, &asking{scopes: []string{"repo"}, open: host.GitHubOwn}},
	{"bitbucket-cloud", "Bitbucket", "https://bitbucket.org", []string{"account", "email"}, bitbucketCloud{}, &asking{scopes: []string{"repository"}, open: host.BitbucketCloudOwn}},
	{"gcp-iap", "Google", "", nil, proxied{}, nil},
	{"bitbucket-server", "Bitbucket", "", []string{"PUBLIC_REPOS"}, bitbucketServer{}, &asking{scopes: []string{"REPO_READ"}, open: host.BitbucketServerOwn}},

	// These send nobody back: people make a token there, and show it.
	{"azure-devops", "Azure DevOps", "https://dev.azure.com", nil, pasted{}, &asking{open: host.AzureDevOpsOwn}},
	{"gerrit", "Gerrit", "", nil, pasted{}, &asking{open: host.GerritOwn, user: true}},
}

// giteaAsking is the same at Gitea and at Forgejo.
var giteaAsking = &asking{scopes: []string{"read:user", "read:repository"}, open: host.GiteaOwn}

var openIDScopes = []string{"openid", "profile", "email"}

func kindNamed(name string) *kind {
	for i := range kinds {
		if kinds[i].name == name {
			return &kinds[i]
		}
	}
	return nil
}
