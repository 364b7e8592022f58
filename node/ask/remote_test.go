package ask_test

import (
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/ask"
	"github.com/shoalsearch/shoal/node/model/modeltest"
	"github.com/shoalsearch/shoal/node/nodetest"
	"github.com/shoalsearch/shoal/node/tool"
)

// One node gets the question. Another one shows the answer in the middle, from the beginning and
// from a later event on.
func TestRunningAnswer_isShownByEveryNode(t *testing.T) {
	t.Parallel()
	goOn := make(chan struct{})
	s := modeltest.Play(t, func(r *modeltest.Request) modeltest.Turn {
		if r.Step == 0 {
			return modeltest.Turn{Calls: []modeltest.Call{call("a", "read_file", `{"repo":"local/app","path":"a.go"}`)}}
		}
		<-goOn
		return modeltest.Turn{Text: "It is seven @file:{local/app::a.go:3}."}
	})
	dir := t.TempDir()
	nodetest.NewRepo(t, filepath.Join(dir, "app"), map[string]string{"a.go": "package a\n\nconst seven = 7\n"})
	f := nodetest.StartFleet(t, 2, nodetest.Config{File: fmt.Sprintf(
		`{"connections": {"all": {"type": "git", "url": "file://%s/*"}}, "models": [{"provider": "openai-compatible", "model": "scripted", "baseUrl": %q}]}`, dir, s.URL)})
	a, b := f.Nodes[0], f.Nodes[1]
	a.WaitIndexed(1)
	b.WaitIndexed(1)
	waitModels(b)

	turn, err := a.Ask.Ask(t.Context(), catalog.Operator(), ask.Question{Query: "What is seven?"})
	if err != nil {
		t.Fatal(err)
	}
	// The other node knows it at once, with its progress.
	set := tool.New(tool.Parts{Log: slog.New(slog.DiscardHandler)}, b.Ask.Tool())
	if w, err := set.Look(t.Context(), catalog.Operator(), turn.ID); err != nil || w.Status != tool.Working || !strings.HasPrefix(w.Doing, "step ") {
		t.Errorf("%v: %+v", err, w)
	}

	var kinds []string
	last := 0
	err = b.Ask.WatchChat(t.Context(), catalog.Operator(), turn.ID, 0, func(e ask.Event) error {
		if e.N != last+1 {
			t.Errorf("event %d after %d", e.N, last)
		}
		last = e.N
		kinds = append(kinds, e.Kind)
		if e.Kind == ask.KindResult {
			close(goOn)
		}
		return nil
	})
	if err != nil || kinds[len(kinds)-1] != ask.KindDone {
		t.Fatalf("%v: %q", err, kinds)
	}
	again := 0
	if err := b.Ask.WatchChat(t.Context(), catalog.Operator(), turn.ID, last-2, func(ask.Event) error { again++; return nil }); err != nil || again != 2 {
		t.Errorf("%v: %d events after the last but two", err, again)
	}
	c, err := b.Ask.Chat(t.Context(), catalog.Operator(), turn.ID)
	if err != nil || c.Turns[0].Status != ask.Done || !strings.Contains(ask.Markdown(c.Turns[0].Answer, ""), "[a.go:3](/browse/local/app@") {
		t.Errorf("%v: %+v", err, c)
	}

	// The tool on the other node finds the answer without calling a model.
	if got := set.Call(t.Context(), catalog.Operator(), "ask_codebase", []byte(`{"query":"What is seven?"}`)); got.Failed || !strings.Contains(got.Text, "It is seven") {
		t.Errorf("%+v", got)
	}
	if w, err := set.Look(t.Context(), catalog.Operator(), turn.ID); err != nil || w.Status != tool.Done || !strings.Contains(w.Answer.Text, "It is seven") {
		t.Errorf("%v: %+v", err, w)
	}
	if n := len(s.Requests()); n != 2 {
		t.Errorf("the model was asked %d times, want 2", n)
	}

	// Nobody else can see it.
	if _, err := b.Ask.Chat(t.Context(), catalog.Guest(), turn.ID); err == nil || !strings.Contains(err.Error(), "no such chat") {
		t.Errorf("a guest: %v", err)
	}
	if _, err := b.Ask.Chat(t.Context(), catalog.Operator(), "0123"); err == nil || !strings.Contains(err.Error(), "no such chat") {
		t.Errorf("no thread: %v", err)
	}
}
