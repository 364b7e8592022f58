package shard

import "github.com/shoalsearch/shoal/shard/file"

// The sections of a shard file. Numbers of documents, units, occurrences and so on
// count from 0 in the file; a unit's number is its row. Content and postings have a
// section for each segment of 65,536 units, numbered from secBlocks and secText.
//
// An example: a repository with two files of one commit, main.go with 5,000 bytes
// and doc/empty.md with none, of which a copy stands in empty.md.
//
//	document        0          1
//	DocUnit         0          2      2      document 0 has units 0 and 1
//	DocSize         5000       0
//	DocOccur        0          1      3      document 1 has occurrences 1 and 2
//	DocSkip         0          0             both have content
//
//	unit            0          1
//	BlockEnd        1410       1730          compressed bytes 0 to 1410, and to 1730
//	UnitLine        0          131           131 newlines before byte 4096
//
//	occurrence      0          1               2
//	OccPath         2          0               1
//	OccMask         0          0               0
//	OccRepo         0          0               0
//	OccLang         0          1               1         meta: languages Go, Markdown
//	OccKind         0          1               1         code, documentation
//
//	mask 0          0b1                      one commit, bit 0
//	PathEnd         12         20     27     doc/empty.md|empty.md|main.go
const (
	secMeta     file.SectionID = 1 + iota // repositories, revisions, languages, counts
	secBlockEnd                           // Column32: end of each unit's block in the content of its segment
	secUnitLine                           // Column32: newlines before each unit in its document
	secDocUnit                            // Column32: first unit of each document, and one more
	secDocSize                            // Column32: bytes of each document
	secDocSkip                            // a byte for each document: why it has no content, and its encoding (type form)
	secDocOccur                           // Column32: first occurrence of each document, and one more
	secDocID                              // blob id of each document, in binary, of meta.oidBytes
	secOccPath                            // Column32: path of each occurrence
	secOccRepo                            // Column16: repository, by its index in secMeta
	secOccMask                            // Column32: revisions, by index in secMasks
	secOccLang                            // Column16: language, by its index in secMeta
	secOccKind                            // a byte for each occurrence: its category
	secMasks                              // Column64: the distinct revision masks
	secPathEnd                            // Column32: end of each path in secPaths
	secPaths                              // the distinct paths, one after the other
	secNamePost                           // postings of the paths
	secDict                               // dictionary that the blocks were compressed with
	secText     file.SectionID = 1 << 12
	secBlocks   file.SectionID = 1 << 13
)

// maxSegments is how many segments a file has at most, by the room for their
// section numbers.
const maxSegments = 1 << 15
