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

// Delivery is a webhook call of a code host.
type Delivery struct {
	Header func(name string) string
	Query  func(name string) string // of the URL
	Body   []byte
	Now    time.Time // when it arrived
}

// Event is the content of a delivery. It is only a hint: the host is asked what has changed.
type Event struct {
	ID      string   // id of the delivery; repeats have the same; "": the host sends none
	Pushed  bool     // there may be new commits
	Changed bool     // a repository was created, deleted, renamed or changed its visibility
	Members bool     // readers of the repository have changed; of all of the owner's, if none is named
	Owner   string   // organisation or group of the event; "" if a repository is named
	URLs    []string // of the repository, as the host writes them
	Paths   []string // of the repository at its host
}

// MaxDelivery is the maximum size of a body in bytes, the largest of any host.
const MaxDelivery = 25 << 20

// Hook describes the webhooks of a kind of host.
type Hook struct {
	// Steps explains where to enter the URL and the secret at the host.
	Steps string

	signed  scheme
	ids     []string // headers that may have the delivery's id; nil: a field of the body, or none
	once    bool     // the body's hash is the id: bodies are unique, and headers are not signed
	tokens  bool     // signing tokens are accepted too
	header  string   // header with the event's name; "": a field of the body
	pushes  []string // events with commits; nil: all
	changes []string // events that create, delete or rename repositories
	members []string // events that change readers
}

// HookOf returns the Hook for a connection, which may be nil.
func HookOf(conn config.Connection) Hook {
	if conn == nil {
		return Hook{}
	}
	k, _ := kindOf(conn)
	return k.Hook
}

// Signed reports whether a delivery is signed with one of the secrets.
func (h Hook) Signed(d Delivery, secrets []string) bool {
	return anyProves(h.signed.whole, d, secrets)
}

// Signs reports whether the headers may be those of a signed delivery: they have a signature, or
// the secret itself. It ignores the body.
func (h Hook) Signs(d Delivery, secrets []string) bool {
	return anyProves(h.signed.head, d, secrets)
}

// anyProves reports whether a scheme accepts a delivery for one of the secrets.
func anyProves(by func(d Delivery, secret string) bool, d Delivery, secrets []string) bool {
	return by != nil && slices.ContainsFunc(secrets, func(s string) bool { return s != "" && by(d, s) })
}

// scheme is how a kind of host proves that it knows the secret. Nil functions accept nothing.
type scheme struct {
	head  func(d Delivery, secret string) bool // whether the headers may belong to a proof
	whole func(d Delivery, secret string) bool // whether the delivery is a proof
}

// SigningToken returns a secret in GitLab's form of a signing token, or "" for other kinds.
func (h Hook) SigningToken(secret string) string {
	key, err := hex.DecodeString(secret)
	if !h.tokens || err != nil {
		return ""
	}
	return "whsec_" + base64.StdEncoding.EncodeToString(key)
}

// malformedBody returns the error for a body that is not JSON, or in which a field has the wrong type.
func malformedBody(err error) error {
	var kind *json.UnmarshalTypeError
	if errors.As(err, &kind) {
		return fmt.Errorf("malformed event: %s must not be a JSON %s", cmp.Or(kind.Field, "the body"), kind.Value)
	}
	return fmt.Errorf("malformed event: %w", err)
}

// Read decodes a delivery. A test call of a host gives an empty Event.
func (h Hook) Read(d Delivery) (Event, error) {
	var body hookBody
	if len(d.Body) > 0 {
		if err := json.Unmarshal(d.Body, &body); err != nil {
			return Event{}, malformedBody(err)
		}
	}

	name := d.Header(h.header)
	if h.header == "" || name == "System Hook" {
		name = body.eventName()
	}

	e := Event{Pushed: h.pushes == nil || slices.Contains(h.pushes, name), Changed: slices.Contains(h.changes, name)}

	if h.ids == nil {
		e.ID, _ = body.ID.(string)
	}
	for _, header := range slices.Backward(h.ids) {
		e.ID = cmp.Or(d.Header(header), e.ID)
	}

	// Such a host does not sign the id in its header: with another id an attacker could repeat an
	// intercepted call.
	if h.once {
		sum := sha256.Sum256(d.Body)
		e.ID = hex.EncodeToString(sum[:])
	}

	e.Members = slices.Contains(h.members, name)

	if e.Pushed || e.Changed || e.Members {
		e.URLs, e.Paths = body.repositories()
	}

	// An event about members of an organisation names no repository.
	if e.Members && len(e.URLs)+len(e.Paths) == 0 {
		e.Owner = cmp.Or(body.Organization.Login, body.GroupPath)
	}
	return e, nil
}

