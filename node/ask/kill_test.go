package ask_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/ask"
	nodecall "github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/node/model/modeltest"
	"github.com/shoalsearch/shoal/node/nodetest"
)

var (
	kills = flag.Int("kills", 4, "how often the node that answers is killed")
	seed  = flag.Uint64("seed", 0, "of where it is killed; 0 for another one each time")
)

// slowly sends a stream in pieces, each a while after the one before.
func slowly(text string) func(http.ResponseWriter, []byte) {
	return func(w http.ResponseWriter, stream []byte) {
		flush := w.(http.Flusher)
		if text != "" { // in words, where the script has it in halves
			var b strings.Builder
			for _, word := range strings.SplitAfter(text, " ") {
				say, _ := json.Marshal(word)
				fmt.Fprintf(&b, "data: {\"id\":\"c1\",\"choices\":[{\"index\":0,\"delta\":{\"content\":%s}}]}\n\n", say)
			}
			b.WriteString("data: {\"id\":\"c1\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
			stream = []byte(b.String())
		}
		for _, piece := range strings.SplitAfter(string(stream), "\n\n") {
			if _, err := w.Write([]byte(piece)); err != nil {
				return
			}
			flush.Flush()
			nodetest.Moment(3 * time.Millisecond)
		}
	}
}

// watcher notes what it is given, of a thread on one node after the other.
type watcher struct {
	mu     sync.Mutex
	events []ask.Event
	grew   chan struct{}
}

func (w *watcher) note(e ask.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events = append(w.events, e)
	select {
	case w.grew <- struct{}{}:
	default:
	}
}

func (w *watcher) all() []ask.Event {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.events)
}

