package ask_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/account"
	nodecall "github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/node/model/modeltest"
	"github.com/shoalsearch/shoal/node/nodetest"
)

func TestCheckModels_triesAToolCall(t *testing.T) {
	t.Parallel()
	good := modeltest.Start(t, modeltest.Turn{Calls: []modeltest.Call{{ID: "call_1", Name: "ready", Arguments: `{"word":"yes"}`}}})
	talks := modeltest.Start(t, modeltest.Turn{Text: "yes"})
	refuses := modeltest.Start(t, modeltest.Turn{Fault: modeltest.Status(401, `{"error":{"message":"bad key sk-planted-in-a-test"}}`)})
	n := nodetest.Start(t, nodetest.Config{
		File: fmt.Sprintf(`{"models": [
			{"provider": "openai-compatible", "model": "good", "baseUrl": %q, "displayName": "Good"},
			{"provider": "openai-compatible", "model": "talks", "baseUrl": %q},
			{"provider": "openai", "model": "refuses", "baseUrl": %q, "token": {"env": "MODEL_KEY"}},
			{"provider": "openai", "model": "keyless", "baseUrl": %q, "token": {"env": "NOT_SET"}}
		]}`, good.URL, talks.URL, refuses.URL, good.URL),
		Env: map[string]string{"MODEL_KEY": "sk-planted-in-a-test"},
	})

	waitModels(n)

	// A list only looks for keys and calls no provider.
	models, err := n.Ask.Models(t.Context(), catalog.Operator())
	if err != nil {
		t.Fatal(err)
	}
	if len(models) != 4 || !models[0].Usable || models[0].DisplayName != "Good" || !models[2].Usable || models[3].Usable {
		t.Errorf("models %+v", models)
	}
	if len(good.Requests())+len(refuses.Requests()) != 0 {
		t.Error("a list called a model")
	}

	checks, err := n.Ask.CheckModels(t.Context(), account.Operator())
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"", "calls no tools", "The instance's key for openai was refused", "environment variable NOT_SET is not set"} {
		if got := checks[i].Problem; want == "" && got != "" || !strings.Contains(got, want) || strings.Contains(got, "sk-planted") {
			t.Errorf("%s: %q, want %q", checks[i].Model, got, want)
		}
	}
}

// waitModels waits until the configuration is in force.
func waitModels(n *nodetest.Node) {
	n.Wait("models", func() error {
		if !n.Ask.HasModel() {
			return errors.New("no model is configured yet")
		}
		return nil
	})
}

func TestAsk_isRefusedWithoutAModel(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t, nodetest.Config{})
	if _, err := n.Ask.CheckModels(t.Context(), account.Operator()); !errors.Is(err, nodecall.ErrUnable) || !strings.Contains(err.Error(), `Add one to "models"`) {
		t.Errorf("%v", err)
	}
	if models, err := n.Ask.Models(t.Context(), catalog.Operator()); err != nil || len(models) != 0 {
		t.Errorf("%v, %v", models, err)
	}
}
