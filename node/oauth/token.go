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

// Tokens is what a client gets.
type Tokens struct {
	Access    string `json:"access_token"`
	Type      string `json:"token_type"`
	ExpiresIn int    `json:"expires_in"` // seconds
	Refresh   string `json:"refresh_token"`
	Scope     string `json:"scope"`
}

// accessToken is what an access token says.
type accessToken struct {
	Consent string `json:"c"`
	Index   uint64 `json:"i"` // of the entry that a node has to know
	Until   int64  `json:"u"`
}

// refreshToken is what a refresh token says.
type refreshToken struct {
	Consent    string `json:"c"`
	Generation uint64 `json:"g"`
	Index      uint64 `json:"i"` // of the entry that began the generation
}

// AccessWellFormed tells whether a text claims to be an access token.
func AccessWellFormed(text string) bool { return accessBox.is(text) }

// Exchange gives tokens for a code, or for a refresh token. client is the id of
// the client that stands in the header of the request, "" where it stands in
// the form only. What a client does wrong is an *Error; anything else means
// that it should ask again.
func (s *Server) Exchange(ctx context.Context, client string, form url.Values) (*Tokens, error) {
	// Two values of one parameter are read differently by different programs. Of a
	// resource there may be several (RFC 8707).
	for name, values := range form {
		if len(values) > 1 && name != "resource" {
			return nil, refused(invalidRequest, "The parameter "+cleanName(name)+" is there more than once.")
		}
	}

	// Clients of x/oauth2 name themselves in the header first, all others in the form.
	if id := form.Get("client_id"); client == "" {
		client = id
	} else if id != "" && id != client {
		return nil, refused(invalidRequest, "The header names another client than client_id.")
	}

	if form.Get("client_secret") != "" {
		return nil, refused(invalidClient, "Clients have no secrets here.")
	}
	if err := s.targets(form["resource"]); err != nil {
		return nil, err
	}

	switch form.Get("grant_type") {
	case "authorization_code":
		return s.begin(ctx, client, form)
	case "refresh_token":
		return s.refresh(ctx, client, form.Get("refresh_token"))
	case "":
		return nil, refused(invalidRequest, "The parameter grant_type is missing.")
	}
	return nil, refused(unsupportedWay, "The grant_type is authorization_code or refresh_token.")
}

// errCode and errRefresh tell nothing of why, so that nobody can probe.
var (
	errCode    = refused(invalidGrant, "The code is not good: it was used, has ended, or was made for something else.")
	errRefresh = refused(invalidGrant, "The refresh token is not good (any more): the person has to sign in again.")
)

