package operate

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/node/host"
	"github.com/shoalsearch/shoal/node/job"
)

// Hooks has the webhooks of connections: their secrets, and the jobs that their events queue.
type Hooks struct {
	cluster     Cluster
	gate        *account.Gate
	firstSecret func(connection string) (string, error)                      // returns the secret until it is replaced
	shownSecret func(ctx context.Context, connection string) (string, error) // the same, or "" if nobody was ever shown it
	called      func(connection string)                                      // called for each call of a webhook
	hint        func(connection string)                                      // lists a connection soon
	seen        *deliveries
	now         func() time.Time
	log         *slog.Logger
}

// WebhookRequest is an event from a connection's host. The decoder has checked its proof against
// DeliveryKeys.
type WebhookRequest struct {
	Connection string
	Event      host.Event
	Delivery   string // the host's id of this call; "" if it has none
}

// WebhookResponse names the repositories whose jobs were queued.
type WebhookResponse struct{ Repos []string }

// WebhookKeys are the secrets that prove a connection's events.
type WebhookKeys struct {
	Secret   string
	Previous string    // the former secret, valid until Until; "": none
	Until    time.Time // end of Previous
}

// Valid returns the secrets that are valid now.
func (k WebhookKeys) Valid() []string {
	if k.Previous == "" {
		return []string{k.Secret}
	}
	return []string{k.Secret, k.Previous}
}

const (
	webhookOverlap = 24 * time.Hour // validity of the former secret after a replacement
	webhookWait    = 5 * time.Second
)

// storedKeys is the form of a webhook's secrets in the catalog, where they are sealed.
type storedKeys struct {
	Secret   string    `json:"secret"`
	Previous string    `json:"previous"`
	Until    time.Time `json:"until"`
}

// webhookName returns the name of a connection's webhook secret in the catalog.
func webhookName(connection string) string { return "webhook/" + connection }

// WebhookKeys returns the secrets of a connection's webhook. The first secret is derived from a
// secret of the cluster, so that connections without a webhook need no stored secret.
func (h *Hooks) WebhookKeys(ctx context.Context, connection string) (WebhookKeys, error) {
	return h.keysOf(connection, func() (string, error) { return h.firstSecret(connection) })
}

// DeliveryKeys returns the secrets to check an event against. It creates nothing. If nobody was
// ever shown a secret, the keys prove nothing.
func (h *Hooks) DeliveryKeys(ctx context.Context, connection string) (WebhookKeys, error) {
	return h.keysOf(connection, func() (string, error) { return h.shownSecret(ctx, connection) })
}

// keysOf returns the secrets of a connection's webhook. It calls first if they were never replaced.
func (h *Hooks) keysOf(connection string, first func() (string, error)) (WebhookKeys, error) {
	// Only existing connections have secrets, so nobody gets one for a made-up name.
	if h.cluster.View().Connection(connection) == nil {
		return WebhookKeys{}, call.Fail(call.ErrNotFound, "Connection %q not found", connection)
	}

	stored, err := h.storedKeys(connection)
	if err != nil {
		return WebhookKeys{}, err
	}

	// The secret was never replaced.
	if stored == nil {
		secret, err := first()
		return WebhookKeys{Secret: secret}, err
	}

	keys := WebhookKeys(*stored)
	// Check the end at each read, so that nothing must delete the former secret in time.
	if !h.now().Before(keys.Until) {
		keys.Previous, keys.Until = "", time.Time{}
	}
	return keys, nil
}

// storedKeys returns the stored secrets, or nil if the secret was never replaced.
func (h *Hooks) storedKeys(connection string) (*storedKeys, error) {
	text, known, err := h.cluster.KnownSecret(webhookName(connection))
	if err != nil || !known {
		return nil, err
	}

	keys := new(storedKeys)
	if err := json.Unmarshal(text, keys); err != nil {
		return nil, fmt.Errorf("secret of the webhook of connection %s: %w", connection, err)
	}
	return keys, nil
}

