package job

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/shoalsearch/shoal/shard"
)

// pushFiles commits files with so many lines each, about a hundred bytes a line.
func (y *testNode) pushFiles(name, topic string, files, lines int) {
	y.t.Helper()
	for i := range files {
		text := fmt.Sprintf("%s %d %s\n", topic, i, strings.Repeat("x", 90))
		y.push(name, fmt.Sprintf("f%d.txt", i), strings.Repeat(text, lines))
	}
}

// A fork reads the index of the repository that it is a copy of. It keeps it when that one is gone, and
// gets its own when the two have grown apart.
func TestIndexJob_sharesTheIndexOfACopy(t *testing.T) {
	t.Parallel()
	y := newTestNode(t, "original", "fork", "other")
	y.pushFiles("original", "same", 12, 1000)
	y.pushFiles("fork", "same", 12, 1000)
	y.push("fork", "f3.txt", "changed\n")
	y.pushFiles("other", "different", 12, 1000)

	original, other, fork := y.index(1), y.index(3), y.index(2)
	first := fork.Shards[0]
	if first.ID != original.Shards[0].ID || first.BuiltFor != 1 || first.Docs != 11 || len(fork.Shards) != 2 {
		t.Errorf("the fork has %+v, the original %+v", fork.Shards, original.Shards)
	}
	if s := other.Shards[0]; s.BuiltFor != 0 || s.ID == first.ID {
		t.Errorf("an unrelated repository of the same size has %+v", s)
	}

	// The fork needs the file now, whatever becomes of the original.
	y.push("original", "f4.txt", "changed\n")
	y.pushFiles("original", "rewritten", 12, 1000)
	if s := y.index(1).Shards[0]; s.ID == first.ID {
		t.Errorf("the original still has %+v", s)
	}
	y.push("fork", "f5.txt", "changed too\n")
	if s := y.index(2).Shards[0]; s.ID != first.ID || s.BuiltFor != 1 || s.Docs != 10 {
		t.Errorf("after a push the fork has %+v", s)
	}
	if !y.files.Complete(y.View().Repo(2)) {
		t.Error("a file of the fork is gone")
	}

	y.pushFiles("fork", "grown apart", 12, 1000)
	if s := y.index(2).Shards[0]; s.BuiltFor != 0 {
		t.Errorf("a fork with other files still has %+v", s)
	}
}

// Copies that are indexed for the first time at once wait for one of them.
func TestFirstBuilds_waitForASimilarOne(t *testing.T) {
	t.Parallel()
	sourceOf := func(topic string, changed int) *source {
		s := &source{}
		for i := range 20 {
			oid := fmt.Sprint(topic, i)
			if i < changed {
				oid = fmt.Sprint(topic, "changed", changed, i)
			}
			s.blobs = append(s.blobs, shard.Blob{OID: oid})
		}
		return s
	}

	synctest.Test(t, func(t *testing.T) {
		var f firstBuilds
		leave, err := f.enter(t.Context(), sourceOf("a", 0))
		if err != nil {
			t.Fatal(err)
		}

		// These have not enough in common with it.
		for _, other := range []*source{sourceOf("b", 0), sourceOf("a", 6)} {
			leaveOther, err := f.enter(t.Context(), other)
			if err != nil {
				t.Fatal(err)
			}
			leaveOther()
		}

		// One copy gives up. The other two go on one after the other.
		gone, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 3)
		go func() { _, err := f.enter(gone, sourceOf("a", 1)); ended <- err }()
		entered := make(chan func(), 2)
		for range 2 {
			go func() {
				leave, err := f.enter(t.Context(), sourceOf("a", 2))
				ended <- err
				entered <- leave
			}()
		}
		synctest.Wait()
		if len(ended) != 0 {
			t.Error("a copy did not wait")
		}
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("a copy that gave up: %v", err)
		}

		leave()
		synctest.Wait()
		if len(entered) != 1 {
			t.Errorf("%d copies build at once, want 1", len(entered))
		}
		(<-entered)()
		(<-entered)()
	})
}