// begin makes a consent of a code. Nothing is written before all of the request
// has been found right, so that a wrong one does not use up the code.
func (s *Server) begin(ctx context.Context, client string, form url.Values) (*Tokens, error) {
	var c code
	switch err := s.rings.open(ctx, codeBox, form.Get("code"), &c); {
	case errors.Is(err, errBox):
		return nil, errCode
	case err != nil:
		return nil, err
	}

	redirect := form.Get("redirect_uri")
	// Each in constant time and with the same answer: what is wrong with it, nobody learns.
	switch {
	case subtle.ConstantTimeCompare(c.Client, (&Client{ID: client}).hash()) == 0:
		return nil, errCode
	// It was checked when the person was asked; OAuth 2.1 lets a client leave it out here.
	case redirect != "" && subtle.ConstantTimeCompare(c.Redirect, sum(redirect)) == 0:
		return nil, errCode
	case !verified(c.Challenge, form.Get("code_verifier")):
		return nil, errCode
	case !s.d.Now().Before(time.Unix(c.Until, 0)):
		return nil, errCode
	}

	// What is clear here already is not written to the log to be refused there.
	if old := s.d.Cluster.View().Consent(c.ID); old != nil {
		return s.again(ctx, &c)
	}

	// The account as the person consented: any change since then, also one
	// that this node does not have yet, ends it.
	if err := s.reach(ctx, c.Since); err != nil {
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

	refusal, err := proposed(err)
	switch {
	case err != nil:
		return nil, err
	// Another node has taken the same code at the same time: one of the two is a repetition.
	case refusal == catalog.Conflict:
		return s.again(ctx, &c)
	case refusal != 0:
		return nil, errCode
	}
	return s.tokens(ctx, s.d.Cluster.View().Consent(c.ID))
}

// verified tells whether a verifier is the one of a challenge.
func verified(challenge, verifier string) bool {
	h := sha256.Sum256([]byte(verifier))
	return goodVerifier(verifier) && subtle.ConstantTimeCompare([]byte(base64.RawURLEncoding.EncodeToString(h[:])), []byte(challenge)) == 1
}

// again is a code that was used before: by the same client a moment ago, whose
// answer was lost, or by somebody who has stolen it, which ends the consent.
func (s *Server) again(ctx context.Context, c *code) (*Tokens, error) {
	old := s.d.Cluster.View().Consent(c.ID)
	if old == nil {
		return nil, errNotReady // there is no room for it, or it is about to be seen
	}

	now := s.d.Now()
	// Only before anything came of it: later the client has had its tokens.
	if s.alive(old) && old.Generation == 1 && now.Sub(old.Created) <= codeRetry {
		return s.tokens(ctx, old)
	}
	if err := s.end(ctx, old, "a code was used twice"); err != nil {
		return nil, err
	}
	return nil, errCode
}

// refresh moves a consent to its next generation:
//
//	the newest token                      the next one
//	the one before, within the grace      the newest one again, the same bytes
//	an older one, or later                somebody else has it: the consent ends
//
// So it does no harm when two processes of a client refresh at once, or when an
// answer is lost.
func (s *Server) refresh(ctx context.Context, client, text string) (*Tokens, error) {
	// Whose token it is says the token; that it is this client's, the consent does.
	token, consent, err := s.opened(ctx, text)
	if err != nil {
		return nil, err
	}
	if consent == nil || !s.alive(consent) || !bytes.Equal(consent.Client, (&Client{ID: client}).hash()) {
		return nil, errRefresh
	}

	// Moved by its generation: of two that come at once, one moves it.
	if token.Generation == consent.Generation {
		_, err := s.d.Cluster.Propose(ctx, &catalog.RotateConsent{ID: consent.ID, From: token.Generation, Expires: s.d.Now().Add(s.consentLife())})
		refusal, err := proposed(err)
		if err != nil {
			return nil, err
		}

		// Stale says that somebody else was first, which the grace may forgive.
		if refusal != 0 && refusal != catalog.Stale {
			return nil, errRefresh
		}

		// Whoever was first, the outcome has been applied here.
		if consent = s.d.Cluster.View().Consent(consent.ID); consent == nil || !s.alive(consent) {
			return nil, errRefresh
		}
		if refusal == 0 && consent.Generation == token.Generation+1 {
			return s.tokens(ctx, consent)
		}
	}

	// An answer may have been lost: the newest one again, so that there is no third.
	if token.Generation+1 == consent.Generation && s.d.Now().Sub(consent.Rotated) <= s.grace() {
		return s.tokens(ctx, consent)
	}

	// Either the client or a thief has an old one: nobody can tell which, so neither goes on.
	if err := s.end(ctx, consent, "a refresh token was used after its successor"); err != nil {
		return nil, err
	}
	return nil, errRefresh
}

// opened reads a refresh token and finds its consent, which may be nil.
func (s *Server) opened(ctx context.Context, text string) (token refreshToken, c *catalog.Consent, err error) {
	switch err := s.rings.open(ctx, refreshBox, text, &token); {
	case errors.Is(err, errBox):
		return token, nil, errRefresh
	case err != nil:
		return token, nil, err
	}

	// A node that is behind would take the newest token for a stolen one, and end the consent.
	if err := s.reach(ctx, token.Index); err != nil {
		return token, nil, err
	}
	return token, s.d.Cluster.View().Consent(token.Consent), nil
}

// alive tells whether a consent counts: it has not ended, the person is there,
// and the key that they had signed in with has not expired.
func (s *Server) alive(c *catalog.Consent) bool {
	// As it is now: with the person the consents go, without a change of their own.
	a := s.d.Cluster.View().Account(c.Account)
	return c.Lives(s.d.Now()) && a != nil && a.State == catalog.AccountActive && !s.keyExpired(c.Key)
}

// keyExpired tells whether the key that somebody had signed in with is over: no
// entry of the log tells of that, as one does of its revocation.
func (s *Server) keyExpired(id string) bool {
	key := s.d.Cluster.View().Key(id)
	return key != nil && key.Expired(s.d.Now())
}

// end ends a consent because somebody seems to have stolen from it.
func (s *Server) end(ctx context.Context, c *catalog.Consent, why string) error {
	// It has been told and told of already.
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

// tokens are those of the present generation of a consent.
func (s *Server) tokens(ctx context.Context, c *catalog.Consent) (*Tokens, error) {
	if c == nil {
		return nil, errNotReady
	}

	// Both carry the entry that they stand on: a node that is behind waits for it.
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

// Authenticate finds who shows an access token: the person as of now, and never
// more than a member. It fails with call.ErrUnauthenticated where the token is
// not good, and with call.ErrUnavailable where this node is too far behind to
// tell.
func (s *Server) Authenticate(ctx context.Context, text string) (catalog.Viewer, error) {
	bad := call.Fail(call.ErrUnauthenticated, "Not authenticated: the access token is not good (any more).")
	var token accessToken
	switch err := s.rings.open(ctx, accessBox, text, &token); {
	case errors.Is(err, errBox):
		return catalog.Viewer{}, bad
	case err != nil:
		return catalog.Viewer{}, err
	}

	if !s.d.Now().Before(time.Unix(token.Until, 0)) {
		return catalog.Viewer{}, bad
	}

	// It is ours, so the entry that it stands on is there: a node that does not have it
	// yet is behind, and must not say that the token is not good.
	if err := s.reach(ctx, token.Index); err != nil {
		return catalog.Viewer{}, err
	}

	c := s.d.Cluster.View().Consent(token.Consent)
	if c == nil || !s.alive(c) {
		return catalog.Viewer{}, bad
	}
	return catalog.Viewer{Role: catalog.RoleMember, Name: c.Name, KeyID: c.ID, Account: c.Account}, nil
}

// Revoke ends the consent of a token. A text that is no token is no failure.
func (s *Server) Revoke(ctx context.Context, text string) error {
	// Either token ends the consent: clients revoke the one that they have (RFC 7009).
	var id string
	var index uint64
	var access accessToken
	if accessBox.is(text) {
		if err := s.rings.open(ctx, accessBox, text, &access); err != nil {
			return notBox(err)
		}
		id, index = access.Consent, access.Index
	} else {
		var refresh refreshToken
		if err := s.rings.open(ctx, refreshBox, text, &refresh); err != nil {
			return notBox(err)
		}
		id, index = refresh.Consent, refresh.Index
	}

	if err := s.reach(ctx, index); err != nil {
		return err
	}

	c := s.d.Cluster.View().Consent(id)
	if c == nil || !c.Ended.IsZero() {
		return nil
	}
	return s.endNow(ctx, c.ID)
}

// notBox forgives what is no box.
func notBox(err error) error {
	if errors.Is(err, errBox) {
		return nil
	}
	return err
}

// endNow ends a consent; every node that can be reached refuses its tokens when
// it returns.
func (s *Server) endNow(ctx context.Context, id string) error {
	index, err := s.d.Cluster.Propose(ctx, &catalog.EndConsents{IDs: []string{id}})
	if err != nil {
		return call.WriteError(err)
	}
	s.awaitOthers(ctx, index)
	return nil
}

// awaitOthers waits until the other members have applied an index.
func (s *Server) awaitOthers(ctx context.Context, index uint64) {
	if behind := account.AwaitOthers(ctx, s.d.Cluster, index); len(behind) > 0 {
		s.d.Log.Warn("the tokens of an agent that was ended work at nodes that could not be told until they hear of the leader", "nodes", behind)
	}
}
