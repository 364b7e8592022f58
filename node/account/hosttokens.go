package account

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/node/seal"
)

// HostToken is what somebody gave to let a code host be asked in their name.
type HostToken struct {
	Access  string    `json:"a"`
	Refresh string    `json:"r,omitempty"` // "" where the host gives none
	Expires time.Time `json:"e,omitzero"`  // of Access; zero where the host does not say
	User    string    `json:"u,omitempty"` // the person's name there, where it goes with Access
}

// String is for logs: nothing of it is told.
func (HostToken) String() string { return "a token of a person" }

// HostTokens keeps them, sealed, in the catalog. It is safe for concurrent use.
type HostTokens struct {
	catalog Catalog
	box     *seal.Box
	now     func() time.Time
}

// NewHostTokens keeps tokens in the catalog of a cluster.
func NewHostTokens(c Catalog, now func() time.Time) *HostTokens {
	return &HostTokens{c, seal.New("host tokens", "token of a person", c.Secret), now}
}

// Wanted reports whether code hosts are asked in the name of people now, so that
// they are to be asked for their tokens.
func (h *HostTokens) Wanted() bool {
	return h.catalog.View().PermissionSync() == catalog.PermissionSyncOn
}

// freshEnough is how long ago a host has answered that is not asked again
// because somebody signs in.
const freshEnough = 15 * time.Minute

// keep keeps the token of somebody who has just proven who they are. Where they
// gave none, what they gave before stays.
func (h *HostTokens) keep(ctx context.Context, account string, who Proof) error {
	if who.Token == nil || !h.Wanted() {
		return nil
	}
	x, view := who.identity(account), h.catalog.View()
	site := view.SiteOfIdentity(&x)
	if site == "" {
		return nil // the provider has left the configuration meanwhile
	}

	last := view.Reader(site, x.Subject)
	// Who signs in often must not make the host be asked each time; a failure is asked about again.
	fresh := last != nil && last.Began > 0 && last.Issue == "" && !last.Stale && h.now().Sub(last.At) < freshEnough
	put := &catalog.PutHostToken{Account: account, Ask: !fresh}
	err := h.put(ctx, put, &catalog.HostToken{Provider: x.Provider, Subject: x.Subject, Site: site}, *who.Token)
	if _, refused := catalog.Refused(err); refused {
		return nil // the account has changed meanwhile: it is signed in, or is not, by the rules for that
	}
	return call.WriteError(err)
}

// put seals a token and proposes it for an identity.
func (h *HostTokens) put(ctx context.Context, c *catalog.PutHostToken, of *catalog.HostToken, token HostToken) error {
	plain, err := json.Marshal(token)
	if err != nil {
		return fmt.Errorf("write a token: %w", err)
	}
	c.Token = catalog.HostToken{Provider: of.Provider, Subject: of.Subject, Site: of.Site}
	// Sealed with the key of the identity, so that no token can be moved to another one.
	if c.Token.Sealed, err = h.box.Seal(ctx, plain, of.Key()); err != nil {
		return err
	}
	_, err = h.catalog.Propose(ctx, c)
	return err
}

// Of is the token that somebody gave with an identity.
func (h *HostTokens) Of(ctx context.Context, kept *catalog.HostToken) (token HostToken, err error) {
	plain, err := h.box.Open(ctx, kept.Sealed, kept.Key())
	if err != nil {
		return token, err
	}
	if err := json.Unmarshal(plain, &token); err != nil {
		return token, fmt.Errorf("read a token: %w", err)
	}
	return token, nil
}

// Renew keeps the token that a host gave instead of another one, for the job
// that runs under a fence. Until it returns the new one must not be used: at
// hosts that change both, the old one is good no more.
func (h *HostTokens) Renew(ctx context.Context, kept *catalog.HostToken, account string, fence uint64, token HostToken) error {
	return h.put(ctx, &catalog.PutHostToken{Account: account, Fence: fence, Instead: kept.Set}, kept, token)
}
