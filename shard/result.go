// Package shard is one node's search index: immutable files of postings,
// content and names, and the set of them that this node serves.
package shard

import (
	"slices"
	"time"

	"github.com/shoalsearch/shoal/shard/lex"
	"github.com/shoalsearch/shoal/shard/symbols"
)

// Result is the answer of some shards to a [Request].
type Result struct {
	Files []File // in the order of files: Score descending, then Repo name, then Path
	Stats Stats
	// Cut reports that a limit or a deadline left something out. If neither Cut nor Untagged is
	// set, the answer is complete for every shard that was searched.
	Cut bool
	// Untagged reports that the query asks for symbols and some files have unknown symbols.
	// View.Untagged finds the files that matter to the query.
	Untagged bool
	// Failed lists the parts that could not be searched because a file is damaged:
	// the answer is not complete for their repositories.
	Failed []Part
	// More reports that there are files or matches after those returned. Full reports that the
	// answer ends because the memory was used up.
	More, Full bool
	// WordFiles tells with Request.CountWords in how many files each word may be.
	WordFiles []int
}

// File is one matching document.
type File struct {
	Repo      uint32 // id of the repository
	RepoName  string
	Path      string   // bytes of the path as git has it, not always UTF-8
	Revisions []string // full ref names that hold this content at this path and that the query selected
	Language  string   // as go-enry names it; "skipped" if Skipped is set
	Skipped   string   // why the content is not in the index; empty for most files
	Encoding  string   // of the bytes in git, such as "utf-16le"; empty for UTF-8 and where no mark tells
	OID       string   // hex blob id
	Score     float64
	NameMatch []Range // in Path
	Chunks    []Chunk
	Matches   int    // matches in the content, also those not shown
	Content   []byte // only with Request.Whole
	Words     uint64 // only with Request.Words: a bit for each word that it has
}

// Chunk is a run of lines with their matches. The lines are whole, unless they are too long.
type Chunk struct {
	Content []byte
	Before  uint32   // bytes of the first line that Content leaves out
	After   uint32   // bytes of the last line that Content leaves out
	Start   Position // of Content in the file
	Ranges  []Range  // positions in the file
	Symbols []Symbol // by range; a range without a symbol has an empty Name; nil if none has one
	Weight  float32  // with Request.MaxPerFile or Request.Words: how good its best line is, compared with those of other chunks; else 0
	Around  []Symbol // with Request.Around, by range: the definition that encloses its start
	// Open is what the lines before the chunk leave open, such as a comment, with Request.Lexed; else 0.
	// It is 0 also in a chunk that begins inside a line.
	Open lex.State
}

// Symbol is a definition found by universal-ctags.
type Symbol = symbols.Symbol

// Range is a half-open run of bytes.
type Range struct{ Start, End Position }

// Position is a position in a file.
type Position struct {
	Offset uint32 // bytes from the start of the file, or of its text where it has an Encoding; from 0
	Line   uint32 // from 1
	Column uint32 // runes from the start of the line, from 1
}

// Stats counts the work of a search. The shard that does the work fills these counters; other
// layers only add them up.
type Stats struct {
	ActualMatches     int           `json:"actualMatchCount"` // ranges returned, in content and paths
	TotalMatches      int           `json:"totalMatchCount"`  // ranges found, shown or not
	Files             int           `json:"fileCount"`        // documents that matched, shown or not
	FilesSkipped      int           `json:"filesSkipped"`     // documents left unread because a limit was reached
	FilesNotSearched  int           `json:"filesNotSearched"` // files kept by name only that could match if their content were known
	ContentBytes      int64         `json:"contentBytesLoaded"`
	IndexBytes        int64         `json:"indexBytesLoaded"`
	ShardFiles        int           `json:"shardFilesConsidered"` // documents of the shards that were searched
	FilesConsidered   int           `json:"filesConsidered"`      // documents that the postings and filters left as candidates
	FilesLoaded       int           `json:"filesLoaded"`          // documents whose content was read
	ShardsScanned     int           `json:"shardsScanned"`
	ShardsSkipped     int           `json:"shardsSkipped"`       // left out because a limit was reached
	ShardsFiltered    int           `json:"shardsSkippedFilter"` // left out because the postings proved no match
	NgramLookups      int           `json:"ngramLookups"`
	NgramMatches      int           `json:"ngramMatches"` // candidate units
	RegexpsConsidered int           `json:"regexpsConsidered"`
	Planning          time.Duration `json:"matchTreeConstruction,format:nano"` // time from the query to a plan, summed over shards
	Searching         time.Duration `json:"matchTreeSearch,format:nano"`       // time to evaluate it
}

// Add adds the counters of o.
func (s *Stats) Add(o Stats) { s.sum(o, 1) }

// Sub subtracts the counters of o. The rest is the work done since o was read.
func (s *Stats) Sub(o Stats) { s.sum(o, -1) }

// sum adds every counter of o, multiplied by sign.
func (s *Stats) sum(o Stats, sign int) {
	s.ActualMatches += sign * o.ActualMatches
	s.TotalMatches += sign * o.TotalMatches
	s.Files += sign * o.Files
	s.FilesSkipped += sign * o.FilesSkipped
	s.FilesNotSearched += sign * o.FilesNotSearched

	s.ContentBytes += int64(sign) * o.ContentBytes
	s.IndexBytes += int64(sign) * o.IndexBytes

	s.ShardFiles += sign * o.ShardFiles
	s.FilesConsidered += sign * o.FilesConsidered
	s.FilesLoaded += sign * o.FilesLoaded

	s.ShardsScanned += sign * o.ShardsScanned
	s.ShardsSkipped += sign * o.ShardsSkipped
	s.ShardsFiltered += sign * o.ShardsFiltered

	s.NgramLookups += sign * o.NgramLookups
	s.NgramMatches += sign * o.NgramMatches
	s.RegexpsConsidered += sign * o.RegexpsConsidered

	s.Planning += time.Duration(sign) * o.Planning
	s.Searching += time.Duration(sign) * o.Searching
}

// Cursor is a position in the order of files: after the first Shown places of one file. Paths and
// revisions are bytes as git has them, so that a cursor survives any encoding.
type Cursor struct {
	Score     float64
	Repo      string // name of the repository
	Path      []byte
	Revisions [][]byte
	OID       string
	Shown     int // places of the file before the cursor; those in the content come first
}

// CursorBehind returns the cursor after the first shown places of a file.
func CursorBehind(f *File, shown int) *Cursor {
	c := &Cursor{Score: f.Score, Repo: f.RepoName, Path: []byte(f.Path), OID: f.OID, Shown: shown}
	for _, name := range f.Revisions {
		c.Revisions = append(c.Revisions, []byte(name))
	}
	return c
}

// In reports whether a cursor is within this file or directly after it.
func (c *Cursor) In(f *File) bool {
	return c.Score == f.Score && c.Repo == f.RepoName && string(c.Path) == f.Path && c.OID == f.OID &&
		slices.EqualFunc(c.Revisions, f.Revisions, func(a []byte, b string) bool { return string(a) == b })
}
