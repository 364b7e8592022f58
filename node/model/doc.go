// Package model speaks to language models: twelve providers over five wires.
//
//	config.Model ── provider.go, a row ──▶ base URL, credential, quirks
//	                                          │
//	Request ─▶ Client.Answer ─▶ one wire ─▶ guardedTransport transport ─▶ the provider
//	              │  again on 429, 5xx, cuts      │ no redirect, sizes, silence
//	              ▼                               ▼
//	           Event ... Event, Answer         *Error, a kind of one table
//
// The wires are Chat Completions (chat.go), Responses (responses.go), Messages
// (messages.go), generateContent (gemini.go) and Converse (converse.go). The
// last four are spoken by their makers' libraries, which know the types and the
// framing; Chat Completions is our own, because none of its five providers is
// the one that its library is made for.
//
// Credentials are resolved when a model is opened, on the node that calls it.
// They go to the wire and nowhere else: the libraries are never given one, the
// transport writes it into the request, drops every header that was not asked
// for, and cuts secrets out of whatever comes back as an error.
//
// An assistant's message keeps, beside what we read of it, the provider's own
// form: signatures and encrypted reasoning have to come back to the provider
// unchanged, or it refuses the next step.
package model