// RotateWebhook replaces the secret of a connection's webhook. The former one stays valid for a
// day, for the owner to enter the new one at the host.
func (h *Hooks) RotateWebhook(ctx context.Context, _ account.Owner, name string) (WebhookKeys, error) {
	// A person waits, so fail soon without a leader.
	ctx, cancel := context.WithTimeout(ctx, webhookWait)
	defer cancel()

	before, err := h.WebhookKeys(ctx, name)
	if err != nil {
		return WebhookKeys{}, err
	}

	fresh := make([]byte, 32)
	rand.Read(fresh)
	// Only the latest secret stays valid. An owner who lost control of a secret can rotate twice to
	// end it.
	keys := WebhookKeys{Secret: hex.EncodeToString(fresh), Previous: before.Secret, Until: h.now().Add(webhookOverlap)}
	text, err := json.Marshal(storedKeys(keys))
	if err != nil {
		return WebhookKeys{}, fmt.Errorf("secret of the webhook: %w", err)
	}
	if err := h.cluster.SetSecret(ctx, webhookName(name), text); err != nil {
		return WebhookKeys{}, call.WriteError(err)
	}
	h.log.Info("the secret of a webhook was replaced", "connection", name)
	return keys, nil
}

// Webhook queues index jobs for the repositories of an event, and returns those that the sender may
// see. A repeated event, by its id, queues nothing.
func (h *Hooks) Webhook(ctx context.Context, by account.Owner, req WebhookRequest) (*WebhookResponse, error) {
	view := h.cluster.View()
	if view.Connection(req.Connection) == nil {
		return nil, call.Fail(call.ErrNotFound, "Connection %q not found", req.Connection)
	}

	// Record each call, whatever the event is.
	h.called(req.Connection)
	none := &WebhookResponse{Repos: []string{}}
	e := &req.Event
	// A repeated event, or one of another kind, queues nothing.
	if !e.Pushed && !e.Changed && !e.Members || h.seen.wasHandled(req) {
		return none, nil
	}

	if err := h.enqueueReaders(ctx, view, &req); err != nil {
		return nil, err
	}
	if !e.Pushed && !e.Changed {
		h.seen.recordHandled(req)
		return none, nil
	}

	out, err := h.enqueuePushed(ctx, view, by, &req)
	if err != nil {
		return nil, err
	}

	// Record the event only now: if queuing fails, the host may send it again.
	h.seen.recordHandled(req)
	return out, nil
}

// enqueuePushed queues index jobs for the repositories of a push.
func (h *Hooks) enqueuePushed(ctx context.Context, view *catalog.View, by account.Owner, req *WebhookRequest) (*WebhookResponse, error) {
	// All of the repositories are queued, but only those that the sender may see are named.
	seen, err := h.gate.Repos(by.Viewer())
	if err != nil {
		return nil, err
	}

	out := &WebhookResponse{Repos: []string{}}
	known := false
	var wanting []*catalog.Repo
	for repo := range view.ReposByName() {
		// Other changes may have created or renamed a repository, which the listing finds.
		if !req.Event.Pushed || !concernsRepo(req, repo) {
			continue
		}

		known = true
		if seen.Set.Contains(repo.ID) {
			out.Repos = append(out.Repos, repo.Name)
		}

		// A waiting job fetches this push too.
		if !hasWaitingJob(view, repo) {
			wanting = append(wanting, repo)
		}
	}

	// The event names no known repository. The next listing may add or remove it.
	if !known {
		h.hint(req.Connection)
		return out, nil
	}
	return out, enqueueIndex(ctx, h.cluster, wanting)
}

// ownersBatch is how many jobs one log entry queues.
const ownersBatch = 256

