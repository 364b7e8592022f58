package model_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/cluster/config"
	"github.com/shoalsearch/shoal/node/model"
)

// refusing refuses every request, and records it.
type refusing struct{ sent []*http.Request }

func (r *refusing) RoundTrip(req *http.Request) (*http.Response, error) {
	r.sent = append(r.sent, req)
	return &http.Response{StatusCode: http.StatusForbidden, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("{}")), Request: req}, nil
}

// It checks the address of each provider without a baseUrl, and with settings and variables.
func TestModelAddress_followsProviderSettingsAndVariables(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		m         config.Model
		variables string // name=value ...
		want      string
	}{
		{config.Model{Provider: config.OpenAI, Model: "m", Token: key}, "", "https://api.openai.com/v1/responses"},
		{config.Model{Provider: config.Azure, Model: "m", Token: key, ResourceName: "res"}, "", "https://res.openai.azure.com/openai/v1/responses?api-version=preview"},
		{config.Model{Provider: config.Azure, Model: "m", Token: key, APIVersion: "v1"}, "AZURE_RESOURCE_NAME=env", "https://env.openai.azure.com/openai/v1/responses?api-version=v1"},
		{config.Model{Provider: config.Azure, Model: "m", Token: key, BaseURL: "https://r.openai.azure.com/openai/"}, "", "https://r.openai.azure.com/openai/v1/responses?api-version=preview"},
		{config.Model{Provider: config.Azure, Model: "m", Token: key, BaseURL: "https://r.openai.azure.com/openai/v1"}, "", "https://r.openai.azure.com/openai/v1/responses?api-version=preview"},
		{config.Model{Provider: config.Azure, Model: "m", Token: key, BaseURL: "https://gateway.example.test/azure"}, "", "https://gateway.example.test/azure/responses"},
		{config.Model{Provider: config.Azure, Model: "m", Token: key, BaseURL: "http://gw/openai", APIVersion: "2025-04-01-preview"}, "", "http://gw/openai/v1/responses?api-version=2025-04-01-preview"},
		{config.Model{Provider: config.Azure, Model: "m", Token: key, BaseURL: "https://m.services.ai.azure.com/openai", APIVersion: "v1"}, "", "https://m.services.ai.azure.com/openai/v1/responses?api-version=v1"},
		{config.Model{Provider: config.Azure, Model: "m", Token: key, BaseURL: "https://m.cognitiveservices.azure.com/openai"}, "", "https://m.cognitiveservices.azure.com/openai/v1/responses?api-version=preview"},
		{config.Model{Provider: config.GoogleGenerativeAI, Model: "m", Token: key, BaseURL: "http://gw/x"}, "", "http://gw/x/models/m:streamGenerateContent?alt=sse"},
		{config.Model{Provider: config.GoogleGenerativeAI, Model: "m", Token: key, BaseURL: "http://gw/x/v1"}, "", "http://gw/x/v1/models/m:streamGenerateContent?alt=sse"},
		{config.Model{Provider: config.GoogleGenerativeAI, Model: "m", Token: key, BaseURL: "http://gw/v1beta/"}, "", "http://gw/v1beta/models/m:streamGenerateContent?alt=sse"},
		{config.Model{Provider: config.Anthropic, Model: "m", Token: key}, "", "https://api.anthropic.com/v1/messages"},
		{config.Model{Provider: config.Anthropic, Model: "m", Token: key, BaseURL: "https://gateway.example.test/v1/"}, "", "https://gateway.example.test/v1/messages"},
		{config.Model{Provider: config.Anthropic, Model: "m", Token: key, BaseURL: "https://gateway.example.test/x"}, "", "https://gateway.example.test/x/messages"},
		{config.Model{Provider: config.DeepSeek, Model: "m", Token: key}, "", "https://api.deepseek.com/chat/completions"},
		{config.Model{Provider: config.Mistral, Model: "m", Token: key}, "", "https://api.mistral.ai/v1/chat/completions"},
		{config.Model{Provider: config.OpenRouter, Model: "m", Token: key}, "", "https://openrouter.ai/api/v1/chat/completions"},
		{config.Model{Provider: config.XAI, Model: "m", Token: key}, "", "https://api.x.ai/v1/chat/completions"},
		{config.Model{Provider: config.OpenAICompatible, Model: "m", BaseURL: "http://127.0.0.1:1/v1", QueryParams: []config.KeyText{{Key: "a", Value: "b c"}}}, "", "http://127.0.0.1:1/v1/chat/completions?a=b+c"},
		{config.Model{Provider: config.GoogleGenerativeAI, Model: "m", Token: key}, "", "https://generativelanguage.googleapis.com/v1beta/models/m:streamGenerateContent?alt=sse"},
		{config.Model{Provider: config.GoogleVertex, Model: "m", Project: "p"}, "", "https://us-central1-aiplatform.googleapis.com/v1beta1/projects/p/locations/us-central1/publishers/google/models/m:streamGenerateContent?alt=sse"},
		{config.Model{Provider: config.GoogleVertex, Model: "m"}, "GOOGLE_VERTEX_PROJECT=q GOOGLE_VERTEX_REGION=global",
			"https://aiplatform.googleapis.com/v1beta1/projects/q/locations/global/publishers/google/models/m:streamGenerateContent?alt=sse"},
		{config.Model{Provider: config.GoogleVertexAnthropic, Model: "m", Project: "p", Region: "eu"}, "",
			"https://aiplatform.eu.rep.googleapis.com/v1/projects/p/locations/eu/publishers/anthropic/models/m:streamRawPredict"},
		{config.Model{Provider: config.AmazonBedrock, Model: "m", AccessKeyID: key, AccessKeySecret: key}, "AWS_REGION=eu-west-1",
			"https://bedrock-runtime.eu-west-1.amazonaws.com/model/m/converse-stream"},
	} {
		kept := &refusing{}
		models := model.New(model.Deps{
			Secret: func(context.Context, config.Token) (string, error) { return secretKey, nil },
			Lookup: func(name string) (string, bool) {
				for v := range strings.FieldsSeq(tt.variables) {
					if n, value, _ := strings.Cut(v, "="); n == name {
						return value, true
					}
				}
				return "", false
			},
			GoogleToken: func(context.Context, string) (string, error) { return "ya29.google", nil },
			Wait:        func(context.Context, time.Duration) bool { return true },
			Transport:   kept,
		})
		c, err := models.Open(t.Context(), &tt.m)
		if err != nil {
			t.Errorf("%s: %v", tt.want, err)
			continue
		}
		if _, err := c.Answer(t.Context(), &model.Request{Messages: question("?")}, func(model.Event) {}); err == nil {
			t.Errorf("%s: a refusal is no answer", tt.want)
		}
		last := kept.sent[len(kept.sent)-1] // a request about the model's abilities comes before it
		if got := last.URL.String(); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.m.Provider, got, tt.want)
		}
	}
}

