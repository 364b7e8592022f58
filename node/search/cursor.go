package search

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"

	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/shard"
	"github.com/shoalsearch/shoal/shard/change"
	"github.com/shoalsearch/shoal/shard/query"
)

// cursor is the position where an answer ended. A client sends it back to continue from there. It
// names only the last file that the client was shown, so it needs no signature: a cursor that a
// client invents leads only to files that it may see anyway.
//
//	answer 1   from the beginning of the total order
//	answer 2   behind the cursor of answer 1
//	...
//
// No node keeps state between two answers. Each answer searches everything, as count:all does,
// however deep it is.
type cursor struct {
	Query []byte // digest of the query
	Index []byte // digest of everything that the order of the answer depends on

	After *shard.Cursor `json:",omitempty"`
	Repo  string        `json:",omitempty"` // the last repository, for type:repo and of Place
	Place *change.Place `json:",omitempty"` // the last commit, for a search of commits
}

// maxCursor is the most bytes of a cursor from a client. Long paths need many.
const maxCursor = 64 << 10

// allPlaces is more places than any file has.
const allPlaces = math.MaxInt32

// String encodes a cursor for a client. readCursor decodes it.
func (c *cursor) String() string {
	text, err := json.Marshal(c)
	if err != nil {
		panic(fmt.Sprintf("BUG: a cursor cannot be encoded: %v", err))
	}
	return base64.RawURLEncoding.EncodeToString(text)
}

// readCursor decodes the cursor of a request and checks that it belongs to the query. It returns
// nil if there is none.
func readCursor(after string, q *query.Query) (*cursor, error) {
	if after == "" {
		return nil, nil
	}
	broken := call.Fail(call.ErrInvalid, "after: it is not the `next` of an answer. Leave it out to start again.")
	text, err := base64.RawURLEncoding.DecodeString(after)
	if err != nil || len(after) > maxCursor {
		return nil, broken
	}

	c := &cursor{}
	if json.Unmarshal(text, c) != nil || c.After != nil && (c.After.Shown < 0 || c.After.Shown > allPlaces) {
		return nil, broken
	}
	if !bytes.Equal(c.Query, digestOf(q)) {
		return nil, call.Fail(call.ErrInvalid, "after: it belongs to another query. Only count: and timeout: may differ from the query that it came with, and the number of matches.")
	}
	return c, nil
}

// placeIn returns the position of the cursor in one repository. Commits of the same time are
// ordered by the names of their repositories.
func (c *cursor) placeIn(repo string) change.Place {
	p := *c.Place
	switch {
	case p == change.Place{} || repo == c.Repo:
	case repo > c.Repo:
		p.ID = ""
	default:
		p.ID = "~" // behind all ids
	}
	return p
}

// digest returns a short hash of some texts.
func digest(parts ...string) []byte {
	h := sha256.New()
	var buf []byte
	for _, p := range parts {
		// The length in front keeps one part from running into the next.
		buf = binary.AppendUvarint(buf[:0], uint64(len(p)))
		buf = append(buf, p...)
		h.Write(buf)
	}
	return h.Sum(nil)[:16]
}

// digestOf returns a hash of what a query finds. How many results it shows and how long it may take
// do not matter.
func digestOf(q *query.Query) []byte {
	return digest(q.Q.String(), fmt.Sprint(q.Type), fmt.Sprint(q.At.Unix()))
}
