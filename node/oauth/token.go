package oauth

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"net/url"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/call"
)

// Tokens is the response to a client.
type Tokens struct {
	Access    string `json:"access_token"`
	Type      string `json:"token_type"`
	ExpiresIn int    `json:"expires_in"` // seconds
	Refresh   string `json:"refresh_token"`
	Scope     string `json:"scope"`
}

// accessToken is the content of an access token.
type accessToken struct {
	Consent string `json:"c"`
	Index   uint64 `json:"i"` // entry that a node must have applied
	Until   int64  `json:"u"`
}

// refreshToken is the content of a refresh token.
type refreshToken struct {
	Consent    string `json:"c"`
	Generation uint64 `json:"g"`
	Index      uint64 `json:"i"` // entry that began the generation
}

// AccessWellFormed reports whether a text claims to be an access token.
func AccessWellFormed(text string) bool { return accessBox.hasPrefixOf(text) }

// Exchange returns tokens for a code or a refresh token. client is the client id in the request's
// header, or "". A mistake of the client gives an *Error; after any other error it should try
// again.
func (s *Server) Exchange(ctx context.Context, client string, form url.Values) (*Tokens, error) {
	// Programs disagree about which of two values counts. Only resource may repeat (RFC 8707).
	for name, values := range form {
		if len(values) > 1 && name != "resource" {
			return nil, newError(invalidRequest, "The parameter "+cleanName(name)+" is there more than once.")
		}
	}

	// Clients of x/oauth2 first send their id in the header, others in the form.
	if id := form.Get("client_id"); client == "" {
		client = id
	} else if id != "" && id != client {
		return nil, newError(invalidRequest, "The header names another client than client_id.")
	}

	if form.Get("client_secret") != "" {
		return nil, newError(invalidClient, "Clients have no secrets here.")
	}
	if err := s.checkResources(form["resource"]); err != nil {
		return nil, err
	}

	switch form.Get("grant_type") {
	case "authorization_code":
		return s.redeemCode(ctx, client, form)
	case "refresh_token":
		return s.refreshTokens(ctx, client, form.Get("refresh_token"))
	case "":
		return nil, newError(invalidRequest, "The parameter grant_type is missing.")
	}
	return nil, newError(unsupportedWay, "The grant_type is authorization_code or refresh_token.")
}

// errCode and errRefresh give no reason, so that an attacker learns nothing from them.
var (
	errCode    = newError(invalidGrant, "The code is not good: it was used, has ended, or was made for something else.")
	errRefresh = newError(invalidGrant, "The refresh token is not good (any more): the person has to sign in again.")
)

// redeemCode creates a consent from a code. It checks the whole request before writing anything, so
// that a wrong one does not use up the code.
func (s *Server) redeemCode(ctx context.Context, client string, form url.Values) (*Tokens, error) {
	var c code
	switch err := s.rings.open(ctx, codeBox, form.Get("code"), &c); {
	case errors.Is(err, errNotSealed):
		return nil, errCode
	case err != nil:
		return nil, err
	}

	redirect := form.Get("redirect_uri")
	// Compare in constant time, with one error for all mistakes.
	switch {
	case subtle.ConstantTimeCompare(c.Client, (&Client{ID: client}).hash()) == 0:
		return nil, errCode
	// It was checked at the consent. OAuth 2.1 lets a client omit it here.
	case redirect != "" && subtle.ConstantTimeCompare(c.Redirect, hashText(redirect)) == 0:
		return nil, errCode
	case !matchesChallenge(c.Challenge, form.Get("code_verifier")):
		return nil, errCode
	case !s.d.Now().Before(time.Unix(c.Until, 0)):
		return nil, errCode
	}

	// If the consent exists, do not propose it again.
	if old := s.d.Cluster.View().Consent(c.ID); old != nil {
		return s.redeemAgain(ctx, &c)
	}

	// The code is valid only if the account is as it was at the consent. So this node must know the
	// account at least as of that entry.
	if err := s.awaitEntry(ctx, c.Since); err != nil {
		return nil, err
	}
	if a := s.d.Cluster.View().Account(c.Account); a == nil || a.State != catalog.AccountActive || a.Changed != c.Since || s.keyExpired(c.Key) {
		return nil, errCode
	}

	_, err := s.d.Cluster.Propose(ctx, &catalog.PutConsent{Since: c.Since, Consent: catalog.Consent{
		ID:      c.ID,
		Account: c.Account,
		Client:  c.Client,
		Name:    c.Name,
		Kind:    c.Kind,
		Host:    c.Host,
		Scope:   c.Scope,
		Key:     c.Key,
		Expires: s.d.Now().Add(s.consentLife()),
	}})

	refusal, err := splitRefusal(err)
	switch {
	case err != nil:
		return nil, err
	// Another node took the same code at the same time: treat this as the repetition.
	case refusal == catalog.Conflict:
		return s.redeemAgain(ctx, &c)
	case refusal != 0:
		return nil, errCode
	}
	return s.makeTokens(ctx, s.d.Cluster.View().Consent(c.ID))
}

