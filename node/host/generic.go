package host

import (
	"context"
	"errors"
)

// generic is a connection of kind git: one URL, or local directories.
type generic struct{ url string }

func (g *generic) Repos(ctx context.Context) (Listing, error) {
	return Listing{}, errors.New("not listed")
}