// TestAnAnswerSurvivesTheNodeThatGivesIt kills the node that answers a
// question, at some moment, over and over again. Each question is answered, and
// nobody who watches on another node gets an event twice, misses one, or
// gets another one under its number.
func TestAnAnswerSurvivesTheNodeThatGivesIt(t *testing.T) {
	t.Parallel()
	if *seed == 0 {
		*seed = rand.Uint64()
	}
	t.Logf("-seed %d", *seed)
	rng := rand.New(rand.NewPCG(*seed, 1))
	const steps = 4
	s := modeltest.Play(t, func(r *modeltest.Request) modeltest.Turn {
		done := strings.Count(r.Raw, `"role":"assistant"`) - strings.Count(r.Raw, "(turn ")
		if done < steps {
			return modeltest.Turn{Calls: []modeltest.Call{
				call(fmt.Sprint("a", done), "read_file", fmt.Sprintf(`{"repo":"local/app","path":"a.go","limit":%d}`, done+1)),
				call(fmt.Sprint("b", done), "grep", fmt.Sprintf(`{"pattern":"seven|%d"}`, done)),
			}, Fault: slowly("")}
		}
		return modeltest.Turn{Text: "x", Fault: slowly("Now it is " + strings.Repeat("certainly and truly ", 15) + "seven @file:{local/app::a.go:3}.")}
	})
	dir := t.TempDir()
	nodetest.NewRepo(t, filepath.Join(dir, "app"), map[string]string{"a.go": "package a\n\nconst seven = 7\n"})
	f := nodetest.StartFleet(t, 3, nodetest.Config{File: fmt.Sprintf(
		`{"connections": {"all": {"type": "git", "url": "file://%s/*"}}, "models": [{"provider": "openai-compatible", "model": "scripted", "baseUrl": %q}]}`, dir, s.URL)})
	for _, n := range f.Nodes {
		n.WaitIndexed(1)
		waitModels(n)
	}
	waitWhole(f)

	var longest time.Duration
	for round := range *kills {
		victim := rng.IntN(3)
		on, other := f.Nodes[(victim+1)%3], f.Nodes[(victim+2)%3]
		var started *ask.Started
		f.Nodes[victim].Wait("a question to be taken", func() (err error) { // a leader may just be elected
			started, err = f.Nodes[victim].Ask(t.Context(), catalog.Operator(), ask.Question{Query: fmt.Sprintf("What is seven, in round %d?", round)})
			return err
		})
		w := &watcher{grew: make(chan struct{}, 1)}
		ctx, leave := context.WithCancel(t.Context())
		left := make(chan error, 1)
		watch := func(ctx context.Context, n *nodetest.Node, after int) {
			for {
				err := n.WatchChat(ctx, catalog.Operator(), started.ID, after, func(e ask.Event) error { w.note(e); after = e.N; return nil })
				// The node may not know the question yet, and nobody leads who could tell: so it
				// says, and is asked again.
				if !errors.Is(err, nodecall.ErrNoLeader) {
					left <- err
					return
				}
			}
		}
		go watch(ctx, on, 0)

		// After some events, which may be all of them, the node is gone.
		at := rng.IntN(34)
		wrong := func(format string, args ...any) {
			t.Helper()
			t.Fatalf("round %d, killed after %d events: %s\n%s", round, at, fmt.Sprintf(format, args...), strings.Join(plainEvents(w.all()), "\n"))
		}
		over := false
		for len(w.all()) < at && !over {
			select {
			case <-w.grew:
			case err := <-left:
				over, left = true, make(chan error, 1)
				left <- err
			}
		}
		killed := time.Now()
		f.Crash(victim)

		// The watcher loses its connection too, and goes on elsewhere.
		if rng.IntN(2) == 0 {
			leave()
			<-left
			seen := len(w.all())
			ctx, leave = context.WithCancel(t.Context())
			go watch(ctx, other, seen)
		}
		if err := <-left; err != nil && !errors.Is(err, context.Canceled) {
			wrong("%v", err)
		}
		leave()
		if !over {
			longest = max(longest, time.Since(killed))
		}
		events := w.all()
		for i, e := range events {
			if e.N != i+1 {
				wrong("event %d has the number %d", i+1, e.N)
			}
		}
		if last := events[len(events)-1]; last.Kind != ask.KindDone || last.Text != string(ask.Done) {
			wrong("it ended with %+v", last)
		}

		// Whoever asks again sees the same, and the whole answer.
		for _, n := range []*nodetest.Node{on, other} {
			var again []ask.Event
			if err := n.WatchChat(t.Context(), catalog.Operator(), started.ID, 0, func(e ask.Event) error { again = append(again, e); return nil }); err != nil {
				t.Fatal(err)
			}
			if a, b := plainEvents(events), plainEvents(again); !slices.Equal(a, b) {
				wrong("seen again:\n%s\nseen:", strings.Join(b, "\n"))
			}
		}
		c, err := other.Chat(t.Context(), catalog.Operator(), started.ID)
		if err != nil {
			t.Fatal(err)
		}
		if text := ask.Markdown(c.Turns[0].Answer, ""); !strings.HasPrefix(text, "Now it is certainly") || !strings.Contains(text, "seven [a.go:3](/browse/local/app@") || c.Turns[0].Steps != steps+1 {
			wrong("%d steps: %s", c.Turns[0].Steps, text)
		}
		f.Nodes[victim].Launch()
		f.Nodes[victim].WaitReady()
		waitWhole(f)
	}
	t.Logf("%d kills; the longest until the end of an answer: %v", *kills, longest)
	if refused := s.Refused(); refused != nil {
		t.Errorf("refused: %q", refused)
	}
}

// waitWhole waits until every node is seen by all and has a vote again, and all
// that is indexed has its copies: of three any one can be killed then. The copy of
// a mirror is made after the repository is indexed.
func waitWhole(f *nodetest.Fleet) {
	for _, n := range f.Nodes {
		n.Wait("three live voters and all copies", func() error {
			voters, placement := n.LiveVoters(), n.Status().Placement
			if voters != len(f.Nodes) || placement.UnderReplicated > 0 {
				return fmt.Errorf("%d live voters, without all copies %q", voters, placement.Short)
			}
			return nil
		})
	}
}

// plainEvents are events without the addresses of their citations.
func plainEvents(events []ask.Event) (out []string) {
	for _, e := range events {
		line := fmt.Sprint(e.N, e.Kind, e.Step, e.Text, e.Failed)
		if e.Cite != nil {
			line += fmt.Sprint(*e.Cite)
		}
		out = append(out, line)
	}
	return out
}
