package shard

import "github.com/shoalsearch/shoal/shard/query"

// Request is one search.
type Request struct {
	Q            query.Q // And, Or, Not, Const, Text, Lang, Rev and Repos
	MaxMatches   int     // matches shown at most, over all files; 0 means 1,000
	MaxFiles     int     // files shown at most; 0 means no limit of its own
	MaxPerFile   int     // matches shown of one file at most, those of its best lines; 0 means no limit of its own
	Shards       int     // shard files that the whole search asks, on all nodes; 0 means one
	CountAll     bool    // count every match and file, also those that are not shown
	ContextLines int     // lines around a match in its chunk
	Whole        bool    // return the whole content of each file
	NoChunks     bool    // return files without chunks, for listings
	FilesOnly    bool    // find out which files match, but no places in them: each counts as one match
	OnePerRepo   bool    // with FilesOnly, and without a limit: of each repository in each shard any one file is enough
	Around       bool    // return the definitions around matches, too
	// Rank gives the name by which a repository is ordered and how recent it
	// is, from 0 to 1. Nil means the name in the shard and 0.
	Rank func(repo uint32) (name string, recency float64)
	// MemoryLimit bounds the bytes of the answer and of what is held on the
	// way; 0 means 256 MiB. Reaching it sets Cut.
	MemoryLimit int64
	// After leaves out what stands before it. Files and matches are counted all the same.
	// Only with CountAll, and without MaxPerFile.
	After *Cursor
	// Progress counts the work while it goes on; nil for nobody who looks on.
	Progress *Progress

	untagged bool // only documents whose symbols are not known
}
