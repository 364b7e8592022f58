// Package ask answers questions about code with a language model that searches
// and reads by itself.
//
//	question ─▶ Turn: events, numbered                  watchers read them from any number on
//	              │
//	              ▼  loop.go, within its budgets
//	       model.Client.Answer ──▶ calls of tools ──▶ tool.Set, with the asker's viewer, narrowed
//	              │                                     └─ ledger.go: which file, at which commit
//	              ▼
//	       cite.go: each citation is checked against the repository and pinned to a commit
//
// The model decides nothing that matters: the tools only read, the viewer and
// the repositories of the question bind them below the model, and an answer
// shows no link that the check of citations did not make. So text in a
// repository that gives orders has nothing to win.
//
// A turn runs on one node, whether or not somebody watches, and ends with it: a node
// that stops finishes its turns first, and of a lost one the question stays (lost.go),
// to be asked again. thread.go says who sees what of a turn.
//
// The parts, each of which knows only those to its right:
//
//	questions ─▶ opener ─▶ planner, starter ─▶ runs, keeper      a question becomes a turn
//	losses ────▶ runs, keeper                                    a turn whose node is lost ends
//	follower ──▶ remote ─▶ runs                                  viewers see what is said
//	desk ──────▶ questions, follower                             the tool ask_codebase
//	all of them ─▶ archive                                       threads, and who may see them
package ask
