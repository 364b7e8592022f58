package shard

import "github.com/shoalsearch/shoal/shard/query"

// Request is one search.
type Request struct {
	Q            query.Q // consists of And, Or, Not, Const, Text, Lang, Rev and Repos only
	MaxMatches   int     // limit of matches shown, over all files; 0 means 1,000
	MaxFiles     int     // limit of files shown; 0 means no limit of its own
	MaxPerFile   int     // limit of matches shown in one file, from its best lines; 0 means no limit of its own
	Shards       int     // number of shard files that the whole search reads, on all nodes; 0 means one
	CountAll     bool    // count every match and file, also those beyond the limits
	ContextLines int     // lines around a match in its chunk
	Whole        bool    // return the whole content of each file
	NoChunks     bool    // return files without chunks, for listings
	FilesOnly    bool    // find out which files match, but no places in them: each counts as one match
	OnePerRepo   bool    // one file of each repository in each shard is enough; needs FilesOnly and no limit
	Around       bool    // return the definitions around matches too
	Lexed        bool    // return what is open at the start of each chunk: a comment or a string
	// Words ranks the files that satisfy Q by these words of their texts and paths, at most MaxWords.
	// MaxFiles of them are read. The first Shown that have different texts get chunks: the first one
	// its best block, the others their best lines.
	Words      []Word
	Shown      int
	CountWords bool // return only in how many files each of Words may be
	// Rank returns the name that orders a repository, and how recent it is, from 0 to 1. If Rank is
	// nil, the name in the shard orders it, and recency is 0.
	Rank func(repo uint32) (name string, recency float64)
	// MemoryLimit bounds the bytes of the answer and of what is held on the
	// way; 0 means 256 MiB. Reaching it sets Cut.
	MemoryLimit int64
	// After hides the files and matches before this position. They still count. It needs CountAll,
	// and no MaxPerFile.
	After *Cursor
	// Progress counts the work while the search runs; nil means that nobody watches.
	Progress *Progress

	untagged bool // only documents whose symbols are not known
}
