// Package oauth lets programs in on behalf of people: it is the authorization
// server of OAuth 2.1 that agents find when the tool server asks who they are.
// It knows nothing of HTTP; package api has the routes and the page.
//
//	Register ──▶ client id            sealed description of the client
//	Authorize ─▶ Pending ─ Approve ─▶ authorization code, sealed, 60 s
//	Exchange ──▶ code ──────────────▶ catalog.Consent, first tokens
//	Exchange ──▶ refresh token ─────▶ next generation of the consent, next tokens
//	Authenticate ◀── access token ─── catalog.Viewer: the person, as of now
//
// Nothing that somebody unknown asks for is kept: ids of clients, requests,
// codes and tokens are boxes (seal.go) that any node can open again. The
// catalog has one record for each consent, and one change of it for each
// refresh. A box that says what happened carries the index of that entry, so a
// node that is behind waits instead of refusing.
//
// All operations are safe for concurrent use.
package oauth
