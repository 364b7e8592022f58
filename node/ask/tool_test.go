package ask_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/model/modeltest"
	"github.com/shoalsearch/shoal/node/tool"
)

// TestTheToolAnswersInTimeAndIsAskedAgain: a client that gives up soon gets
// what there is, and the same call waits for the same turn.
func TestTheToolAnswersInTimeAndIsAskedAgain(t *testing.T) {
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
	set := tool.New(tool.Parts{Search: n, Browse: n, History: n, List: n, Log: slog.New(slog.DiscardHandler)}, n.Asker.Tool())
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
	if second.Failed || !strings.Contains(second.Text, "[store/store.go:4](http://shoal.test/browse/local/app@") || !strings.Contains(second.Text, "Model: openai-compatible/scripted.") {
		t.Fatalf("%+v", second)
	}
	if got := len(s.Requests()); got != 2 {
		t.Errorf("the model was asked %d times, want 2: the second call pays nothing", got)
	}
}

func TestTheToolIsThereOnlyWithAModel(t *testing.T) {
	t.Parallel()
	n := sample(t, modeltest.Start(t, modeltest.Turn{Text: "x"}))
	row := n.Asker.Tool()
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
