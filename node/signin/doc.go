// Package signin signs people in by identity providers. It sends a browser to a provider, and
// learns from the result who the person is there. Package account maps that to an account here.
//
//	Begin ──▶ address of the provider, and a sealed cookie: state, nonce, verifier
//	          (the person signs in there)
//	Finish ─▶ cookie opened ─ state, provider, issuer compared ─ code exchanged
//	          ─ token checked, or the host asked who it is ──▶ account.Proof
//
// Begin and Finish may run on different nodes. The state between them is in the cookie, which only
// this cluster can open. Nothing is stored before a provider has authenticated the person.
//
// Kinds of providers are rows of a table (kinds.go). Most speak OpenID Connect (openid.go). Code
// hosts that do not are asked by their own API (hosts.go).
package signin
