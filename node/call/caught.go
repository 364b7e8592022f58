package call

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"

	"golang.org/x/sync/errgroup"
)

// Caught runs f. If f panics, it returns the panic's value and stack; otherwise "". A panic in a
// goroutine would end the node: repeat it where the goroutine is waited for, so that it only ends
// the request.
func Caught(f func()) (trouble string) {
	defer func() {
		if p := recover(); p != nil {
			trouble = fmt.Sprintf("%v\n\n%s", p, debug.Stack())
		}
	}()
	f()
	return ""
}

// Group runs functions in goroutines of their own, as an errgroup does. [Group.Wait] repeats a panic of one
// of them. Make it with NewGroup.
type Group struct {
	group *errgroup.Group

	mu      sync.Mutex
	trouble string // of the first panic
}

// errPanicked ends a group in which a function panicked.
var errPanicked = errors.New("a function panicked")

// NewGroup returns a group of which at most limit functions run at the same time; 0 means no limit. The
// context ends with the first error, with a panic, and when Wait returns.
func NewGroup(ctx context.Context, limit int) (*Group, context.Context) {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(cmp.Or(limit, -1))
	return &Group{group: group}, ctx
}

// Go runs f in a goroutine. It waits while as many run as the limit allows.
func (g *Group) Go(f func() error) {
	g.group.Go(func() (err error) {
		trouble := Caught(func() { err = f() })
		if trouble == "" {
			return err
		}
		g.mu.Lock()
		defer g.mu.Unlock()
		g.trouble = cmp.Or(g.trouble, trouble)
		return errPanicked
	})
}

// Wait waits for all functions. It returns the first error, and panics if one of them did.
func (g *Group) Wait() error {
	err := g.group.Wait()
	if g.trouble != "" {
		panic(g.trouble)
	}
	return err
}
