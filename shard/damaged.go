package shard

import (
	"errors"

	"github.com/shoalsearch/shoal/shard/file"
)

// ErrDamaged is the kind of every error about bytes that are not what was written:
// the file is quarantined and must be built or copied anew.
var ErrDamaged = file.ErrDamaged

// DamagedError says which file is damaged. It is an [ErrDamaged].
type DamagedError = file.DamagedError

// culprit returns the file that an error of damage is about: the one it names, or the
// one in which a fault happened. For anything else it is the shard, through which all
// others are read.
func (m *member) culprit(err error) *entry {
	named, fault := (*file.DamagedError)(nil), (*file.FaultError)(nil)
	byName, byPlace := errors.As(err, &named), errors.As(err, &fault)

	// A fault names no file, but the place in memory that could not be read.
	for _, e := range append([]*entry{m.sym}, m.dead...) {
		if e != nil && (byName && e.f.Name() == named.File || byPlace && e.f.Holds(fault.Address)) {
			return e
		}
	}
	return m.entry
}
