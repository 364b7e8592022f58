package git

import (
	"fmt"
	"io/fs"

	"github.com/shoalsearch/shoal/shard/git/pack"
	"github.com/shoalsearch/shoal/shard/git/run"
)

// The errors of this package, besides those of contexts and of the file system. Those for missing
// things wrap fs.ErrNotExist, those for bad input fs.ErrInvalid.
var (
	ErrNoRef     = fmt.Errorf("no such branch, tag or commit: %w", fs.ErrNotExist)
	ErrAmbiguous = run.ErrAmbiguous
	ErrNoBase    = fmt.Errorf("no commit in common: %w", fs.ErrInvalid)
	ErrNoPath    = fmt.Errorf("no such path: %w", fs.ErrNotExist)
	ErrEmpty     = fmt.Errorf("the repository has no commits: %w", fs.ErrNotExist)
	ErrBadRef    = fmt.Errorf("not a valid ref: %w", fs.ErrInvalid)
	ErrBadPath   = fmt.Errorf("not a valid path: %w", fs.ErrInvalid)
	ErrIsDir     = fmt.Errorf("is a directory: %w", fs.ErrInvalid)
	ErrNotDir    = fmt.Errorf("is not a directory: %w", fs.ErrInvalid)
	ErrBinary    = fmt.Errorf("a binary file has no lines: %w", fs.ErrInvalid)
	ErrTooLarge  = run.ErrTooLarge
	ErrAuth      = run.ErrAuth
	ErrStalled   = run.ErrStalled
	ErrNoRemote  = run.ErrNoRemote
	ErrOutside   = fmt.Errorf("it leads out of the directory of its connection: %w", fs.ErrPermission)
	ErrUnknown   = run.ErrUnknown
	ErrDamaged   = run.ErrDamaged

	// ErrBeyond wraps ErrTooLarge: the repository itself must change before it can be read.
	ErrBeyond   = run.ErrBeyond
	errManyRefs = fmt.Errorf("%w: exclude the repository from its connection: %w", pack.ErrManyRefs, ErrBeyond)
)
