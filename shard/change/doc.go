// Package change is an index of what commits changed: the message of each commit, and the removed
// and added lines of each file that it changed. It finds the commits that added or removed a text
// as fast as package shard finds where a text is now.
//
//	mirror -- Patches --> recorder --> <sha256>.changes    some commits, parents before children
//	                      Log: a manifest that names the files, the revisions that they
//	                           cover, and which commits each revision reaches
//	Log.Search: postings -> blocks of 4 KiB -> texts that match -> commits or files, newest first
//
// A text belongs to one changed file of one commit: first its removed lines, then its added ones.
// Texts are stored in pages. A page is one document of the postings of package trigram, so a small
// change needs no document of its own. A file with few texts has sets of trigrams instead. Commits have numbers, and a parent has a lower number than
// its children, so one pass over the numbers finds the commits that each revision reaches.
//
// The package handles one repository at a time. It knows no nodes, users or names of repositories.
package change

import "github.com/shoalsearch/shoal/shard/file"

// The sections of a file of changes.
const (
	secMeta          file.SectionID = 1 + iota // JSON: numbers of things, languages
	secIDs                                     // of each commit its id
	secOrder                                   // numbers of commits in the order of their ids, 4 bytes each
	secTimes                                   // of each commit: of the author and of the committer, 8 bytes each
	secWho                                     // of each commit: author and committer, indices of people, 4 bytes each
	secParents                                 // numbers of parents in the repository, or none, 4 bytes each
	secParentEnds                              // of each commit where its parents end, 4 bytes
	secFileEnds                                // of each commit where its files end, 4 bytes
	secFiles                                   // of each file: path, path before it, bytes removed, bytes added, flags, 4 bytes each
	secPeople                                  // texts
	secPeopleEnds                              // where each ends, 4 bytes
	secPaths                                   // texts
	secPathEnds                                // where each ends, 4 bytes
	secPathLangs                               // of each path its language, 2 bytes
	secBlocks                                  // pages, compressed
	secMessagePages                            // of each page of messages: see pageEntry
	secLinePages                               // of each page of lines: see pageEntry
	secMessageBlocks                           // of each block of these its length, 2 bytes
	secLineBlocks                              // the same of lines
	secMessageDict                             // the dictionary of pages of messages
	secLineDict                                // of lines
	secMessageSets                             // of each page of messages its set of trigrams; empty where messages have postings
	secLineSets                                // the same of lines
	secMessageText   file.SectionID = 1 << 16  // postings of messages, a section for each segment
	secLineText      file.SectionID = 2 << 16  // postings of lines
)

// none stands for a missing number: of a parent that is not in the index, or of a path.
const none = 1<<32 - 1

// The flags of a changed file: its status in the lowest byte, and the reasons why its lines are
// unknown.
const (
	flagBinary = 1 << 8
	flagHuge   = 1 << 9
)