var (
	hookGeneric = Hook{
		Steps: "Post to the address with X-Shoal-Signature, the hexadecimal HMAC-SHA-256 of the body under the secret.",
		signed: acceptAny(
			hmacInHeader("X-Hub-Signature-256"), hmacInHeader("X-Hub-Signature"), hmacInHeader("X-Gitea-Signature"), hmacInHeader("X-Shoal-Signature"), tokenIn("X-Gitlab-Token"))}

	hookGitHub = Hook{
		Steps:  "Settings of the organisation or repository, Webhooks, Add webhook: the address, application/json, the secret, events Pushes and Repositories; where permissions are synced also Collaborator add, Memberships, Organizations, Teams, Team adds and Visibility changes.",
		signed: hmacInHeader("X-Hub-Signature-256"), once: true, header: "X-GitHub-Event",
		pushes: []string{"push", "create", "delete"}, changes: []string{"repository", "public", "installation_repositories"},
		members: []string{"member", "membership", "organization", "team", "team_add", "repository", "public"},
	}
	hookGitLab = Hook{
		Steps:  "Settings of the group or project, Webhooks (or Admin, System hooks): the address, and the secret as secret token or the signing token; events Push and Tag push; where permissions are synced also Member events, which hooks of groups have, and which system hooks send anyway.",
		signed: acceptAny(tokenIn("X-Gitlab-Token"), scheme{hasStandardHeaders, verifyStandard}), ids: []string{"Idempotency-Key", "webhook-id"}, tokens: true, header: "X-Gitlab-Event",
		pushes:  []string{"Push Hook", "Tag Push Hook", "push", "tag_push", "repository_update"},
		changes: []string{"Project Hook", "Subgroup Hook", "project_create", "project_destroy", "project_rename", "project_transfer", "project_update", "group_rename"},
		members: []string{
			"Member Hook", "user_add_to_team", "user_remove_from_team", "user_update_for_team", "user_add_to_group", "user_remove_from_group", "user_update_for_group",
			"project_update", "project_transfer",
		},
	}
	hookGitea = Hook{
		Steps:  "Settings of the organisation or repository, Webhooks, Add Gitea: the address, POST, application/json, the secret, events Push and Repository.",
		signed: hmacInHeader("X-Gitea-Signature"), once: true, header: "X-Gitea-Event",
		pushes: []string{"push", "create", "delete"}, changes: []string{"repository"},
	}
	hookBitbucket = Hook{
		Steps:  "Settings of the repository, project or workspace, Webhooks: the address, the secret, triggers Push, and those of repositories.",
		signed: hmacInHeader("X-Hub-Signature"), once: true, header: "X-Event-Key",
		pushes:  []string{"repo:push", "repo:refs_changed", "mirror:repo_synchronized"},
		changes: []string{"repo:created", "repo:deleted", "repo:updated", "repo:transfer", "repo:modified", "project:modified"},
	}
	hookAzure = Hook{
		Steps:  "Project settings, Service hooks, Web Hooks, Code pushed: the address, any user name, the secret as password.",
		signed: secretIn(basicPassword), pushes: []string{"git.push"},
		changes: []string{"git.repo.created", "git.repo.deleted", "git.repo.renamed", "git.repo.statuschanged"},
	}
	hookGerrit = Hook{
		Steps:  "webhooks.config of refs/meta/config, plugin webhooks: url is the address with ?token= and the secret, event ref-updated.",
		signed: secretIn(func(d Delivery) string { return d.Query("token") }),
		pushes: []string{"ref-updated", "change-merged", "project-head-updated"}, changes: []string{"project-created"},
	}
)

func equalInConstantTime(a, b string) bool { return hmac.Equal([]byte(a), []byte(b)) }

// hmacInHeader returns the scheme with the HMAC-SHA-256 of the body in a header, in hexadecimal.
func hmacInHeader(header string) scheme {
	digits := func(d Delivery) string { return strings.TrimPrefix(d.Header(header), "sha256=") }
	return scheme{
		head: func(d Delivery, _ string) bool {
			sum, err := hex.DecodeString(digits(d))
			return err == nil && len(sum) == sha256.Size
		},
		whole: func(d Delivery, secret string) bool {
			mac := hmac.New(sha256.New, []byte(secret))
			mac.Write(d.Body)
			return equalInConstantTime(digits(d), hex.EncodeToString(mac.Sum(nil)))
		},
	}
}

