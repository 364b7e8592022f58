package search

import (
	"bytes"
	"encoding/gob"
	"strings"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/shoalsearch/shoal/shard/query"
)

// Every condition of a filter can be sent to another node, after its repositories are resolved.
func TestEveryFilter_canBeSentToOtherNodes(t *testing.T) {
	t.Parallel()
	registerQueries()
	for _, f := range query.Filters() {
		parsed, err := query.Parse(f.Names[0]+":"+f.Example+" -(x or y)", query.Options{})
		if err != nil {
			t.Fatal(err)
		}
		q, err := query.Resolve(parsed.Q, func(query.Q) (*roaring.Bitmap, error) { return roaring.BitmapOf(1), nil })
		if err != nil {
			t.Fatal(err)
		}
		var sent bytes.Buffer
		if err := gob.NewEncoder(&sent).Encode(leafRequest{Q: queryBox{q}}); err != nil {
			t.Errorf("%s: %v", f.Names[0], err)
			continue
		}
		var got leafRequest
		if err := gob.NewDecoder(&sent).Decode(&got); err != nil || got.Q.Q.String() != q.String() {
			t.Errorf("%s arrives as %v: %v", q, got.Q.Q, err)
		}
	}
}

// A panic of a search fails its call, and nothing else of the node.
func TestLeaf_thatPanicsFailsItsCall(t *testing.T) {
	t.Parallel()
	l := newLeaves(Deps{}) // without lanes
	out, err := l.search(t.Context(), &leafRequest{})
	if out != nil || err == nil || !strings.Contains(err.Error(), "a mistake of the program") {
		t.Errorf("%+v, %v", out, err)
	}
}
