// Package signin signs people in by identity providers: it sends a browser to a
// provider, and learns from what it brings back who somebody is there. Who that
// is here is the business of package account.
//
//	Begin ──▶ address of the provider, and a sealed cookie: state, nonce, verifier
//	          (the person signs in there)
//	Finish ─▶ cookie opened ─ state, provider, issuer compared ─ code exchanged
//	          ─ token checked, or the host asked who it is ──▶ account.Proof
//
// Each of the two may happen at another node: what one has to know of the other
// is in the cookie, which only this cluster can open, and nothing is kept or
// written to the catalog before a provider has vouched for somebody.
//
// Kinds of providers are rows of a table (kinds.go). Most speak OpenID Connect
// (openid.go); code hosts that do not are asked who somebody is (hosts.go).
package signin