// enqueueReaders queues jobs that ask hosts who may read the repositories of an event about
// members. Jobs for a whole owner are not urgent; those for named repositories are.
func (h *Hooks) enqueueReaders(ctx context.Context, view *catalog.View, req *WebhookRequest) error {
	// Most events change no permissions.
	if !req.Event.Members {
		return nil
	}

	// Named repositories are few, and a person waits. A whole owner may have thousands.
	named := len(req.Event.Paths)+len(req.Event.URLs) > 0
	var cmds []catalog.Command
	// Only repositories whose hosts are asked for permissions.
	for it := view.Asked().Iterator(); it.HasNext(); {
		repo := view.Repo(it.Next())
		concerned := concernsRepo(req, repo) && (named || ownedBy(repo, req.Event.Owner))
		if concerned && job.AudienceOf(view, repo) != nil {
			cmds = append(cmds, &catalog.EnqueueJob{Kind: catalog.JobRepoSync, Subject: catalog.RepoSubject(repo.ID), Urgent: named})
		}
	}

	// Split large sets, because one large log entry would delay all others.
	for batch := range slices.Chunk(cmds, ownersBatch) {
		if _, err := h.cluster.Propose(ctx, batch...); err != nil {
			return call.WriteError(err)
		}
	}
	return nil
}

// ownedBy reports whether a repository belongs to an organisation or group. The owner "" has all.
func ownedBy(repo *catalog.Repo, owner string) bool {
	return owner == "" || strings.Contains(strings.ToLower(repo.Name)+"/", "/"+strings.ToLower(owner)+"/")
}

// hasWaitingJob reports whether a waiting job will fetch a repository. So many pushes at once queue one
// job.
func hasWaitingJob(view *catalog.View, repo *catalog.Repo) bool {
	j := view.Job(catalog.JobIndex, catalog.RepoSubject(repo.ID))
	return j != nil && j.State == catalog.JobWaiting && j.Urgent
}

// Hook returns how a connection's webhook is signed and named.
func (h *Hooks) Hook(connection string) host.Hook {
	return host.HookOf(h.cluster.View().File().Connection(connection))
}

// concernsRepo reports whether an event concerns a repository of its connection. An event that names none
// concerns all.
func concernsRepo(req *WebhookRequest, repo *catalog.Repo) bool {
	// Two connections may list one repository. The secret of one is valid only for its own.
	if !slices.ContainsFunc(repo.Connections, func(c catalog.RepoConnection) bool { return c.Name == req.Connection }) {
		return false
	}
	e := req.Event
	if len(e.Paths) == 0 && len(e.URLs) == 0 {
		return true
	}

	// Some hosts send the path without the host name.
	byPath := func(p string) bool { return p == repo.Name || strings.HasSuffix(repo.Name, "/"+p) }
	byURL := func(u string) bool { return sameRemote(u, repo.CloneURL) || sameRemote(u, repo.WebURL) }
	return slices.ContainsFunc(e.Paths, byPath) || slices.ContainsFunc(e.URLs, byURL)
}

// sameRemote reports whether two clone URLs are the same, except for .git, a final slash or a user.
func sameRemote(a, b string) bool { return plainRemote(a) == plainRemote(b) }

// plainRemote returns a clone URL in canonical form:
//
//	https://me@Host.example/Org/app.git/   https://host.example/Org/app
func plainRemote(s string) string {
	// Remove the slash first: .git may come before it.
	s = strings.TrimSuffix(strings.TrimSpace(s), "/")
	s = strings.TrimSuffix(s, ".git")
	scheme, rest, hasScheme := strings.Cut(s, "://")
	host, path, hasPath := strings.Cut(rest, "/")
	// Without a scheme it is a path, or ssh as git writes it. It is not changed.
	if !hasScheme || !hasPath {
		return s
	}

	// The user is not part of the repository.
	if at := strings.LastIndexByte(host, '@'); at >= 0 {
		host = host[at+1:]
	}
	// Host names ignore case, but paths may not.
	return strings.ToLower(scheme+"://"+host) + "/" + path
}