// matchesChallenge reports whether a verifier belongs to a challenge.
func matchesChallenge(challenge, verifier string) bool {
	h := sha256.Sum256([]byte(verifier))
	return isVerifier(verifier) && subtle.ConstantTimeCompare([]byte(base64.RawURLEncoding.EncodeToString(h[:])), []byte(challenge)) == 1
}

// redeemAgain handles a code that was used before. The same client may repeat it soon, because the
// answer was lost: it gets the same tokens. Any other use may be a thief's, and ends the consent.
func (s *Server) redeemAgain(ctx context.Context, c *code) (*Tokens, error) {
	old := s.d.Cluster.View().Consent(c.ID)
	if old == nil {
		return nil, errNotReady // the catalog is full, or this node lags behind
	}

	now := s.d.Now()
	// Only before the first refresh: later the client has its tokens.
	if s.isValid(old) && old.Generation == 1 && now.Sub(old.Created) <= codeRetry {
		return s.makeTokens(ctx, old)
	}
	if err := s.endStolen(ctx, old, "a code was used twice"); err != nil {
		return nil, err
	}
	return nil, errCode
}

// refreshTokens moves a consent to its next generation:
//
//	the newest token                      the next one
//	the one before, within the grace      the newest one again, the same bytes
//	an older one, or later                somebody else has it: the consent ends
//
// So two concurrent refreshes, or a lost answer, do no harm.
func (s *Server) refreshTokens(ctx context.Context, client, text string) (*Tokens, error) {
	// The token names the consent, and the consent the client.
	token, consent, err := s.openRefreshToken(ctx, text)
	if err != nil {
		return nil, err
	}
	if consent == nil || !s.isValid(consent) || !bytes.Equal(consent.Client, (&Client{ID: client}).hash()) {
		return nil, errRefresh
	}

	// The generation ensures that only one of two concurrent refreshes succeeds.
	if token.Generation == consent.Generation {
		_, err := s.d.Cluster.Propose(ctx, &catalog.RotateConsent{ID: consent.ID, From: token.Generation, Expires: s.d.Now().Add(s.consentLife())})
		refusal, err := splitRefusal(err)
		if err != nil {
			return nil, err
		}

		// Stale means that another refresh was first, which the grace period may allow.
		if refusal != 0 && refusal != catalog.Stale {
			return nil, errRefresh
		}

		// This node has applied the result, whichever refresh was first.
		if consent = s.d.Cluster.View().Consent(consent.ID); consent == nil || !s.isValid(consent) {
			return nil, errRefresh
		}
		if refusal == 0 && consent.Generation == token.Generation+1 {
			return s.makeTokens(ctx, consent)
		}
	}

	// The answer may have been lost: return the newest token again.
	if token.Generation+1 == consent.Generation && s.d.Now().Sub(consent.Rotated) <= s.refreshGrace() {
		return s.makeTokens(ctx, consent)
	}

	// The client or a thief has an old token, and nobody can tell which. End the consent for both.
	if err := s.endStolen(ctx, consent, "a refresh token was used after its successor"); err != nil {
		return nil, err
	}
	return nil, errRefresh
}

// openRefreshToken opens a refresh token and returns its consent, or nil.
func (s *Server) openRefreshToken(ctx context.Context, text string) (token refreshToken, c *catalog.Consent, err error) {
	switch err := s.rings.open(ctx, refreshBox, text, &token); {
	case errors.Is(err, errNotSealed):
		return token, nil, errRefresh
	case err != nil:
		return token, nil, err
	}

	// A node that lags behind would take the newest token for a stolen one.
	if err := s.awaitEntry(ctx, token.Index); err != nil {
		return token, nil, err
	}
	return token, s.d.Cluster.View().Consent(token.Consent), nil
}

// isValid reports whether a consent is valid: it has not ended, the account is active, and the key
// used to sign in has not expired.
func (s *Server) isValid(c *catalog.Consent) bool {
	// Check the account as it is now: consents end with it, without a change of their own.
	a := s.d.Cluster.View().Account(c.Account)
	return c.Lives(s.d.Now()) && a != nil && a.State == catalog.AccountActive && !s.keyExpired(c.Key)
}

// keyExpired reports whether the key used to sign in has expired. Expiry is not an entry in the
// log, unlike a revocation.
func (s *Server) keyExpired(id string) bool {
	key := s.d.Cluster.View().Key(id)
	return key != nil && key.Expired(s.d.Now())
}

