package search

import (
	"time"

	"github.com/shoalsearch/shoal/node/browse"
)

// The bounds of a search.
const (
	DefaultMatches = 1000      // ranges returned where a request names no number
	MaxMatches     = 1_000_000 // ranges returned
	MaxContext     = 100       // lines around a match
	MaxFiles       = 10_000    // files of Grep and Glob

	heavyMatches = 10_000    // more wait in the lane of the expensive ones
	memoryLimit  = 256 << 20 // bytes of one answer
	maxPattern   = 10_000    // bytes
	defaultTime  = 30 * time.Second
	maxTime      = 2 * time.Minute
	maxNamed     = 20              // shards and repositories named as missing
	maxTries     = 3               // how often a search begins anew
	catchUpTime  = 2 * time.Second // for the catalog of this node to reach that of a leaf
	streamBatch  = 64              // shards that a part of a stream comes from
	defaultFiles = 100
	maxAround    = 20              // lines around a match of Grep
	toolTime     = browse.ScanTime // of Grep, Glob, Ranked and searches for symbols
)
