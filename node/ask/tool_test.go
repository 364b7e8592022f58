package ask_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/ask"
	nodecall "github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/node/model/modeltest"
	"github.com/shoalsearch/shoal/node/tool"
)

// A client with a short timeout gets what there is, and the same call waits for the same turn.
func TestAskTool_returnsProgressInTimeAndTheAnswerLater(t *testing.T) {
	t.Parallel()
	goOn := make(chan struct{})
	s := modeltest.Play(t, func(r *modeltest.Request) modeltest.Turn {
		if r.Step == 0 {
			return modeltest.Turn{Calls: []modeltest.Call{call("a", "grep", `{"pattern":"Open"}`)}}
		}
		<-goOn
		return modeltest.Turn{Text: "By Open @file:{local/app::store/store.go:4}."}
	})
	n := sample(t, s)
	set := tool.New(tool.Parts{Search: n.Search, Browse: n.Browse, Models: n.Ask, Log: slog.New(slog.DiscardHandler)}, n.Ask.Tool())
	args := json.RawMessage(`{"query":"How?","repos":"app","languageModel":"openai-compatible/scripted"}`)

	// The margin before the deadline is five seconds.
	ctx, cancel := context.WithTimeout(t.Context(), 5200*time.Millisecond)
	defer cancel()
	first := set.Call(ctx, catalog.Operator(), "ask_codebase", args)
	if first.Failed || !strings.HasPrefix(first.Text, "Still researching") || !strings.Contains(first.Text, "same arguments") {
		t.Fatalf("%+v", first)
	}
	close(goOn)
	second := set.Call(t.Context(), catalog.Operator(), "ask_codebase", args)
	if second.Failed || !strings.Contains(second.Text, "[store/store.go:4](http://shoal.test/browse/local/app@") || !strings.Contains(second.Text, "\nSources: 0 files read, 1 search. ") || !strings.Contains(second.Text, "Model: openai-compatible/scripted.") {
		t.Fatalf("%+v", second)
	}
	if got := len(s.Requests()); got != 2 {
		t.Errorf("the model was asked %d times, want 2: the second call pays nothing", got)
	}
}

func TestAskTool_isOfferedOnlyWithAModel(t *testing.T) {
	t.Parallel()
	n := sample(t, modeltest.Start(t, modeltest.Turn{Text: "x"}))
	row := n.Ask.Tool()
	set := tool.New(tool.Parts{Log: slog.New(slog.DiscardHandler)}, row)
	if set.Offered() != set {
		t.Error("with a model not all tools are offered")
	}
	row.Offered = func() bool { return false }
	set = tool.New(tool.Parts{Log: slog.New(slog.DiscardHandler)}, row)
	if now := set.Offered(); now.Unknown("ask_codebase") == "" || strings.Contains(now.Unknown("nothing"), "ask_codebase") {
		t.Errorf("%d tools: %s", len(now.Tools()), now.Unknown("nothing"))
	}
}

