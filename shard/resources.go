package shard

import (
	"sync"

	"github.com/shoalsearch/shoal/shard/symbols"
)

// resources is what all searches of a set share. It is safe for concurrent use.
type resources struct {
	gate   *gate
	cache  *blockCache
	spare  sync.Pool // of *evaluator
	known  patterns
	names  *pathSets
	tables *symbols.Tables

	quarantine func(e *entry, cause error) // moves a damaged file aside
	release    func(entries []*entry)      // ends the use of open files: Set.release
}
