package nodetest

import (
	"sync"
	"testing"
	"time"
)

// A flap that is about to cut a link during a heal must not cut it for good.
func TestHealNetwork_endsIntermittentCuts(t *testing.T) {
	t.Parallel()
	id := [2]int{0, 1}
	networks := make([]*network, 2000)
	var healed sync.WaitGroup
	for i := range networks {
		w := newNetwork()
		networks[i] = w
		w.flap(time.Microsecond, id)
		healed.Add(1)
		time.AfterFunc(time.Duration(i%50)*time.Microsecond, func() {
			w.heal()
			healed.Done()
		})
	}
	healed.Wait()

	// The flap is over by then.
	Moment(10 * time.Millisecond)
	for i, w := range networks {
		if l, _ := w.worstState(id); l.cut {
			t.Fatalf("network %d: the link is cut behind the heal", i)
		}
	}
}
