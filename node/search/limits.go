package search

import (
	"time"

	"github.com/shoalsearch/shoal/node/browse"
)

// Limits of searches.
const (
	DefaultMatches = 1000      // ranges returned if a request has no number
	MaxMatches     = 1_000_000 // ranges returned
	MaxContext     = 100       // lines around a match
	MaxFiles       = 10_000    // files of Grep and Glob

	heavyMatches = 10_000    // a search for more waits in the lane of the expensive ones
	memoryLimit  = 256 << 20 // bytes of one answer
	maxPattern   = 10_000    // bytes
	defaultTime  = 30 * time.Second
	maxTime      = 2 * time.Minute
	maxNamed     = 20              // shards and repositories named as missing
	maxTries     = 3               // how often a search starts again
	catchUpTime  = 2 * time.Second // time for the catalog of this node to reach that of a leaf
	streamBatch  = 64              // shards in a part of a stream
	defaultFiles = 100
	maxAround    = 20              // lines around a match of Grep
	toolTime     = browse.ScanTime // of Grep, Glob, Ranked and searches for symbols
)
