// Package oauth gives programs access on behalf of people. It is the OAuth 2.1 authorization server
// for the tool server's clients. It does not depend on HTTP; package api has the routes and the
// page.
//
//	Register ──▶ client id            sealed description of the client
//	Authorize ─▶ Pending ─ Approve ─▶ authorization code, sealed, 60 s
//	Exchange ──▶ code ──────────────▶ catalog.Consent, first tokens
//	Exchange ──▶ refresh token ─────▶ next generation of the consent, next tokens
//	Authenticate ◀── access token ─── catalog.Viewer: the person, as of now
//
// Nothing that a stranger sends is stored: client ids, requests, codes and tokens are sealed boxes
// (seal.go), which any node can open. The catalog has one record per consent, and changes it once
// per refresh. A box about such an entry contains its index. So a node that lags behind waits
// instead of refusing.
//
// All operations are safe for concurrent use.
package oauth
