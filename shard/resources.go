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

	report  func(m *member, err error) // handles an error of the files of a member
	release func(entries []*entry)     // ends the use of open files: Set.release
}
