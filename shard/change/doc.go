// Package change is an index of what commits changed: of each commit its message, and of
// each file that it changed the lines that came and the lines that went. It answers in which
// commits a text came or went as fast as package shard answers where a text stands now.
//
//	mirror -- Patches --> recorder --> <sha256>.changes    some commits, parents before children
//	                      Log: a manifest that names the files, the revisions that they
//	                           cover, and which commits each revision reaches
//	Log.Search: postings -> pages of 16 KiB -> texts that match -> commits or files, newest first
//
// A text belongs to one changed file of one commit: first the lines that went, then those
// that came. Texts lie in pages, and a page is a document of the postings of package trigram.
// So a small change costs no unit of its own. Commits have numbers, and a parent has a lower
// number than its children; one pass over the numbers finds what each revision reaches.
//
// The package knows one repository at a time. It does not know nodes, users or names of
// repositories.
package change

import "github.com/shoalsearch/shoal/shard/file"

// The sections of a file of changes.
const (
	secMeta         file.SectionID = 1 + iota // JSON: numbers of things, languages
	secIDs                                    // of each commit its id
	secOrder                                  // numbers of commits in the order of their ids, 4 bytes each
	secTimes                                  // of each commit: of the author and of the committer, 8 bytes each
	secWho                                    // of each commit: author and committer, indices of people, 4 bytes each
	secParents                                // numbers of parents in the repository, or none, 4 bytes each
	secParentEnds                             // of each commit where its parents end, 4 bytes
	secFileEnds                               // of each commit where its files end, 4 bytes
	secFiles                                  // of each file: path, path before it, bytes removed, bytes added, flags, 4 bytes each
	secPeople                                 // texts
	secPeopleEnds                             // where each ends, 4 bytes
	secPaths                                  // texts
	secPathEnds                               // where each ends, 4 bytes
	secPathLangs                              // of each path its language, 2 bytes
	secBlocks                                 // pages, compressed
	secMessagePages                           // of each page of messages: see pageEntry
	secLinePages                              // of each page of lines: see pageEntry
	secMessageText  file.SectionID = 1 << 16  // postings of messages, a section for each segment
	secLineText     file.SectionID = 2 << 16  // postings of lines
)

// none is no number: of a parent that is not in the index, of a path.
const none = 1<<32 - 1

// The flags of a changed file: its status in the lowest byte, and why its lines are not known.
const (
	flagBinary = 1 << 8
	flagHuge   = 1 << 9
)

const pageBytes = 16 << 10 // of a page, from which on the next one begins
