// Package account decides who makes a request and what they may do.
//
//	cookie ─── Sessions.SessionViewer ─┐
//	API key ── Keyring.Authenticate ──▶ catalog.Viewer ── Gate.Repos ──▶ Repos: what this viewer may see
//	                                               └── AsOwner ───▶ Owner: proof that it may administer
//
// Each request passes these once. Code that reads repositories for a viewer gets them from [Repos],
// so hidden repositories do not exist for it. Code that administers requires an [Owner], which only
// [AsOwner] and [Operator] return.
package account
