package ask_test

import (
	"flag"
	"fmt"
	"net/http"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/ask"
	"github.com/shoalsearch/shoal/node/model/modeltest"
	"github.com/shoalsearch/shoal/node/nodetest"
)

var long = flag.Duration("long", 0, "how long the model of TestLongAnswer_everyEventComesOnceInOrder takes for one answer")

// longSteps is how often the model of TestLongAnswer_everyEventComesOnceInOrder calls tools.
const longSteps = 40

// slowModel is a model with slow steps. For a question with "wait" it holds the last step back
// until hold is closed.
type slowModel struct {
	step time.Duration
	hold chan struct{}
	held atomic.Int32 // questions
}

func (m *slowModel) turn(r *modeltest.Request) modeltest.Turn {
	done := strings.Count(r.Raw, `"role":"assistant"`)
	waits := strings.Contains(r.Raw, "wait")
	late := func(w http.ResponseWriter, stream []byte) {
		if waits && done == longSteps/4 {
			m.held.Add(1)
			<-m.hold
		} else if !waits {
			nodetest.Moment(m.step)
		}
		w.Write(stream) // fails if the client is gone
	}

	if done >= longSteps || waits && done > longSteps/4 {
		return modeltest.Turn{Text: "It is seven @file:{local/app::a.go:3}.", Fault: late}
	}
	return modeltest.Turn{Fault: late, Calls: []modeltest.Call{
		call(fmt.Sprint("a", done), "read_file", fmt.Sprintf(`{"repo":"local/app","path":"a.go","limit":%d}`, done+1)),
		call(fmt.Sprint("b", done), "grep", fmt.Sprintf(`{"pattern":"seven|%d"}`, done)),
	}}
}

// It measures a long answer on three nodes, and the memory of many running answers. It only
// fails on machine-independent properties: every event comes once, in order.
func TestLongAnswer_everyEventComesOnceInOrder(t *testing.T) {
	if *long == 0 {
		t.Skip("NOT RUN: -long says for how long a model is to answer, as 2m")
	}
	m := &slowModel{step: *long / longSteps, hold: make(chan struct{})}
	s := modeltest.Play(t, m.turn)
	dir := t.TempDir()
	nodetest.NewRepo(t, filepath.Join(dir, "app"), map[string]string{"a.go": "package a\n\nconst seven = 7\n" + strings.Repeat("// seven and more\n", 2000)})
	f := nodetest.StartFleet(t, 3, nodetest.Config{File: fmt.Sprintf(
		`{"connections": {"all": {"type": "git", "url": "file://%s/*"}}, "models": [{"provider": "openai-compatible", "model": "scripted", "baseUrl": %q}]}`, dir, s.URL)})
	for _, n := range f.Nodes {
		n.WaitIndexed(1)
		waitModels(n)
	}
	waitWhole(f)

	measureMemory(t, f, m)
	measureAnswer(t, f, m)
}

// measureMemory measures the memory of turns, with the maximum on each node.
func measureMemory(t *testing.T, f *nodetest.Fleet, m *slowModel) {
	t.Helper()
	const turns = 24
	before := heap()
	ids := map[string]catalog.Viewer{}
	for i := range turns {
		n := f.Nodes[i%len(f.Nodes)]
		asker := member(t, n, fmt.Sprint("p", i))
		started, err := n.Ask.Ask(t.Context(), asker, ask.Question{Query: fmt.Sprintf("What is seven? wait %d", i)})
		if err != nil {
			t.Fatal(err)
		}
		ids[started.ID] = asker
	}
	f.Nodes[0].Wait("all to be held", func() error {
		if n := m.held.Load(); n < turns {
			return fmt.Errorf("%d of %d", n, turns)
		}
		return nil
	})

	fmt.Printf("%d turns that run, %d steps with %d results of tools behind each: %.2f MB a turn, on three nodes in all\n",
		turns, longSteps/4, longSteps/2, float64(heap()-before)/turns/1e6)
	close(m.hold)
	f.Nodes[0].Wait("all to be answered", func() error {
		for id, asker := range ids {
			if c, err := f.Nodes[0].Ask.Chat(t.Context(), asker, id); err != nil || c.Running {
				return fmt.Errorf("%s: %+v, %v", id, c, err)
			}
		}
		return nil
	})
}

// heap returns the bytes in use in this process.
func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // the second run frees objects with finalizers
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// measureAnswer measures the times of one answer, seen at another node.
func measureAnswer(t *testing.T, f *nodetest.Fleet, m *slowModel) {
	t.Helper()
	type seen struct {
		ask.Event
		at time.Time
	}
	var events []seen

	began := time.Now()
	started, err := f.Nodes[2].Ask.Ask(t.Context(), catalog.Operator(), ask.Question{Query: "What is seven?"})
	if err != nil {
		t.Fatal(err)
	}
	err = f.Nodes[1].Ask.WatchChat(t.Context(), catalog.Operator(), started.ID, 0, func(e ask.Event) error {
		events = append(events, seen{e, time.Now()})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}

	for i, e := range events {
		if e.N != i+1 {
			t.Errorf("event %d has the number %d", i+1, e.N)
		}
	}
	last := events[len(events)-1]
	if last.Kind != ask.KindDone || last.Text != string(ask.Done) {
		t.Errorf("it ended with %+v", last)
	}

	took := last.at.Sub(began)
	fmt.Printf("an answer of %v: first event after %v, %d events, %v in all\n", *long, events[0].at.Sub(began).Round(time.Millisecond), len(events), took.Round(time.Millisecond))
	fmt.Printf("... a step takes %v beside the %v of the model, with two calls of tools\n", ((took - *long) / (longSteps + 1)).Round(100*time.Microsecond), m.step)
}
