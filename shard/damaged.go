package shard

import (
	"github.com/shoalsearch/shoal/shard/file"
)

// ErrDamaged is the kind of every error about a file whose bytes are not those that were written.
// Such a file is quarantined, and must be built or copied again.
var ErrDamaged = file.ErrDamaged

// DamagedError names the damaged file. It matches [ErrDamaged].
type DamagedError = file.DamagedError
