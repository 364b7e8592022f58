package config

// Kind is the type of a connection, as written in the file.
type Kind string

// The kinds of connections.
const (
	KindGitHub      Kind = "github"
	KindGitLab      Kind = "gitlab"
	KindGitea       Kind = "gitea"
	KindGerrit      Kind = "gerrit"
	KindBitbucket   Kind = "bitbucket"
	KindAzureDevOps Kind = "azuredevops"
	KindGit         Kind = "git"
)

// Connection is one code host and what to list from it. Only GitHub, GitLab, Gitea, Gerrit,
// Bitbucket, AzureDevOps and Git implement it, always as pointers.
type Connection interface {
	Kind() Kind
	// Shared returns the properties that every kind has. It is never nil.
	Shared() *Common
	// Access returns the URL of the host and the token for it; nil: no token.
	Access() (address string, token *Token)
	isConnection()
}

// Common holds the properties of every kind of connection.
type Common struct {
	Name      string    `json:"-"` // the key in the file
	Revisions Revisions `json:"revisions"`

	// EnforcePermissions is nil if the file does not set it. Then PERMISSION_SYNC_ENABLED decides.
	EnforcePermissions               *bool `json:"enforcePermissions"`
	EnforcePermissionsForPublicRepos bool  `json:"enforcePermissionsForPublicRepos"`

	// Raw is the object of the file in canonical form: compact, with sorted keys. Two connections
	// with the same Raw list the same repositories.
	Raw string `json:"-"`
}

// Shared returns c.
func (c *Common) Shared() *Common { return c }

func (*Common) isConnection() {}

// Revisions selects the branches and tags to index besides HEAD, by globs on short names.
type Revisions struct {
	Branches []string `json:"branches"`
	Tags     []string `json:"tags"`
}

// MaxRevisions bounds the revisions of a repository that are indexed besides HEAD. The newest are
// indexed.
const MaxRevisions = 64

// Size is a range of sizes in bytes, both ends inclusive; nil: no bound.
type Size struct {
	Min *int64 `json:"min"`
	Max *int64 `json:"max"`
}

// GitHub is a connection to github.com or to a GitHub Enterprise server.
type GitHub struct {
	Common
	Token   *Token        `json:"token"`
	URL     string        `json:"url"` // default https://github.com
	Users   []string      `json:"users"`
	Orgs    []string      `json:"orgs"`
	Repos   []string      `json:"repos"` // owner/name
	Topics  []string      `json:"topics"`
	Exclude GitHubExclude `json:"exclude"`
}

// GitHubExclude selects repositories that a GitHub connection leaves out.
type GitHubExclude struct {
	Forks    bool     `json:"forks"`
	Archived bool     `json:"archived"`
	Repos    []string `json:"repos"`  // globs on owner/name
	Topics   []string `json:"topics"` // globs
	Size     Size     `json:"size"`
}

// GitLab is a connection to gitlab.com or to a GitLab server.
type GitLab struct {
	Common
	Token    *Token        `json:"token"`
	URL      string        `json:"url"`    // default https://gitlab.com
	WebURL   string        `json:"webUrl"` // for links; default URL
	All      bool          `json:"all"`    // ignored at gitlab.com
	Users    []string      `json:"users"`
	Groups   []string      `json:"groups"`   // with their subgroups
	Projects []string      `json:"projects"` // group/subgroup/project
	Topics   []string      `json:"topics"`
	Exclude  GitLabExclude `json:"exclude"`
}

// GitLabExclude selects projects that a GitLab connection leaves out.
type GitLabExclude struct {
	Forks             bool     `json:"forks"`
	Archived          bool     `json:"archived"`
	UserOwnedProjects bool     `json:"userOwnedProjects"`
	Projects          []string `json:"projects"` // globs on group/project
	Topics            []string `json:"topics"`   // globs
}

// Gitea is a connection to gitea.com or to a Gitea or Forgejo server.
type Gitea struct {
	Common
	Token   *Token       `json:"token"`
	URL     string       `json:"url"` // default https://gitea.com
	Orgs    []string     `json:"orgs"`
	Repos   []string     `json:"repos"` // owner/name
	Users   []string     `json:"users"`
	Exclude GiteaExclude `json:"exclude"`
}

// GiteaExclude selects repositories that a Gitea connection leaves out.
type GiteaExclude struct {
	Forks    bool     `json:"forks"`
	Archived bool     `json:"archived"`
	Repos    []string `json:"repos"` // globs on owner/name
}

