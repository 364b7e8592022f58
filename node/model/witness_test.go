package model_test

import (
	"os"
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/cluster/config"
	"github.com/shoalsearch/shoal/node/model"
)

// It holds a conversation with each provider as an independent program plays it. SHOAL_AIMOCK is
// its address; .ci/test-models starts it.
func TestEveryProvider_conversesWithAnIndependentServer(t *testing.T) {
	url := os.Getenv("SHOAL_AIMOCK")
	if url == "" {
		t.Skip("SHOAL_AIMOCK does not name the address of the program: see .ci/test-models")
	}
	bases := map[config.Provider]string{
		config.OpenAI: "/v1", config.Azure: "/v1", config.DeepSeek: "/v1", config.Mistral: "/v1", config.OpenAICompatible: "/v1", config.OpenRouter: "/api/v1", config.XAI: "/v1",
		config.Anthropic: "/v1", config.GoogleGenerativeAI: "/v1beta",
	}
	unplayed := map[config.Provider]string{
		config.GoogleVertex:          "it has /v1/projects, and this client asks /v1beta1/projects",
		config.GoogleVertexAnthropic: "it has no models of others at Vertex",
	}
	for _, tt := range all {
		t.Run(string(tt.m.Provider)+" "+tt.m.Model, func(t *testing.T) {
			t.Parallel()
			if why := unplayed[tt.m.Provider]; why != "" {
				t.Skip("the program does not play it: " + why)
			}
			c, _ := opened(t, tt.m, url+bases[tt.m.Provider])
			r := &model.Request{System: []string{"You answer."}, Tools: tools, Messages: question("Where is it?"), CacheKey: "thread"}
			a, err := c.Answer(t.Context(), r, func(model.Event) {})
			if err != nil {
				t.Fatal(err)
			}
			calls := a.Message.Calls()
			if a.Finish != model.Calls || len(calls) != 2 || calls[0].Name != "grep" || calls[0].Arguments != `{"pattern":"a"}` || calls[1].Arguments != `{"pattern":"b"}` {
				t.Fatalf("step 1: %s %+v", a.Finish, calls)
			}

			next := model.Message{Role: model.User}
			for _, k := range calls {
				next.Parts = append(next.Parts, model.Part{Result: &model.Result{ID: k.ID, Name: k.Name, Text: "a.go:1"}})
			}
			r.Messages = append(r.Messages, a.Message, next)
			var streamed strings.Builder
			a, err = c.Answer(t.Context(), r, func(e model.Event) { streamed.WriteString(e.Text) })
			if err != nil {
				t.Fatal(err)
			}
			if want := "It is in a.go — größer."; a.Finish != model.Done || a.Message.Text() != want || streamed.String() != want {
				t.Errorf("step 2: %s %q, streamed %q", a.Finish, a.Message.Text(), streamed.String())
			}
		})
	}
}
