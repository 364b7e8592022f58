package host

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/shoalsearch/shoal/cluster/config"
)

// Delivery is a call by which a code host tells of an event.
type Delivery struct {
	Header func(name string) string
	Query  func(name string) string // of the address
	Body   []byte
	Now    time.Time // when it came
}

// Event is what a delivery tells. It is a hint, never a proof: the host is
// asked for what it says.
type Event struct {
	ID      string   // of the delivery: the same when it is sent again; empty where the host gives none
	Pushed  bool     // there may be new commits
	Changed bool     // a repository was made, deleted, renamed, or is seen by others now
	Members bool     // others may read a repository now, or all of an owner where none is named
	Owner   string   // organisation or group that the event is of; empty where a repository is named
	URLs    []string // of the repository, as the host writes them
	Paths   []string // of the repository at its host
}

// MaxDelivery is how many bytes the body of a delivery may have: the most that
// any host sends.
const MaxDelivery = 25 << 20

// Hook is how the webhooks of a kind of host are signed and named.
type Hook struct {
	// Steps says where to enter the address and the secret at the host.
	Steps string

	signed  scheme
	ids     []string // headers that may name the delivery; nil: a field of the body does, or nothing
	once    bool     // no two events have one body, and the body alone is signed: it names the delivery
	tokens  bool     // signing tokens are taken too
	header  string   // that names the event; empty: a field of the body does
	pushes  []string // events that bring commits; nil: every one does
	changes []string // events that change which repositories there are
	members []string // events that change who may read
}

// HookOf is the row of a connection; nil is of one that is not there.
func HookOf(conn config.Connection) Hook {
	if conn == nil {
		return Hook{}
	}
	k, _ := kindOf(conn)
	return k.Hook
}

// Signed reports whether whoever sent a delivery knows one of the secrets.
func (h Hook) Signed(d Delivery, secrets []string) bool {
	return proves(h.signed.whole, d, secrets)
}

// Signs reports whether the head of a delivery may be of somebody who knows one of
// the secrets: it has a signature, or the secret itself. The body is not looked at.
func (h Hook) Signs(d Delivery, secrets []string) bool {
	return proves(h.signed.head, d, secrets)
}

func proves(by func(d Delivery, secret string) bool, d Delivery, secrets []string) bool {
	return by != nil && slices.ContainsFunc(secrets, func(s string) bool { return s != "" && by(d, s) })
}

// scheme is how a kind of host proves that it knows the secret; nil functions
// prove nothing.
type scheme struct {
	head  func(d Delivery, secret string) bool // whether the head may belong to a proof
	whole func(d Delivery, secret string) bool // whether the delivery is one
}

// SigningToken is a secret in the form in which GitLab takes it to sign with;
// empty for other kinds.
func (h Hook) SigningToken(secret string) string {
	key, err := hex.DecodeString(secret)
	if !h.tokens || err != nil {
		return ""
	}
	return "whsec_" + base64.StdEncoding.EncodeToString(key)
}

// malformed says what is wrong with the body of an event in words of JSON.
func malformed(err error) error {
	var kind *json.UnmarshalTypeError
	if errors.As(err, &kind) {
		return fmt.Errorf("malformed event: %s must not be a JSON %s", cmp.Or(kind.Field, "the body"), kind.Value)
	}
	return fmt.Errorf("malformed event: %w", err)
}

// Read reads a delivery. What is neither a push nor a change, as the first
// call by which a host tries a hook, is an event of nothing.
func (h Hook) Read(d Delivery) (Event, error) {
	var body hookBody
	if len(d.Body) > 0 {
		if err := json.Unmarshal(d.Body, &body); err != nil {
			return Event{}, malformed(err)
		}
	}

	name := d.Header(h.header)
	if h.header == "" || name == "System Hook" {
		name = body.name()
	}

	e := Event{Pushed: h.pushes == nil || slices.Contains(h.pushes, name), Changed: slices.Contains(h.changes, name)}

	if h.ids == nil {
		e.ID, _ = body.ID.(string)
	}
	for _, header := range slices.Backward(h.ids) {
		e.ID = cmp.Or(d.Header(header), e.ID)
	}

	// Nobody signs the id that a header tells: it would make one event many.
	if h.once {
		sum := sha256.Sum256(d.Body)
		e.ID = hex.EncodeToString(sum[:])
	}

	e.Members = slices.Contains(h.members, name)

	if e.Pushed || e.Changed || e.Members {
		e.URLs, e.Paths = body.repositories()
	}

	// An event about people of a whole organisation names no repository.
	if e.Members && len(e.URLs)+len(e.Paths) == 0 {
		e.Owner = cmp.Or(body.Organization.Login, body.GroupPath)
	}
	return e, nil
}

