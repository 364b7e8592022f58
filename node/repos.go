package node

import (
	"context"
	"time"
)

// ReposRequest asks for a page of the repositories that the viewer may see.
type ReposRequest struct {
	Query      string // case-insensitive part of the name
	Connection string // name of a connection; "" for all
	Page       int    // from 1; 0 means 1
	PerPage    int    // 1..100; 0 means 30
	Sort       string // "name" (default) or "pushed"
	Desc       bool
}

// ReposResponse is a page, with the count of all.
type ReposResponse struct {
	Repos []RepoInfo
	Total int
	Page  int
	Per   int
}

// RepoInfo describes a repository.
type RepoInfo struct {
	ID             uint32
	Name           string
	DisplayName    string
	CodeHostType   string // genericGitHost, github, ...
	WebURL         string // page of this service
	ExternalWebURL string // page of the code host; "" when unknown
	Connections    []string
	Topics         []string
	DefaultBranch  string // short name; "" when unknown
	Fork           bool
	Archived       bool
	Public         bool
	PushedAt       time.Time // zero: unknown
	IndexedAt      time.Time // zero: not yet
	Revisions      []RevisionInfo
	Documents      int64
	TextBytes      int64
	ShardBytes     int64
	Error          string // of the last index job; "" when it was good
}

// RevisionInfo is an indexed revision.
type RevisionInfo struct {
	Name   string // full ref name, or HEAD
	Commit string // hex
}

// ReindexRequest asks to index a repository now. Owners only.
type ReindexRequest struct{ ID uint32 }

// ReindexResponse tells what was queued.
type ReindexResponse struct {
	ID   uint32
	Name string
}

// WebhookRequest is a push event for a connection. The signature is checked
// by whoever decodes the event, with the secret from WebhookSecret.
type WebhookRequest struct {
	Connection string
	// CloneURLs and Names say which repositories of the connection changed;
	// both empty means any may have.
	CloneURLs []string
	Names     []string
}

// WebhookResponse tells which repositories were queued.
type WebhookResponse struct{ Repos []string }

// Repos lists repositories.
func (n *Node) Repos(ctx context.Context, v Viewer, req ReposRequest) (*ReposResponse, error) {
	return nil, errUnfinished
}

// Reindex queues an index job for a repository.
func (n *Node) Reindex(ctx context.Context, v Viewer, req ReindexRequest) (*ReindexResponse, error) {
	return nil, errUnfinished
}

// Webhook queues index jobs for the repositories of an event.
func (n *Node) Webhook(ctx context.Context, v Viewer, req WebhookRequest) (*WebhookResponse, error) {
	return nil, errUnfinished
}

// WebhookSecret is the secret that signs the events of a connection, derived
// from the cluster secret; shown to owners by `shoal status`.
func (n *Node) WebhookSecret(connection string) (string, error) { return "", errUnfinished }