// endStolen ends a consent because a token of it seems to be stolen.
func (s *Server) endStolen(ctx context.Context, c *catalog.Consent, why string) error {
	if !c.Ended.IsZero() {
		return nil
	}
	s.d.Log.Warn("the consent of an agent was ended", "why", why, "account", c.Account, "client", c.Name, "consent", c.ID)
	index, err := s.d.Cluster.Propose(ctx, &catalog.EndConsents{IDs: []string{c.ID}})
	if err != nil {
		return call.WriteError(err)
	}
	s.awaitOthers(ctx, index)
	return nil
}

// makeTokens returns the tokens of the present generation of a consent.
func (s *Server) makeTokens(ctx context.Context, c *catalog.Consent) (*Tokens, error) {
	if c == nil {
		return nil, errNotReady
	}

	// Both contain the index of their entry, so that a node that lags behind waits.
	life := s.accessLife()
	access, err := s.rings.seal(ctx, accessBox, accessToken{c.ID, c.Index, s.d.Now().Add(life).Unix()})
	if err != nil {
		return nil, err
	}

	refresh, err := s.rings.seal(ctx, refreshBox, refreshToken{c.ID, c.Generation, c.Index})
	if err != nil {
		return nil, err
	}

	return &Tokens{Access: access, Type: "Bearer", ExpiresIn: int(life / time.Second), Refresh: refresh, Scope: c.Scope}, nil
}

// Authenticate returns the viewer of an access token: the person with present rights, but at most
// as a member. It returns call.ErrUnauthenticated for an invalid token, and call.ErrUnavailable if
// this node lags too far behind.
func (s *Server) Authenticate(ctx context.Context, text string) (catalog.Viewer, error) {
	unauthenticated := call.Fail(call.ErrUnauthenticated, "Not authenticated: the access token is not good (any more).")
	var token accessToken
	switch err := s.rings.open(ctx, accessBox, text, &token); {
	case errors.Is(err, errNotSealed):
		return catalog.Viewer{}, unauthenticated
	case err != nil:
		return catalog.Viewer{}, err
	}

	if !s.d.Now().Before(time.Unix(token.Until, 0)) {
		return catalog.Viewer{}, unauthenticated
	}

	// The box is ours, so its entry exists. A node without it lags behind, and must not refuse the
	// token.
	if err := s.awaitEntry(ctx, token.Index); err != nil {
		return catalog.Viewer{}, err
	}

	c := s.d.Cluster.View().Consent(token.Consent)
	if c == nil || !s.isValid(c) {
		return catalog.Viewer{}, unauthenticated
	}
	return catalog.Viewer{Role: catalog.RoleMember, Name: c.Name, KeyID: c.ID, Account: c.Account}, nil
}

// Revoke ends the consent of a token. Any other text is ignored.
func (s *Server) Revoke(ctx context.Context, text string) error {
	// Either token ends the consent: clients revoke the one that they have (RFC 7009).
	var id string
	var index uint64
	var access accessToken
	if accessBox.hasPrefixOf(text) {
		if err := s.rings.open(ctx, accessBox, text, &access); err != nil {
			return ignoreNotSealed(err)
		}
		id, index = access.Consent, access.Index
	} else {
		var refresh refreshToken
		if err := s.rings.open(ctx, refreshBox, text, &refresh); err != nil {
			return ignoreNotSealed(err)
		}
		id, index = refresh.Consent, refresh.Index
	}

	if err := s.awaitEntry(ctx, index); err != nil {
		return err
	}

	c := s.d.Cluster.View().Consent(id)
	if c == nil || !c.Ended.IsZero() {
		return nil
	}
	return s.endConsent(ctx, c.ID)
}

// ignoreNotSealed returns nil for errNotSealed, and any other error unchanged.
func ignoreNotSealed(err error) error {
	if errors.Is(err, errNotSealed) {
		return nil
	}
	return err
}

// endConsent ends a consent. When it returns, every reachable node refuses its tokens.
func (s *Server) endConsent(ctx context.Context, id string) error {
	index, err := s.d.Cluster.Propose(ctx, &catalog.EndConsents{IDs: []string{id}})
	if err != nil {
		return call.WriteError(err)
	}
	s.awaitOthers(ctx, index)
	return nil
}

// awaitOthers waits until the other members have applied an index, and logs those that did not.
func (s *Server) awaitOthers(ctx context.Context, index uint64) {
	if behind := account.AwaitOthers(ctx, s.d.Cluster, index); len(behind) > 0 {
		s.d.Log.Warn("the tokens of an agent that was ended work at nodes that could not be told until they hear of the leader", "nodes", behind)
	}
}
