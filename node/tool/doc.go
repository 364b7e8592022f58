// Package tool has the functions that agents call. A table has a row for each tool: its name, the
// description for models, its parameters, and the function that answers with text.
//
//	name, JSON arguments -> Set.Call -> row of the table
//	   arguments checked against the row -> one operation of a node -> text within a budget
//
// Every answer is one text. Its first line says what was found. Its last line says that this is
// all, or what was left out and the exact call that continues. An error is a text too: it tells the
// model what to do next, and suggests similar names. Suggested names come from listings for the
// same viewer, so they reveal nothing that the viewer may not see.
//
// Each tool has a file with its name, and a line in [New]. Package api/mcp has the protocol that
// carries calls. The interfaces of [Parts] are for searching files and reading repositories.
package tool
