package git

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// The catalog may name a commit a moment before the mirror has it. To pass over it would leave its
// history out for good.
func TestAncestry_refusesCommitsThatAreNotThere(t *testing.T) {
	t.Parallel()
	r, m := story(t)
	head := r.git("rev-parse", "main")
	all, err := m.Ancestry(within(t), []string{head}, nil, 0, time.Time{})
	if err != nil || len(all) == 0 || all[len(all)-1] != head {
		t.Fatalf("%d commits, %v", len(all), err)
	}
	absent := strings.Repeat("1", len(head))
	if got, err := m.Ancestry(within(t), []string{head, absent}, nil, 0, time.Time{}); !errors.Is(err, ErrNoRef) {
		t.Errorf("with a commit that is not there: %d commits, %v", len(got), err)
	}
	if got, err := m.Ancestry(within(t), []string{head}, []string{absent}, 0, time.Time{}); err != nil || len(got) != len(all) {
		t.Errorf("behind a commit that is not there any more: %d commits, %v", len(got), err)
	}
}
