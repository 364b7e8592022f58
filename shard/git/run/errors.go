package run

import (
	"errors"
	"fmt"
	"io/fs"
)

// The errors of a run, besides those of contexts and of the file system. ErrBeyond wraps
// ErrTooLarge: the repository itself must change before it can be read.
var (
	ErrAmbiguous   = fmt.Errorf("ambiguous commit prefix: %w", fs.ErrInvalid)
	ErrTooLarge    = errors.New("the answer is too large")
	ErrAuth        = errors.New("the remote asks for a password or refuses the one given")
	ErrStalled     = errors.New("the remote sends nothing")
	ErrNoRemote    = errors.New("the remote has no such repository, or hides it")
	ErrUnknown     = errors.New("the repository has a form that the installed git does not know")
	ErrProxy       = errors.New("the proxy that leads there asks for a user and a password, or refuses those of HTTP_PROXY or HTTPS_PROXY")
	ErrDamaged     = errors.New("the repository is damaged where it comes from: git fsck says there what is missing")
	ErrClosed      = errors.New("the mirror is closed")
	ErrBeyond      = fmt.Errorf("the repository is beyond what a node reads: %w", ErrTooLarge)
	ErrCertificate = errors.New("the certificate of the remote is out of date, for another name, or of an authority that this node does not know; SSL_CERT_FILE names an authority of your own")
	errCrashed     = fmt.Errorf("git crashed, as it does over directories that are some thousand levels deep: %w", ErrBeyond)
	ErrDeep        = fmt.Errorf("its directories are more than %d levels deep: remove these from its history, or exclude the repository: %w", MaxDepth, ErrBeyond)
)

// memoryError is the ErrTooLarge of a run that needs more memory than it may use.
type memoryError struct{}

func (memoryError) Error() string { return "the run needs more memory than it may take" }
func (memoryError) Unwrap() error { return ErrTooLarge }
