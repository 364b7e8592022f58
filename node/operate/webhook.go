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

// Hooks is the webhooks of connections: their secrets, and what their events ask
// for.
type Hooks struct {
	cluster Cluster
	gate    *account.Gate
	first   func(connection string) (string, error)                      // the secret until it is replaced
	told    func(ctx context.Context, connection string) (string, error) // the same where it was told to anybody, else ""
	called  func(connection string)                                      // is told of each call
	hint    func(connection string)                                      // has a connection listed soon
	came    *deliveries
	now     func() time.Time
	log     *slog.Logger
}

// WebhookRequest is an event of a connection. Its proof is checked by whoever
// decodes the event, with what DeliveryKeys returns.
type WebhookRequest struct {
	Connection string
	Event      host.Event
	Delivery   string // the host's own id of this call; empty where it has none
}

// WebhookResponse says which repositories were queued.
type WebhookResponse struct{ Repos []string }

// WebhookKeys is what proves the events of a connection.
type WebhookKeys struct {
	Secret   string
	Previous string    // the one before, which is good until a time; empty where there is none
	Until    time.Time // of Previous
}

// Valid are the secrets that are good now.
func (k WebhookKeys) Valid() []string {
	if k.Previous == "" {
		return []string{k.Secret}
	}
	return []string{k.Secret, k.Previous}
}

const (
	webhookOverlap = 24 * time.Hour // that the last secret is good after it was replaced
	webhookWait    = 5 * time.Second
)

// storedKeys is how the secrets of a connection's webhook are kept, sealed, in
// the catalog.
type storedKeys struct {
	Secret   string    `json:"secret"`
	Previous string    `json:"previous"`
	Until    time.Time `json:"until"`
}

// webhookName is the name of a connection's secret in the catalog.
func webhookName(connection string) string { return "webhook/" + connection }

// WebhookKeys returns what proves the events of a connection. The first secret
// of a connection is derived from one of the cluster, so that nothing is
// written for connections without a webhook.
func (h *Hooks) WebhookKeys(ctx context.Context, connection string) (WebhookKeys, error) {
	return h.keysOf(connection, func() (string, error) { return h.first(connection) })
}

// DeliveryKeys is the same for an event that somebody sends. It makes nothing:
// where no secret was ever told to anybody, the keys prove nothing.
func (h *Hooks) DeliveryKeys(ctx context.Context, connection string) (WebhookKeys, error) {
	return h.keysOf(connection, func() (string, error) { return h.told(ctx, connection) })
}

// keysOf is what proves the events of a connection, with its first secret where that
// was never replaced.
func (h *Hooks) keysOf(connection string, first func() (string, error)) (WebhookKeys, error) {
	// Of connections that are there: nobody gets a secret for a name of their own.
	if h.cluster.View().Connection(connection) == nil {
		return WebhookKeys{}, call.Fail(call.ErrNotFound, "Connection %q not found", connection)
	}

	stored, err := h.storedKeys(connection)
	if err != nil {
		return WebhookKeys{}, err
	}

	// Never replaced: it comes from a secret of the cluster.
	if stored == nil {
		secret, err := first()
		return WebhookKeys{Secret: secret}, err
	}

	keys := WebhookKeys(*stored)
	// Each time it is read, so that nothing has to be removed in time.
	if !h.now().Before(keys.Until) {
		keys.Previous, keys.Until = "", time.Time{}
	}
	return keys, nil
}

// storedKeys is nil where the secret was never replaced.
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

