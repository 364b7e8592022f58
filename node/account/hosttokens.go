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

// HostToken is a person's token for asking a code host in their name.
type HostToken struct {
	Access  string    `json:"a"`
	Refresh string    `json:"r,omitempty"` // "": the host gives none
	Expires time.Time `json:"e,omitzero"`  // of Access; zero: unknown
	User    string    `json:"u,omitempty"` // the person's user name at the host, if Access needs it
}

// String hides the token from logs.
func (HostToken) String() string { return "a token of a person" }

// HostTokens stores host tokens, sealed, in the catalog. It is safe for concurrent use.
type HostTokens struct {
	catalog Catalog
	box     *seal.Box
	now     func() time.Time
}

// NewHostTokens returns the host tokens of a catalog.
func NewHostTokens(c Catalog, now func() time.Time) *HostTokens {
	return &HostTokens{c, seal.New("host tokens", "token of a person", c.Secret), now}
}

// Wanted reports whether code hosts are asked in people's names, so that people should be asked for
// tokens.
func (h *HostTokens) Wanted() bool {
	return h.catalog.View().PermissionSync() == catalog.PermissionSyncOn
}

// freshEnough is the age of a host's answer up to which a sign-in does not ask again.
const freshEnough = 15 * time.Minute

// keepToken stores the token of a person who just signed in. Without a new token the old one stays.
func (h *HostTokens) keepToken(ctx context.Context, account string, who Proof) error {
	if who.Token == nil || !h.Wanted() {
		return nil
	}
	x, view := who.identity(account), h.catalog.View()
	site := view.SiteOfIdentity(&x)
	if site == "" {
		return nil // the provider was removed from the configuration
	}

	last := view.Reader(site, x.Subject)
	// A sign-in soon after a good answer must not ask the host again.
	fresh := last != nil && last.Began > 0 && last.Issue == "" && !last.Stale && h.now().Sub(last.At) < freshEnough
	put := &catalog.PutHostToken{Account: account, Ask: !fresh}
	err := h.sealAndPropose(ctx, put, &catalog.HostToken{Provider: x.Provider, Subject: x.Subject, Site: site}, *who.Token)
	if _, refused := catalog.Refused(err); refused {
		return nil // the account has changed meanwhile; the sign-in itself checks that
	}
	return call.WriteError(err)
}

// sealAndPropose seals a token and proposes it for an identity.
func (h *HostTokens) sealAndPropose(ctx context.Context, c *catalog.PutHostToken, of *catalog.HostToken, token HostToken) error {
	plain, err := json.Marshal(token)
	if err != nil {
		return fmt.Errorf("write a token: %w", err)
	}
	c.Token = catalog.HostToken{Provider: of.Provider, Subject: of.Subject, Site: of.Site}
	// Bind the seal to the identity, so that a token cannot be moved to another one.
	if c.Token.Sealed, err = h.box.Seal(ctx, plain, of.Key()); err != nil {
		return err
	}
	_, err = h.catalog.Propose(ctx, c)
	return err
}

// Of decrypts the stored token of an identity.
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

// Renew stores a refreshed token for the job with this fence. The caller must not use the new token
// before Renew returns: at some hosts a refresh also replaces the refresh token.
func (h *HostTokens) Renew(ctx context.Context, kept *catalog.HostToken, account string, fence uint64, token HostToken) error {
	return h.sealAndPropose(ctx, &catalog.PutHostToken{Account: account, Fence: fence, Instead: kept.Set}, kept, token)
}
