package catalog

import (
	"fmt"
	"testing"
)

func TestBeginTurn_allowsOneRunningTurnPerThread(t *testing.T) {
	t.Parallel()
	b := newBook(t)
	begin := func(id, owner string) *BeginTurn {
		return &BeginTurn{Thread: id, New: true, Owner: owner, Title: []byte("sealed"), Node: "n1", Lost: ThreadTurn{File: hash(7), Failed: true}}
	}
	b.do(begin("t1", "ann"))
	fence := b.s.View().Thread("t1").Run.Fence

	// A second question has to wait for the first, and other accounts cannot ask in this thread.
	again := begin("t1", "ann")
	again.New = false
	b.refused(Conflict, again)
	other := begin("t1", "bob")
	other.New = false
	b.refused(NotFound, other)

	// A turn ends only once: a node that was considered lost cannot add its answer.
	b.refused(Invalid, &EndTurn{Thread: "t1", Fence: fence})
	b.do(&EndTurn{Thread: "t1", Fence: fence, Turn: ThreadTurn{File: hash(1), Bytes: 7, Events: 9}})
	b.refused(Stale, &EndTurn{Thread: "t1", Fence: fence, Turn: ThreadTurn{File: hash(2)}})
	h := b.s.View().Thread("t1")
	if h.Run.Fence != 0 || h.Events() != 9 || h.Bytes() != 7 {
		t.Errorf("%+v", h)
	}

	// A fork belongs to its creator.
	b.do(&ForkThread{From: "t1", Thread: "t2", Owner: "bob", Public: true})
	if f := b.s.View().Thread("t2"); f.Owner != "bob" || f.Turns[0].File != hash(1) {
		t.Errorf("%+v", f)
	}
	b.do(&DeleteThread{Thread: "t1"})
	b.refused(NotFound, &DeleteThread{Thread: "t1"})
	if b.s.View().Thread("t2") == nil {
		t.Error("the copy went with the original")
	}
}

func TestBeginTurn_refusesTooManyConcurrentQuestions(t *testing.T) {
	t.Parallel()
	b := newBook(t)
	for _, tt := range []struct {
		owner string
		most  int
	}{{"ann", maxRunningOfOne}, {"", maxRunningGuests}} {
		for i := range tt.most + 1 {
			c := &BeginTurn{Thread: fmt.Sprint(tt.owner, i), New: true, Owner: tt.owner, Node: "n1", Lost: ThreadTurn{File: hash(7)}}
			if i < tt.most {
				b.do(c)
			} else {
				b.refused(Held, c)
			}
		}
	}
}

func TestThreads_aboveTheLimitOfAnOwnerAreRefused(t *testing.T) {
	t.Parallel()
	b := newBook(t)
	b.do(&BeginTurn{Thread: "first", New: true, Owner: "ann", Node: "n1", Lost: ThreadTurn{File: hash(7)}})
	b.do(&EndTurn{Thread: "first", Fence: b.s.View().Thread("first").Run.Fence, Turn: ThreadTurn{File: hash(1)}})
	for i := range maxThreadsOfOne - 1 {
		b.do(&ForkThread{From: "first", Thread: fmt.Sprint(i), Owner: "ann"})
	}
	b.refused(Conflict, &ForkThread{From: "first", Thread: "more", Owner: "ann"})
	b.do(&ForkThread{From: "first", Thread: "more", Owner: "bob"})
}