var (
	hookGeneric = Hook{
		Steps: "Post to the address with X-Shoal-Signature, the hexadecimal HMAC-SHA-256 of the body under the secret.",
		signed: anyOf(
			signature("X-Hub-Signature-256"), signature("X-Hub-Signature"), signature("X-Gitea-Signature"), signature("X-Shoal-Signature"), tokenIn("X-Gitlab-Token"))}

	hookGitHub = Hook{
		Steps:  "Settings of the organisation or repository, Webhooks, Add webhook: the address, application/json, the secret, events Pushes and Repositories; where permissions are synced also Collaborator add, Memberships, Organizations, Teams, Team adds and Visibility changes.",
		signed: signature("X-Hub-Signature-256"), once: true, header: "X-GitHub-Event",
		pushes: []string{"push", "create", "delete"}, changes: []string{"repository", "public", "installation_repositories"},
		members: []string{"member", "membership", "organization", "team", "team_add", "repository", "public"},
	}
	hookGitLab = Hook{
		Steps:  "Settings of the group or project, Webhooks (or Admin, System hooks): the address, and the secret as secret token or the signing token; events Push and Tag push; where permissions are synced also Member events, which hooks of groups have, and which system hooks send anyway.",
		signed: anyOf(tokenIn("X-Gitlab-Token"), scheme{standardHead, standardSignature}), ids: []string{"Idempotency-Key", "webhook-id"}, tokens: true, header: "X-Gitlab-Event",
		pushes:  []string{"Push Hook", "Tag Push Hook", "push", "tag_push", "repository_update"},
		changes: []string{"Project Hook", "Subgroup Hook", "project_create", "project_destroy", "project_rename", "project_transfer", "project_update", "group_rename"},
		members: []string{
			"Member Hook", "user_add_to_team", "user_remove_from_team", "user_update_for_team", "user_add_to_group", "user_remove_from_group", "user_update_for_group",
			"project_update", "project_transfer",
		},
	}
	hookGitea = Hook{
		Steps:  "Settings of the organisation or repository, Webhooks, Add Gitea: the address, POST, application/json, the secret, events Push and Repository.",
		signed: signature("X-Gitea-Signature"), once: true, header: "X-Gitea-Event",
		pushes: []string{"push", "create", "delete"}, changes: []string{"repository"},
	}
	hookBitbucket = Hook{
		Steps:  "Settings of the repository, project or workspace, Webhooks: the address, the secret, triggers Push, and those of repositories.",
		signed: signature("X-Hub-Signature"), once: true, header: "X-Event-Key",
		pushes:  []string{"repo:push", "repo:refs_changed", "mirror:repo_synchronized"},
		changes: []string{"repo:created", "repo:deleted", "repo:updated", "repo:transfer", "repo:modified", "project:modified"},
	}
	hookAzure = Hook{
		Steps:  "Project settings, Service hooks, Web Hooks, Code pushed: the address, any user name, the secret as password.",
		signed: secretIn(password), pushes: []string{"git.push"},
		changes: []string{"git.repo.created", "git.repo.deleted", "git.repo.renamed", "git.repo.statuschanged"},
	}
	hookGerrit = Hook{
		Steps:  "webhooks.config of refs/meta/config, plugin webhooks: url is the address with ?token= and the secret, event ref-updated.",
		signed: secretIn(func(d Delivery) string { return d.Query("token") }),
		pushes: []string{"ref-updated", "change-merged", "project-head-updated"}, changes: []string{"project-created"},
	}
)

func same(a, b string) bool { return hmac.Equal([]byte(a), []byte(b)) }

// signature is the scheme by which a header has the HMAC-SHA-256 of the body,
// in hexadecimal digits.
func signature(header string) scheme {
	digits := func(d Delivery) string { return strings.TrimPrefix(d.Header(header), "sha256=") }
	return scheme{
		head: func(d Delivery, _ string) bool {
			sum, err := hex.DecodeString(digits(d))
			return err == nil && len(sum) == sha256.Size
		},
		whole: func(d Delivery, secret string) bool {
			mac := hmac.New(sha256.New, []byte(secret))
			mac.Write(d.Body)
			return same(digits(d), hex.EncodeToString(mac.Sum(nil)))
		},
	}
}

// secretIn is the scheme by which the head has the secret itself.
func secretIn(head func(Delivery) string) scheme {
	has := func(d Delivery, secret string) bool { return same(head(d), secret) }
	return scheme{has, has}
}

// tokenIn is the scheme by which a header has the secret itself.
func tokenIn(header string) scheme {
	return secretIn(func(d Delivery) string { return d.Header(header) })
}

// signedFor is for how long before and after its time a signed call is taken.
const signedFor = 5 * time.Minute

// standardHead reports whether a delivery has a signature and a time of now.
func standardHead(d Delivery, _ string) bool {
	// The time is signed too: with a bound on its age a call that was overheard is of no use for
	// long.
	seconds, err := strconv.ParseInt(d.Header("webhook-timestamp"), 10, 64)
	return err == nil && d.Now.Sub(time.Unix(seconds, 0)).Abs() <= signedFor && d.Header("webhook-signature") != ""
}