// secretIn returns the scheme with the secret itself among the headers.
func secretIn(head func(Delivery) string) scheme {
	has := func(d Delivery, secret string) bool { return equalInConstantTime(head(d), secret) }
	return scheme{has, has}
}

// tokenIn returns the scheme with the secret itself in a header.
func tokenIn(header string) scheme {
	return secretIn(func(d Delivery) string { return d.Header(header) })
}

// maxSignatureAge is the largest difference between a signed time and now.
const maxSignatureAge = 5 * time.Minute

// hasStandardHeaders reports whether a delivery has a signature and a recent time.
func hasStandardHeaders(d Delivery, _ string) bool {
	// The time is signed. So an intercepted call can be repeated only for maxSignatureAge.
	seconds, err := strconv.ParseInt(d.Header("webhook-timestamp"), 10, 64)
	return err == nil && d.Now.Sub(time.Unix(seconds, 0)).Abs() <= maxSignatureAge && d.Header("webhook-signature") != ""
}

// verifyStandard implements the scheme of standardwebhooks.com. It signs the id, the time and
// the body, so that old calls cannot be repeated.
func verifyStandard(d Delivery, secret string) bool {
	key, err := hex.DecodeString(secret)
	id, at := d.Header("webhook-id"), d.Header("webhook-timestamp")
	if err != nil || !hasStandardHeaders(d, secret) {
		return false
	}

	// The dots separate id, time and body unambiguously.
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s.%s.", id, at)
	mac.Write(d.Body)
	want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	// There may be several signatures during a change of secrets. Compare each in constant time.
	return slices.ContainsFunc(strings.Fields(d.Header("webhook-signature")), func(given string) bool { return equalInConstantTime(given, want) })
}

// basicPassword returns the password of basic authentication, or "".
func basicPassword(d Delivery) string {
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

// acceptAny returns a scheme that accepts a delivery if one of schemes accepts it.
func acceptAny(schemes ...scheme) scheme {
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

// hookBody has the fields of all hosts' events that name a repository.
type hookBody struct {
	EventType string `json:"eventType"`  // Azure DevOps
	ID        any    `json:"id"`         // Azure DevOps
	Type      any    `json:"type"`       // Gerrit
	EventName string `json:"event_name"` // GitLab's system hooks

	Organization struct {
		Login string `json:"login"`
	} `json:"organization"` // GitHub
	GroupPath   string `json:"group_path"`                  // GitLab, for members of a group
	ProjectPath string `json:"project_path_with_namespace"` // GitLab, for members of a project

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
	} `json:"change"` // Gerrit, for merged changes
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

func (b *hookBody) eventName() string {
	if text, ok := b.Type.(string); ok && b.EventType == "" && b.EventName == "" {
		return text
	}
	return b.EventType + b.EventName
}

// repositories returns the URLs and paths by which a webhook names its repositories. Each code host
// uses other fields.
func (b *hookBody) repositories() (urls, paths []string) {
	for _, r := range []hookRepo{b.Repository, decodeRepo(b.Project), b.Resource.Repository} {
		for _, u := range []string{r.CloneURL, r.HTMLURL, r.SSHURL, r.GitHTTPURL, r.WebURL, r.RemoteURL, r.Links.HTML.Href} {
			if u != "" {
				urls = append(urls, u)
			}
		}

		for _, p := range []string{r.FullName, r.Path, r.keyPath()} {
			if p != "" {
				paths = append(paths, p)
			}
		}
	}

	// Some hosts send only the name of a project.
	for _, name := range []any{b.RefUpdate.Project, b.Change.Project, b.Project, b.ProjectPath} {
		if text, ok := name.(string); ok && text != "" {
			paths = append(paths, text)
		}
	}
	return urls, paths
}

// decodeRepo decodes an object, which some hosts send in place of a name.
func decodeRepo(v any) (r hookRepo) {
	if _, ok := v.(map[string]any); !ok {
		return r
	}
	text, err := json.Marshal(v)
	if err != nil || json.Unmarshal(text, &r) != nil {
		return hookRepo{}
	}
	return r
}

// keyPath returns the path of a Bitbucket Data Center repository.
func (r *hookRepo) keyPath() string {
	project, _ := r.Project.(map[string]any)
	key, _ := project["key"].(string)
	if key == "" || r.Slug == "" {
		return ""
	}
	return key + "/" + r.Slug
}
