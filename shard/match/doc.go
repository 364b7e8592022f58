// Package match finds where a pattern matches in a text. Searches use it to verify the candidates
// that the index names.
//
// A pattern is a literal or an expression in RE2 syntax. `^` and `$` always match at lines, and `.`
// never matches a newline. A match crosses lines only if the pattern contains `\n`:
//
//	Compile(`^#define [A-Z]+_MAX`, Options{})            expression
//	Compile(`->next`, Options{Literal: true})            literal
//	Compile(`todo`, Options{Literal: true, Fold: true})  literal, any case
//
// Spans are those of [regexp.Regexp.FindAllIndex]: leftmost-first and without overlaps. Empty
// matches do not count, because they help nobody. The exception are patterns that match only the
// empty text, such as `^$`. They match once in every line in which they hold, with an empty span.
// The text after the last newline is a line only if it is not empty.
//
// A line may end in "\r\n". To every pattern that does not name "\r", these two bytes are one
// newline: a Matcher searches a copy of the text without "\r". It does not add `\r?` to the pattern
// instead, because `.` or a class such as `[^x]` would read the "\r".
//
// Literals are compared byte by byte, whatever the encoding of the text. Expressions read text as
// UTF-8. They read a byte that is not UTF-8 as U+FFFD with a width of one byte, as package regexp
// does. Folding is simple Unicode folding: k also matches the Kelvin sign.
package match
