package ask_test

import (
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/ask"
	nodecall "github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/node/model/modeltest"
	"github.com/shoalsearch/shoal/node/nodetest"
)

// A node is killed while it answers. A watcher at another node keeps the text, sees the loss, and
// asks again in the same thread.
func TestNodeCrash_endsItsQuestionAndTheReaderSeesTheLoss(t *testing.T) {
	t.Parallel()
	hold := make(chan struct{})
	s := modeltest.Play(t, func(r *modeltest.Request) modeltest.Turn {
		if strings.Count(r.Raw, "What is seven?") > 1 {
			return modeltest.Turn{Text: "It is seven @file:{local/app::a.go:3}."}
		}
		if !strings.Contains(r.Raw, `"role":"assistant"`) {
			return modeltest.Turn{Calls: []modeltest.Call{call("a", "read_file", `{"repo":"local/app","path":"a.go"}`)}}
		}
		return modeltest.Turn{Text: "x", Fault: func(w http.ResponseWriter, _ []byte) {
			fmt.Fprint(w, "data: {\"id\":\"c1\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Half of the answer\"}}]}\n\n")
			w.(http.Flusher).Flush()
			<-hold
		}}
	})
	t.Cleanup(func() { close(hold) })

	dir := t.TempDir()
	nodetest.NewRepo(t, filepath.Join(dir, "app"), map[string]string{"a.go": "package a\n\nconst seven = 7\n"})
	f := nodetest.StartFleet(t, 3, nodetest.Config{File: fmt.Sprintf(
		`{"connections": {"all": {"type": "git", "url": "file://%s/*"}}, "models": [{"provider": "openai-compatible", "model": "scripted", "baseUrl": %q}]}`, dir, s.URL)})
	for _, n := range f.Nodes {
		n.WaitIndexed(1)
		waitModels(n)
	}
	waitWhole(f)

	started, err := f.Nodes[0].Ask.Ask(t.Context(), catalog.Operator(), ask.Question{Query: "What is seven?"})
	if err != nil {
		t.Fatal(err)
	}

	// The crash comes after a part of the answer was seen.
	var events []ask.Event
	half := func() bool {
		return slices.ContainsFunc(events, func(e ask.Event) bool { return strings.HasPrefix(e.Text, "Half") })
	}
	crashed := false
	watch := func() error {
		after := 0
		if n := len(events); n > 0 {
			after = events[n-1].N
		}
		return f.Nodes[1].Ask.WatchChat(t.Context(), catalog.Operator(), started.ID, after, func(e ask.Event) error {
			events = append(events, e)
			if half() && !crashed {
				crashed = true
				f.Crash(0)
			}
			return nil
		})
	}
	err = watch()
	for errors.Is(err, nodecall.ErrNoLeader) { // an election is running
		err = watch()
	}
	if err != nil {
		t.Fatal(err)
	}
	end := events[len(events)-2:]
	if !half() || end[0].Kind != ask.KindError || !strings.Contains(end[0].Text, "was lost") || end[1].Kind != ask.KindDone || end[1].Text != string(ask.Failed) {
		t.Errorf("events: %q", plainEvents(events))
	}

	// Every remaining node has the question, and one of them answers it now.
	var c *ask.Chat
	f.Nodes[2].Wait("the loss to be known", func() (err error) {
		if c, err = f.Nodes[2].Ask.Chat(t.Context(), catalog.Operator(), started.ID); err == nil && c.Running {
			err = errors.New("it runs")
		}
		return err
	})
	if len(c.Turns) != 1 || c.Running || c.Turns[0].Status != ask.Failed || c.Turns[0].Query != "What is seven?" {
		t.Fatalf("%+v", c)
	}
	again, err := f.Nodes[2].Ask.Ask(t.Context(), catalog.Operator(), ask.Question{Query: c.Turns[0].Query, Thread: started.ID})
	if err != nil {
		t.Fatal(err)
	}
	first := 0
	err = f.Nodes[2].Ask.WatchChat(t.Context(), catalog.Operator(), started.ID, again.After, func(e ask.Event) error {
		if first == 0 {
			first = e.N
		}
		return nil
	})
	if err != nil || first != end[1].N+1 {
		t.Errorf("%v: the next question begins with event %d, want %d", err, first, end[1].N+1)
	}
	c, err = f.Nodes[2].Ask.Chat(t.Context(), catalog.Operator(), started.ID)
	if err != nil || len(c.Turns) != 2 || c.Turns[1].Status != ask.Done {
		t.Errorf("%+v, %v", c, err)
	}
}

// waitWhole waits until all nodes see each other and vote, and all indexed repositories and
// mirrors have their copies. Then any of the three can be killed.
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

// plainEvents returns events without the addresses of their citations.
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
