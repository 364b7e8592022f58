package modeltest_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/node/model/modeltest"
)

// TestBedrockConverseServer_refusesAResultWithoutItsCall sends results as Converse has them.
func TestBedrockConverseServer_refusesAResultWithoutItsCall(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]int{"a": http.StatusOK, "b": http.StatusBadRequest} {
		s := modeltest.Start(t, modeltest.Turn{Text: "It is there."})
		body := `{"toolConfig":{},"messages":[{"role":"user","content":[{"text":"Where?"}]},` +
			`{"role":"assistant","content":[{"toolUse":{"toolUseId":"a","name":"grep","input":{}}}]},` +
			`{"role":"user","content":[{"toolResult":{"toolUseId":"a","content":[{"text":"x"}]}}`
		if id != "a" {
			body += `,{"toolResult":{"toolUseId":"` + id + `","content":[{"text":"x"}]}}`
		}

		r, err := http.Post(s.URL+"/model/m/converse-stream", "application/json", strings.NewReader(body+`]}]}`))
		if err != nil {
			t.Fatal(err)
		}
		_ = r.Body.Close()
		if r.StatusCode != want {
			t.Errorf("result of %q: status %d, want %d; refused %q", id, r.StatusCode, want, s.Refused())
		}
	}
}
