// Package paths says in which files something is looked for, in the words of
// requests: a directory, globs of doublestar, tests or not.
//
//	Filter{Dir: "src", Include: ["*.go"]} ── Exprs ──▶ expressions of whole paths
//	     Atoms: for the index, which takes expressions
//	     Keeps: for a path that somebody has
//
// A glob is what doublestar takes it for, which a fuzz test holds it to. One with braces is
// all that it stands for: a*{,.bak} matches a, which doublestar misses, as a* and a*.bak do.
// Two stars that are no whole part of a path are one, also in x**/ at the end.
package paths