// RotateWebhook replaces the secret of a connection's webhook by a new one. The
// last one is good for a day more: long enough to enter the new one at the host.
func (h *Hooks) RotateWebhook(ctx context.Context, _ account.Owner, name string) (WebhookKeys, error) {
	// A person waits; without a leader it says so soon.
	ctx, cancel := context.WithTimeout(ctx, webhookWait)
	defer cancel()

	before, err := h.WebhookKeys(ctx, name)
	if err != nil {
		return WebhookKeys{}, err
	}

	fresh := make([]byte, 32)
	rand.Read(fresh)
	// Only the last one stays good: replaced twice, the first is gone, as
	// somebody wants who has lost it.
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

// Webhook queues index jobs for the repositories of an event, and names those
// that whoever sent it may see. An event that came before, as its id says,
// queues nothing.
func (h *Hooks) Webhook(ctx context.Context, by account.Owner, req WebhookRequest) (*WebhookResponse, error) {
	view := h.cluster.View()
	if view.Connection(req.Connection) == nil {
		return nil, call.Fail(call.ErrNotFound, "Connection %q not found", req.Connection)
	}

	// That a webhook calls at all is worth to know, whatever it tells.
	h.called(req.Connection)
	none := &WebhookResponse{Repos: []string{}}
	e := &req.Event
	// What was dealt with once is queued no more; an event of another kind asks for nothing.
	if !e.Pushed && !e.Changed && !e.Members || h.came.has(req) {
		return none, nil
	}

	if err := h.enqueueReaders(ctx, view, &req); err != nil {
		return nil, err
	}
	if !e.Pushed && !e.Changed {
		h.came.add(req)
		return none, nil
	}

	out, err := h.enqueuePushed(ctx, view, by, &req)
	if err != nil {
		return nil, err
	}

	// Noted only when all of it is queued: where that failed it may be sent again.
	h.came.add(req)
	return out, nil
}

// enqueuePushed has the repositories of an event fetched.
func (h *Hooks) enqueuePushed(ctx context.Context, view *catalog.View, by account.Owner, req *WebhookRequest) (*WebhookResponse, error) {
	// All of the repositories are queued, and only those are named that the sender may see.
	seen, err := h.gate.Repos(by.Viewer())
	if err != nil {
		return nil, err
	}

	out := &WebhookResponse{Repos: []string{}}
	known := false
	var wanting []*catalog.Repo
	for repo := range view.ReposByName() {
		// A change that is no push may have made or renamed a repository: the listing finds that.
		if !req.Event.Pushed || !names(req, repo) {
			continue
		}

		known = true
		if seen.Set.Contains(repo.ID) {
			out.Repos = append(out.Repos, repo.Name)
		}

		// A job that waits fetches this push as well.
		if !waits(view, repo) {
			wanting = append(wanting, repo)
		}
	}

	// Where nothing known was pushed to, the event may be of a repository that
	// the next listing has, or of one that it has no more.
	if !known {
		h.hint(req.Connection)
		return out, nil
	}
	return out, enqueueIndex(ctx, h.cluster, wanting)
}

// ownersBatch is how many jobs one entry asks for.
const ownersBatch = 256

// enqueueReaders has hosts asked who may read the repositories of an event that
// changed that. Those of a whole owner wait behind what is asked for by name.
func (h *Hooks) enqueueReaders(ctx context.Context, view *catalog.View, req *WebhookRequest) error {
	// Most events change nothing of who may read.
	if !req.Event.Members {
		return nil
	}

	// By name they are few, and somebody waits; of a whole owner there may be thousands.
	named := len(req.Event.Paths)+len(req.Event.URLs) > 0
	var cmds []catalog.Command
	// Only repositories of hosts that are asked at all.
	for it := view.Asked().Iterator(); it.HasNext(); {
		repo := view.Repo(it.Next())
		concerned := names(req, repo) && (named || ownedBy(repo, req.Event.Owner))
		if concerned && job.AudienceOf(view, repo) != nil {
			cmds = append(cmds, &catalog.EnqueueJob{Kind: catalog.JobRepoSync, Subject: catalog.RepoSubject(repo.ID), Urgent: named})
		}
	}

	// So many to an entry: one with all of them would hold up whatever else is agreed on.
	for batch := range slices.Chunk(cmds, ownersBatch) {
		if _, err := h.cluster.Propose(ctx, batch...); err != nil {
			return call.WriteError(err)
		}
	}
	return nil
}

// ownedBy reports whether a repository is below an organisation or group; that of
// no name is above all.
func ownedBy(repo *catalog.Repo, owner string) bool {
	return owner == "" || strings.Contains(strings.ToLower(repo.Name)+"/", "/"+strings.ToLower(owner)+"/")
}

// waits reports whether a repository will be fetched by a job that has not begun:
// many pushes at once ask for one.
func waits(view *catalog.View, repo *catalog.Repo) bool {
	j := view.Job(catalog.JobIndex, catalog.RepoSubject(repo.ID))
	return j != nil && j.State == catalog.JobWaiting && j.Urgent
}

// Hook is how the webhooks of a connection are signed and named.
func (h *Hooks) Hook(connection string) host.Hook {
	return host.HookOf(h.cluster.View().File().Connection(connection))
}

// names reports whether an event is of a repository of its connection. One that
// names none may be of any.
func names(req *WebhookRequest, repo *catalog.Repo) bool {
	// Two connections may list one repository; the secret of one speaks for its own alone.
	if !slices.ContainsFunc(repo.Connections, func(c catalog.RepoConnection) bool { return c.Name == req.Connection }) {
		return false
	}
	e := req.Event
	if len(e.Paths) == 0 && len(e.URLs) == 0 {
		return true
	}

	// Some hosts send the path without their own name before it.
	byPath := func(p string) bool { return p == repo.Name || strings.HasSuffix(repo.Name, "/"+p) }
	byURL := func(u string) bool { return sameRemote(u, repo.CloneURL) || sameRemote(u, repo.WebURL) }
	return slices.ContainsFunc(e.Paths, byPath) || slices.ContainsFunc(e.URLs, byURL)
}

// sameRemote compares clone URLs as hosts write them: with and without .git,
// a slash at the end, or a user.
func sameRemote(a, b string) bool { return plainRemote(a) == plainRemote(b) }

// plainRemote makes one spelling of a clone URL:
//
//	https://me@Host.example/Org/app.git/   https://host.example/Org/app
func plainRemote(s string) string {
	// A slash first: behind it may stand .git.
	s = strings.TrimSuffix(strings.TrimSpace(s), "/")
	s = strings.TrimSuffix(s, ".git")
	scheme, rest, hasScheme := strings.Cut(s, "://")
	host, path, hasPath := strings.Cut(rest, "/")
	// Without a scheme it is a path, or ssh as git writes it: it is compared as it stands.
	if !hasScheme || !hasPath {
		return s
	}

	// Who clones is no part of what is cloned.
	if at := strings.LastIndexByte(host, '@'); at >= 0 {
		host = host[at+1:]
	}
	// The host in lower letters, as names of hosts are; the path as it is, since some tell A from a.
	return strings.ToLower(scheme+"://"+host) + "/" + path
}
