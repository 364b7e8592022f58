// Package account knows who asks and what they may do.
//
//	cookie ─── Sessions.SessionViewer ─┐
//	API key ── Keyring.Authenticate ──▶ catalog.Viewer ── Gate.Repos ──▶ Repos: what this viewer may see
//	                                               └── AsOwner ───▶ Owner: proof that it may administer
//
// Both doors are passed once. Whatever reads repositories for a viewer takes
// them from [Repos], so what a viewer may not see does not exist for it;
// whatever administers takes an [Owner], which nothing but [AsOwner] and
// [Operator] makes.
package account