// It begins questions and reads their state, as the same viewer and as others.
func TestAskTool_runsInTheBackground(t *testing.T) {
	t.Parallel()
	goOn, stepped := make(chan struct{}), make(chan struct{}, 8)
	s := modeltest.Play(t, func(r *modeltest.Request) modeltest.Turn {
		if strings.Contains(r.Raw, "Break it") {
			return modeltest.Turn{Fault: func(w http.ResponseWriter, _ []byte) { w.WriteHeader(http.StatusBadRequest) }}
		}
		stepped <- struct{}{}
		<-goOn
		return modeltest.Turn{Text: "By Open @file:{local/app::store/store.go:4}."}
	})
	n := sample(t, s)
	ann, bob := member(t, n, "ann"), member(t, n, "bob")
	set := tool.New(tool.Parts{Search: n.Search, Browse: n.Browse, Models: n.Ask, Log: slog.New(slog.DiscardHandler)}, n.Ask.Tool())
	begin := func(query string) *tool.Work {
		w, refused := set.Begin(t.Context(), ann, "ask_codebase", json.RawMessage(`{"query":"`+query+`"}`))
		if refused != nil {
			t.Fatalf("%s: %+v", query, refused)
		}
		return w
	}
	ended := func(w *tool.Work) *tool.Work {
		err := n.Ask.WatchChat(t.Context(), ann, w.ID, 0, func(ask.Event) error { return nil })
		if err != nil {
			t.Fatal(err)
		}
		now, err := set.Look(t.Context(), ann, w.ID)
		if err != nil {
			t.Fatal(err)
		}
		return now
	}

	w := begin("How?")
	if w.Status != tool.Working || w.Began.IsZero() || w.Kept != 90*24*time.Hour {
		t.Errorf("begun: %+v", w)
	}
	<-stepped
	if now, err := set.Look(t.Context(), ann, w.ID); err != nil || now.Status != tool.Working || now.Doing != "step 1" {
		t.Errorf("under way: %+v, %v", now, err)
	}
	if again := begin("How?"); again.ID != w.ID {
		t.Errorf("the same call again began %s beside %s", again.ID, w.ID)
	}

	// Others cannot see the work, even if the thread is shared.
	yes := true
	if err := n.Ask.ChangeChat(t.Context(), ann, w.ID, "", &yes); err != nil {
		t.Fatal(err)
	}
	for _, v := range []catalog.Viewer{bob, catalog.Guest(), {}} {
		if _, err := set.Look(t.Context(), v, w.ID); !errors.Is(err, nodecall.ErrNotFound) || !strings.Contains(err.Error(), "no such task") {
			t.Errorf("%s looks: %v", v.Name, err)
		}
		if err := set.Stop(t.Context(), v, w.ID); !errors.Is(err, nodecall.ErrNotFound) {
			t.Errorf("%s stops: %v", v.Name, err)
		}
	}

	// After a stop the same call begins it again.
	if err := set.Stop(t.Context(), ann, w.ID); err != nil {
		t.Fatal(err)
	}
	if now := ended(w); now.Status != tool.Stopped || now.Answer.Text != "" || now.Doing != "" {
		t.Errorf("stopped: %+v", now)
	}
	close(goOn)
	second := begin("How?")
	if second.ID == w.ID {
		t.Error("the stopped question was found again")
	}
	if now := ended(second); now.Status != tool.Done || now.Answer.Failed || !strings.Contains(now.Answer.Text, "[store/store.go:4](http://shoal.test/browse/local/app@") {
		t.Errorf("answered: %+v", now)
	}

	// A follow-up question does not belong to the call: the call neither shows nor stops it.
	mustAsk(t, n.Ask, ann, ask.Question{Query: "And now?", Thread: second.ID})
	if now, err := set.Look(t.Context(), ann, second.ID); err != nil || now.Status != tool.Done || !strings.Contains(now.Answer.Text, "By Open") {
		t.Errorf("after a further question: %+v, %v", now, err)
	}
	if err := set.Stop(t.Context(), ann, second.ID); err != nil {
		t.Errorf("the end of what has ended: %v", err)
	}

	// A question without an answer is done too: its answer has the reason.
	if now := ended(begin("Break it")); now.Status != tool.Done || !now.Answer.Failed || now.Answer.Text == "" {
		t.Errorf("failed: %+v", now)
	}
}

// Some providers do not accept references in schemas.
func TestToolSchemas_haveNoReferences(t *testing.T) {
	t.Parallel()
	s := modeltest.Start(t, modeltest.Turn{Text: "Yes."})
	answered(t, sample(t, s), ask.Question{Query: "?"})
	r := s.Requests()[0]
	if told, _ := r.Body["tools"].([]any); len(told) < 10 {
		t.Fatalf("%d tools were told", len(told))
	}
	for _, word := range []string{`"$ref"`, `"$defs"`, `"definitions"`} {
		if strings.Contains(r.Raw, word) {
			t.Errorf("a schema has %s", word)
		}
	}
}