// A token lasts an hour, and a conversation may last longer. The path of the key file may be a
// secret.
func TestGoogleToken_isRequestedForEachCall(t *testing.T) {
	t.Parallel()
	for _, provider := range []config.Provider{config.GoogleVertex, config.GoogleVertexAnthropic} {
		kept := &refusing{}
		tokens := []string{"ya29.first", "ya29.second", ""}
		asked := 0
		models := model.New(model.Deps{
			Secret: func(_ context.Context, tok config.Token) (string, error) { return " /keys/" + tok.Env + ".json\n", nil },
			Lookup: func(string) (string, bool) { return "", false },
			GoogleToken: func(_ context.Context, path string) (string, error) {
				if path != "/keys/VERTEX.json" {
					t.Errorf("a token of the key file %q", path)
				}
				asked++
				if tokens[asked-1] == "" {
					return "", errors.New("the key was taken back")
				}
				return tokens[asked-1], nil
			},
			Wait:      func(context.Context, time.Duration) bool { return true },
			Transport: kept,
		})
		c, err := models.Open(t.Context(), &config.Model{Provider: provider, Model: "m", Project: "p", Credentials: &config.Token{Env: "VERTEX"}})
		if err != nil {
			t.Fatal(err)
		}
		for i, token := range tokens {
			_, err := c.Answer(t.Context(), &model.Request{Messages: question("?")}, func(model.Event) {})
			e := (*model.Error)(nil)
			if token == "" {
				if !errors.As(err, &e) || e.Kind != model.NoKey || !strings.Contains(err.Error(), "taken back") || len(kept.sent) != i {
					t.Errorf("%s without a token: %v, %d requests", provider, err, len(kept.sent))
				}
				continue
			}
			if len(kept.sent) != i+1 || kept.sent[i].Header.Get("Authorization") != "Bearer "+token {
				t.Errorf("%s: request %d has not %s", provider, i+1, token)
			}
		}
	}
}

// An unknown model gets low limits, so that no service refuses it.
func TestTokenLimits_areLowForUnknownModels(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]model.Limit{
		"claude-sonnet-x":              {Window: 200_000, Output: 32_000},
		"us.anthropic.claude-3-5-x-v1": {Window: 200_000, Output: 8192},
		"openrouter/google/gemini-x":   {Window: 1_000_000, Output: 64_000},
		"house-model":                  {Window: 128_000, Output: 8192},
	} {
		if got := model.Limits(name); got != want {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
}