// standardSignature is the scheme of standardwebhooks.com: the id, the time and
// the body are signed, so that a call cannot be sent again later.
func standardSignature(d Delivery, secret string) bool {
	key, err := hex.DecodeString(secret)
	id, at := d.Header("webhook-id"), d.Header("webhook-timestamp")
	if err != nil || !standardHead(d, secret) {
		return false
	}

	// The dots keep id, time and body apart, so that none can be read as the end of another.
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s.%s.", id, at)
	mac.Write(d.Body)
	want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	// Several signatures may stand there, so that secrets can be changed. Each is compared in
	// constant time.
	return slices.ContainsFunc(strings.Fields(d.Header("webhook-signature")), func(given string) bool { return same(given, want) })
}

// password is the password of any user in a delivery, empty where there is none.
func password(d Delivery) string {
	text, ok := strings.CutPrefix(d.Header("Authorization"), "Basic ")
	if !ok {
		return ""
	}
	plain, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return ""
	}
	_, after, _ := strings.Cut(string(plain), ":")
	return after
}

// anyOf is several schemes, each of which is enough.
func anyOf(schemes ...scheme) scheme {
	either := func(d Delivery, secret string, of func(scheme) func(Delivery, string) bool) bool {
		return slices.ContainsFunc(schemes, func(x scheme) bool { return of(x)(d, secret) })
	}
	return scheme{
		head: func(d Delivery, secret string) bool {
			return either(d, secret, func(x scheme) func(Delivery, string) bool { return x.head })
		},
		whole: func(d Delivery, secret string) bool {
			return either(d, secret, func(x scheme) func(Delivery, string) bool { return x.whole })
		},
	}
}

// hookBody is what the hosts' events have in common with one another:
// somewhere in them the repository is named.
type hookBody struct {
	EventType string `json:"eventType"`  // Azure DevOps
	ID        any    `json:"id"`         // Azure DevOps
	Type      any    `json:"type"`       // Gerrit
	EventName string `json:"event_name"` // system hooks of GitLab

	Organization struct {
		Login string `json:"login"`
	} `json:"organization"` // GitHub
	GroupPath   string `json:"group_path"`                  // GitLab, of members of a group
	ProjectPath string `json:"project_path_with_namespace"` // GitLab, of members of a project

	Repository hookRepo `json:"repository"` // GitHub, Gitea, Bitbucket, GitLab
	Project    any      `json:"project"`    // GitLab: an object; Gerrit: a name
	Resource   struct {
		Repository hookRepo `json:"repository"`
	} `json:"resource"` // Azure DevOps
	RefUpdate struct {
		Project string `json:"project"`
	} `json:"refUpdate"` // Gerrit
	Change struct {
		Project any `json:"project"`
	} `json:"change"` // Gerrit, of merged changes
}

// hookRepo is a repository in an event.
type hookRepo struct {
	CloneURL   string `json:"clone_url"`
	HTMLURL    string `json:"html_url"`
	SSHURL     string `json:"ssh_url"`
	GitHTTPURL string `json:"git_http_url"`
	WebURL     string `json:"web_url"`
	RemoteURL  string `json:"remoteUrl"`
	FullName   string `json:"full_name"`
	Path       string `json:"path_with_namespace"`
	Slug       string `json:"slug"` // Bitbucket Data Center
	Project    any    `json:"project"`
	Links      struct {
		HTML struct {
			Href string `json:"href"`
		} `json:"html"`
	} `json:"links"`
}

func (b *hookBody) name() string {
	if text, ok := b.Type.(string); ok && b.EventType == "" && b.EventName == "" {
		return text
	}
	return b.EventType + b.EventName
}

func (b *hookBody) repositories() (urls, paths []string) {
	for _, r := range []hookRepo{b.Repository, repoIn(b.Project), b.Resource.Repository} {
		for _, u := range []string{r.CloneURL, r.HTMLURL, r.SSHURL, r.GitHTTPURL, r.WebURL, r.RemoteURL, r.Links.HTML.Href} {
			if u != "" {
				urls = append(urls, u)
			}
		}

		for _, p := range []string{r.FullName, r.Path, r.keyed()} {
			if p != "" {
				paths = append(paths, p)
			}
		}
	}

	// Some kinds name a project by a text alone.
	for _, name := range []any{b.RefUpdate.Project, b.Change.Project, b.Project, b.ProjectPath} {
		if text, ok := name.(string); ok && text != "" {
			paths = append(paths, text)
		}
	}
	return urls, paths
}

// repoIn is an object that some hosts send where others send a name.
func repoIn(v any) (r hookRepo) {
	if _, ok := v.(map[string]any); !ok {
		return r
	}
	text, err := json.Marshal(v)
	if err != nil || json.Unmarshal(text, &r) != nil {
		return hookRepo{}
	}
	return r
}

// keyed is the path of a repository of Bitbucket Data Center.
func (r *hookRepo) keyed() string {
	project, _ := r.Project.(map[string]any)
	key, _ := project["key"].(string)
	if key == "" || r.Slug == "" {
		return ""
	}
	return key + "/" + r.Slug
}
