package git

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/shoalsearch/shoal/shard/git/pack"
)

// What can go wrong, besides the errors of contexts and of the file system.
// ErrNotFound and its kin wrap fs.ErrNotExist, the bad inputs fs.ErrInvalid.
var (
	ErrNoRef     = fmt.Errorf("no such branch, tag or commit: %w", fs.ErrNotExist)
	ErrAmbiguous = fmt.Errorf("ambiguous commit prefix: %w", fs.ErrInvalid)
	ErrNoBase    = fmt.Errorf("no commit in common: %w", fs.ErrInvalid)
	ErrNoPath    = fmt.Errorf("no such path: %w", fs.ErrNotExist)
	ErrEmpty     = fmt.Errorf("the repository has no commits: %w", fs.ErrNotExist)
	ErrBadRef    = fmt.Errorf("not a valid ref: %w", fs.ErrInvalid)
	ErrBadPath   = fmt.Errorf("not a valid path: %w", fs.ErrInvalid)
	ErrIsDir     = fmt.Errorf("is a directory: %w", fs.ErrInvalid)
	ErrNotDir    = fmt.Errorf("is not a directory: %w", fs.ErrInvalid)
	ErrBinary    = fmt.Errorf("a binary file has no lines: %w", fs.ErrInvalid)
	ErrTooLarge  = errors.New("the answer is too large")
	ErrAuth      = errors.New("the remote asks for a password or refuses the one given")
	ErrStalled   = errors.New("the remote sends nothing")
	ErrNoRemote  = errors.New("the remote has no such repository, or hides it")
	ErrOutside   = fmt.Errorf("it leads out of the directory of its connection: %w", fs.ErrPermission)
	ErrUnknown   = errors.New("the repository has a form that the installed git does not know")
	ErrProxy     = errors.New("the proxy that leads there asks for a user and a password, or refuses those of HTTP_PROXY or HTTPS_PROXY")
	ErrDamaged   = errors.New("the repository is damaged where it comes from: git fsck says there what is missing")
	ErrClosed    = errors.New("the mirror is closed")

	// ErrBeyond wraps ErrTooLarge: the repository itself has to change before it can be read.
	ErrBeyond   = fmt.Errorf("the repository is beyond what a node reads: %w", ErrTooLarge)
	errManyRefs = fmt.Errorf("%w: delete some at its code host, or exclude the repository: %w", pack.ErrManyRefs, ErrBeyond)
	errDeep     = fmt.Errorf("its directories are more than %d levels deep: remove these from its history, or exclude the repository: %w", maxDepth, ErrBeyond)

	ErrCertificate = errors.New("the certificate of the remote is out of date, for another name, or of an authority that this node does not know; SSL_CERT_FILE names an authority of your own")
)