// Gerrit is a connection to a Gerrit server.
type Gerrit struct {
	Common
	URL      string        `json:"url"`
	User     string        `json:"user"`
	Token    *Token        `json:"token"`    // the HTTP password of User; nil: anonymous
	Projects []string      `json:"projects"` // globs; empty: all
	Exclude  GerritExclude `json:"exclude"`
}

// GerritExclude selects projects that a Gerrit connection leaves out.
type GerritExclude struct {
	Projects []string `json:"projects"` // globs
	ReadOnly bool     `json:"readOnly"`
	Hidden   bool     `json:"hidden"`
}

// Deployment is whether a host is a cloud service or a server of its own.
type Deployment string

// The deployments of Bitbucket and Azure DevOps.
const (
	Cloud  Deployment = "cloud"
	Server Deployment = "server"
)

// Bitbucket is a connection to bitbucket.org or to a Bitbucket Data Center.
type Bitbucket struct {
	Common
	User       string           `json:"user"`
	GitUser    string           `json:"gitUser"` // default User
	Token      *Token           `json:"token"`
	URL        string           `json:"url"` // default for cloud https://api.bitbucket.org/2.0
	Deployment Deployment       `json:"deploymentType"`
	All        bool             `json:"all"`        // ignored for cloud
	Workspaces []string         `json:"workspaces"` // ignored for server
	Projects   []string         `json:"projects"`   // workspace/KEY or KEY
	Repos      []string         `json:"repos"`      // workspace/slug or KEY/slug
	Exclude    BitbucketExclude `json:"exclude"`
}

// BitbucketExclude selects repositories that a Bitbucket connection leaves out.
type BitbucketExclude struct {
	Archived bool     `json:"archived"`
	Forks    bool     `json:"forks"`
	Repos    []string `json:"repos"` // globs on workspace/KEY/slug or KEY/slug
}

// AzureDevOps is a connection to Azure DevOps Services or Server.
type AzureDevOps struct {
	Common
	Token      *Token             `json:"token"`
	URL        string             `json:"url"` // default https://dev.azure.com
	Deployment Deployment         `json:"deploymentType"`
	UseTFSPath bool               `json:"useTfsPath"`
	Orgs       []string           `json:"orgs"`     // or collections
	Projects   []string           `json:"projects"` // org/project
	Repos      []string           `json:"repos"`    // org/project/repo
	Exclude    AzureDevOpsExclude `json:"exclude"`
}

// AzureDevOpsExclude selects repositories that an AzureDevOps connection leaves out.
type AzureDevOpsExclude struct {
	Disabled bool     `json:"disabled"`
	Repos    []string `json:"repos"`    // globs on project/repo
	Projects []string `json:"projects"` // globs on project
	Size     Size     `json:"size"`
}

// Git is a connection to one repository by http or https, or to the local
// repositories that a file:// glob matches. Local ones are read-only.
type Git struct {
	Common
	URL string `json:"url"`
}

// Kind returns KindGitHub.
func (*GitHub) Kind() Kind { return KindGitHub }

// Access implements Connection.
func (c *GitHub) Access() (string, *Token) { return c.URL, c.Token }

// Kind returns KindGitLab.
func (*GitLab) Kind() Kind { return KindGitLab }

// Access implements Connection.
func (c *GitLab) Access() (string, *Token) { return c.URL, c.Token }

// Kind returns KindGitea.
func (*Gitea) Kind() Kind { return KindGitea }

// Access implements Connection.
func (c *Gitea) Access() (string, *Token) { return c.URL, c.Token }

// Kind returns KindGerrit.
func (*Gerrit) Kind() Kind { return KindGerrit }

// Access implements Connection.
func (c *Gerrit) Access() (string, *Token) { return c.URL, c.Token }

// Kind returns KindBitbucket.
func (*Bitbucket) Kind() Kind { return KindBitbucket }

// Access implements Connection.
func (c *Bitbucket) Access() (string, *Token) { return c.URL, c.Token }

// Kind returns KindAzureDevOps.
func (*AzureDevOps) Kind() Kind { return KindAzureDevOps }

// Access implements Connection.
func (c *AzureDevOps) Access() (string, *Token) { return c.URL, c.Token }

// Kind returns KindGit.
func (*Git) Kind() Kind { return KindGit }

// Access implements Connection.
func (c *Git) Access() (string, *Token) { return c.URL, nil }

var (
	_ Connection = (*GitHub)(nil)
	_ Connection = (*GitLab)(nil)
	_ Connection = (*Gitea)(nil)
	_ Connection = (*Gerrit)(nil)
	_ Connection = (*Bitbucket)(nil)
	_ Connection = (*AzureDevOps)(nil)
	_ Connection = (*Git)(nil)
)
