// Package tool is the table of the functions that agents call: a row for each
// tool with its name, the description that a model reads, its parameters, and
// the function that answers with text.
//
//	name, JSON arguments -> Set.Call -> row of the table
//	   arguments checked against the row -> one operation of a node -> text within a budget
//
// Every result is one text. Its first line says what was found; its last line
// says that this was all, or what was left out and the exact call that
// continues. A failure is a text too: a sentence that tells the model what to
// do next, with names that could have been meant. Such names come from
// listings made for the same viewer, so that a hint tells of nothing that the
// viewer may not see.
//
// A tool is one file, named after it, and one line in [New]. The protocol that
// carries calls is package api/mcp's; how files are searched and repositories
// read is behind the small interfaces of [Parts].
package tool
