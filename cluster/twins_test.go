package cluster

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"testing"
)

// A start of a node is accepted if no other start of it exists. A timeout proves nothing while
// gossip sees the other start: its machine may just be slow.
func TestSecondStartOfANode_isAcceptedOnlyIfTheFirstIsGone(t *testing.T) {
	t.Parallel()
	const believed, refused, notYet = "believed", "refused for good", "not known yet"
	gone := fmt.Errorf("dial: %w", syscall.ECONNREFUSED)
	for _, c := range []struct {
		alive  bool
		answer string
		err    error
		want   string
	}{
		{alive: true, answer: "8", want: refused},
		{alive: false, answer: "8", want: refused},
		{alive: true, answer: "7", want: believed}, // the same start, at two addresses
		{alive: true, err: gone, want: believed},
		{alive: true, err: context.DeadlineExceeded, want: notYet},
		{alive: false, err: context.DeadlineExceeded, want: believed}, // an address that is no longer in use
		{alive: true, err: errors.New("connection reset"), want: notYet},
	} {
		no := sighting{"n2:7701", c.alive}.refusalFor(Peer{Node: "n2", Epoch: 7}, c.answer, c.err)
		got := believed
		if no != nil {
			if got = notYet; refusalIn(no) != nil {
				got = refused
			}
		}
		if got != c.want {
			t.Errorf("gossip hears of it: %v, answer %q, %v: %s (%v), want %s", c.alive, c.answer, c.err, got, no, c.want)
		}
	}
}
