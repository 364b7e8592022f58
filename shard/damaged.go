package shard

import (
	"github.com/shoalsearch/shoal/shard/file"
)

// ErrDamaged is the kind of every error about bytes that are not what was written:
// the file is quarantined and must be built or copied anew.
var ErrDamaged = file.ErrDamaged

// DamagedError says which file is damaged. It is an [ErrDamaged].
type DamagedError = file.DamagedError
