// Package match finds the places in a text where a pattern holds. It is the
// verifier of the search: the index names candidates, this package decides.
//
// A pattern is a literal or an expression in RE2 syntax. Line anchors are
// always on and a dot never matches a newline, so `^`, `$` and `.` speak of
// lines while `\n` may still be written to cross them:
//
//	Compile(`^#define [A-Z]+_MAX`, Options{})            expression
//	Compile(`->next`, Options{Literal: true})            literal
//	Compile(`todo`, Options{Literal: true, Fold: true})  literal, any case
//
// Spans are those of [regexp.Regexp.FindAllIndex], leftmost-first and not
// overlapping, with empty matches left out: a search that reports "nothing,
// found here" helps nobody. The one exception are patterns that can match
// nothing else, such as `^$`: they match every line in which they hold once,
// with an empty span. What follows the last newline is a line only if it is
// not empty.
//
// A line may end in "\r\n": those two bytes are one newline to every pattern that does
// not name "\r". Such a text is searched in a copy without them. Refused: to write `\r?`
// into the pattern, since a class such as `[^x]` or `.` would read the "\r".
//
// Literals are compared byte by byte, whatever the encoding of the text.
// Expressions read text as UTF-8 and take a byte that is none as U+FFFD of
// width one, as package regexp does. Folding is simple Unicode folding: k
// also finds the Kelvin sign.
package match
