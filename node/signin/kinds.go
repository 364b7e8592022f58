package signin

import (
	"context"

	"golang.org/x/oauth2"

	"github.com/shoalsearch/shoal/node/account"
)

// kind is a row of the table of providers.
type kind struct {
	name   string   // as in the configuration
	title  string   // for people, where the configuration names none
	base   string   // address of the provider where the configuration gives none; "" for none
	scopes []string // that say who somebody is
	way    way
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
// of the configuration, and a row of docs/people.md.
var kinds = []kind{
	{"google", "Google", "https://accounts.google.com", openIDScopes, openID{proven: saysVerified}},
	{"okta", "Okta", "", openIDScopes, openID{proven: saysVerified}},
	{"keycloak", "Keycloak", "", openIDScopes, openID{proven: saysVerified}},
	{"authentik", "authentik", "", openIDScopes, openID{proven: saysVerified}},
	{"jumpcloud", "JumpCloud", "", openIDScopes, openID{proven: saysVerified}},
	{"idira", "Idira", "", openIDScopes, openID{proven: saysVerified}},
	{"auth0", "Auth0", "", openIDScopes, openID{proven: saysVerified}},
	{"oidc", "Single sign-on", "", openIDScopes, openID{proven: saysVerified}},

	// Its administrators write addresses as they like; the subject differs for
	// each application, the object id does not.
	{"microsoft-entra-id", "Microsoft", "", openIDScopes, openID{proven: domainOwned, subject: objectID}},

	// GitLab confirms addresses. Gitea calls every active account's address
	// verified, also where it confirms none.
	{"gitlab", "GitLab", "https://gitlab.com", openIDScopes, openID{proven: saysVerified}},
	{"gitea", "Gitea", "https://gitea.com", openIDScopes, openID{proven: never}},
	{"forgejo", "Forgejo", "https://codeberg.org", openIDScopes, openID{proven: never}},

	{"github", "GitHub", "https://github.com", []string{"read:user", "user:email"}, gitHub{}},
	{"bitbucket-cloud", "Bitbucket", "https://bitbucket.org", []string{"account", "email"}, bitbucketCloud{}},
	{"gcp-iap", "Google", "", nil, proxied{}},
	{"bitbucket-server", "Bitbucket", "", []string{"PUBLIC_REPOS"}, bitbucketServer{}},
}

var openIDScopes = []string{"openid", "profile", "email"}

func kindNamed(name string) *kind {
	for i := range kinds {
		if kinds[i].name == name {
			return &kinds[i]
		}
	}
	return nil
}
