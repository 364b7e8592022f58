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
	title  string   // default display name
	base   string   // default URL; "": none
	scopes []string // for knowing who the person is
	way    way
	asks   *asking // nil: the host cannot be asked in people's names
}

// asking tells how to ask a code host what a person may read.
type asking struct {
	scopes []string // further scopes that allow it
	open   host.OpenOwn
	user   bool // a token needs the person's user name
}

// way is how a kind of provider authenticates a person.
type way interface {
	// reach returns the endpoints and the authority of a provider. A proxy in front of this service
	// has only an authority.
	reach(ctx context.Context, s *Server, p *provider) (*reached, error)
	// who returns the identity of the person who got a token. It does not use the provider's own
	// names.
	who(ctx context.Context, s *Server, p *provider, at *reached, t *oauth2.Token, nonce string) (account.Proof, error)
}

// kinds is the table of providers. To add one, add a row, a definition in the schema of the
// configuration, and a row in docs/reference/sign-in.md.
var kinds = []kind{
	{"google", "Google", "https://accounts.google.com", openIDScopes, openID{proven: saysVerified}, nil},
	{"okta", "Okta", "", openIDScopes, openID{proven: saysVerified}, nil},
	{"keycloak", "Keycloak", "", openIDScopes, openID{proven: saysVerified}, nil},
	{"authentik", "authentik", "", openIDScopes, openID{proven: saysVerified}, nil},
	{"jumpcloud", "JumpCloud", "", openIDScopes, openID{proven: saysVerified}, nil},
	{"idira", "Idira", "", openIDScopes, openID{proven: saysVerified}, nil},
	{"auth0", "Auth0", "", openIDScopes, openID{proven: saysVerified}, nil},
	{"oidc", "Single sign-on", "", openIDScopes, openID{proven: saysVerified}, nil},

	// Its administrators may set any address. The subject differs per application, the object id
	// does not.
	{"microsoft-entra-id", "Microsoft", "", openIDScopes, openID{proven: domainOwned, subject: objectID}, nil},

	// GitLab confirms addresses. Gitea calls the address of every active account verified, even if
	// it has confirmed none.
	{"gitlab", "GitLab", "https://gitlab.com", openIDScopes, openID{proven: saysVerified}, &asking{scopes: []string{"read_api"}, open: host.GitLabOwn}},
	{"gitea", "Gitea", "https://gitea.com", openIDScopes, openID{proven: never}, giteaAsking},
	{"forgejo", "Forgejo", "https://codeberg.org", openIDScopes, openID{proven: never}, giteaAsking},

	{"github", "GitHub", "https://github.com", []string{"read:user", "user:email"}, gitHub{}, &asking{scopes: []string{"repo"}, open: host.GitHubOwn}},
	{"bitbucket-cloud", "Bitbucket", "https://bitbucket.org", []string{"account", "email"}, bitbucketCloud{}, &asking{scopes: []string{"repository"}, open: host.BitbucketCloudOwn}},
	{"gcp-iap", "Google", "", nil, proxied{}, nil},
	{"bitbucket-server", "Bitbucket", "", []string{"PUBLIC_REPOS"}, bitbucketServer{}, &asking{scopes: []string{"REPO_READ"}, open: host.BitbucketServerOwn}},

	// People create a token there and paste it here.
	{"azure-devops", "Azure DevOps", "https://dev.azure.com", nil, pasted{}, &asking{open: host.AzureDevOpsOwn}},
	{"gerrit", "Gerrit", "", nil, pasted{}, &asking{open: host.GerritOwn, user: true}},
}

// giteaAsking is shared by Gitea and Forgejo.
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
