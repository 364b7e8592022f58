package model_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/cluster/config"
	"github.com/shoalsearch/shoal/node/model"
	"github.com/shoalsearch/shoal/node/model/modeltest"
)

// secretKey is used as every credential. It may be in headers and nowhere else.
const secretKey = "sk-planted-0123456789-wxyz"

var key = &config.Token{Env: "PLANTED"}

// all is a model of each provider, and what its request must have.
var all = []struct {
	m      config.Model
	path   string
	header string // with the credential
	value  string // "" for anything
}{
	{config.Model{Provider: config.AmazonBedrock, Model: "arn:aws:bedrock:us-east-1:1:inference-profile/us.anthropic.claude-x", Region: "us-east-1", AccessKeyID: key, AccessKeySecret: key},
		"/model/arn%3Aaws%3Abedrock%3Aus-east-1%3A1%3Ainference-profile%2Fus.anthropic.claude-x/converse-stream", "Authorization", ""},
	{config.Model{Provider: config.Anthropic, Model: "claude-x", Token: key}, "/messages", "X-Api-Key", secretKey},
	{config.Model{Provider: config.Anthropic, Model: "claude-y", Token: key, AuthToken: key}, "/messages", "Authorization", "Bearer " + secretKey},
	{config.Model{Provider: config.Azure, Model: "deployment", Token: key}, "/responses", "Api-Key", secretKey},
	{config.Model{Provider: config.DeepSeek, Model: "deepseek-chat", Token: key}, "/chat/completions", "Authorization", "Bearer " + secretKey},
	{config.Model{Provider: config.GoogleGenerativeAI, Model: "gemini-x", Token: key}, "/models/gemini-x:streamGenerateContent?alt=sse", "X-Goog-Api-Key", secretKey},
	{config.Model{Provider: config.GoogleVertexAnthropic, Model: "claude-v", Project: "p", Region: "europe-west1"},
		"/v1/projects/p/locations/europe-west1/publishers/anthropic/models/claude-v:streamRawPredict", "Authorization", "Bearer ya29.google"},
	{config.Model{Provider: config.GoogleVertex, Model: "gemini-v", Project: "p", Region: "europe-west1"},
		"/v1beta1/projects/p/locations/europe-west1/publishers/google/models/gemini-v:streamGenerateContent?alt=sse", "Authorization", "Bearer ya29.google"},
	{config.Model{Provider: config.Mistral, Model: "mistral-large", Token: key}, "/chat/completions", "Authorization", "Bearer " + secretKey},
	{config.Model{Provider: config.OpenAI, Model: "gpt-x", Token: key}, "/responses", "Authorization", "Bearer " + secretKey},
	{config.Model{Provider: config.OpenAICompatible, Model: "qwen", Token: key, QueryParams: []config.KeyText{{Key: "v", Value: "1"}}}, "/chat/completions?v=1", "Authorization", "Bearer " + secretKey},
	{config.Model{Provider: config.OpenRouter, Model: "openrouter/any", Token: key}, "/chat/completions", "Authorization", "Bearer " + secretKey},
	{config.Model{Provider: config.XAI, Model: "grok", Token: key}, "/chat/completions", "Authorization", "Bearer " + secretKey},
}

// opened opens a model at a scripted server, and records the pauses.
func opened(t *testing.T, m config.Model, url string) (*model.Client, *[]time.Duration) {
	t.Helper()
	return openedWith(t, m, url, nil)
}

// openedWith is opened with some environment variables.
func openedWith(t *testing.T, m config.Model, url string, env map[string]string) (*model.Client, *[]time.Duration) {
	t.Helper()
	m.BaseURL = url
	var pauses []time.Duration
	models := model.New(model.Deps{
		Secret: func(_ context.Context, tok config.Token) (string, error) {
			if tok.Env != "PLANTED" {
				return "", errors.New("environment variable " + tok.Env + " is not set")
			}
			return secretKey, nil
		},
		Lookup:      func(name string) (string, bool) { text := env[name]; return text, text != "" },
		GoogleToken: func(context.Context, string) (string, error) { return "ya29.google", nil },
		Wait:        func(_ context.Context, d time.Duration) bool { pauses = append(pauses, d); return true },
	})
	c, err := models.Open(t.Context(), &m)
	if err != nil {
		t.Fatal(err)
	}
	return c, &pauses
}

var tools = []model.Tool{{Name: "grep", About: "Finds lines.", Schema: json.RawMessage(`{"type":"object","properties":{"pattern":{"type":"string"}},"required":["pattern"]}`)}}

func question(text string) []model.Message {
	return []model.Message{{Role: model.User, Parts: []model.Part{{Text: text}}}}
}

// Each provider thinks, makes two calls at once, takes their results, and answers. The server
// refuses what the real services refuse.
func TestEveryProvider_holdsAConversationWithToolCalls(t *testing.T) {
	for _, tt := range all {
		t.Run(string(tt.m.Provider)+" "+tt.m.Model, func(t *testing.T) {
			t.Parallel()
			s := modeltest.Start(t,
				modeltest.Turn{Reasoning: "I look first. ", Text: "Let me look.", Calls: []modeltest.Call{
					{ID: "call_first", Name: "grep", Arguments: `{"pattern":"a"}`}, {ID: "call_second", Name: "grep", Arguments: `{"pattern":"b"}`},
				}},
				modeltest.Turn{Text: "It is in a.go — größer."})
			c, _ := opened(t, tt.m, s.URL)

			// The first step makes two calls.
			r := &model.Request{System: []string{"You answer.", "Today."}, Tools: tools, Messages: question("Where is it?"), CacheKey: "thread"}
			var streamed strings.Builder
			a, err := c.Answer(t.Context(), r, func(e model.Event) { streamed.WriteString(e.Text) })
			if err != nil {
				t.Fatalf("%v; refused: %q", err, s.Refused())
			}
			calls := a.Message.Calls()
			if a.Finish != model.Calls || len(calls) != 2 || calls[1].Name != "grep" || calls[1].Arguments != `{"pattern":"b"}` {
				t.Fatalf("step 1: %s %+v", a.Finish, calls)
			}
			if streamed.String() != "Let me look." || a.Message.Text() != "Let me look." {
				t.Errorf("text %q, streamed %q", a.Message.Text(), streamed.String())
			}
			if want := (model.Usage{Input: 120, Cached: 80, Output: 30}); a.Usage.Input != want.Input || a.Usage.Cached != want.Cached || a.Usage.Output != want.Output {
				t.Errorf("usage %+v, want %+v", a.Usage, want)
			}

			// The second step gets their results.
			r.Messages = append(r.Messages, a.Message, model.Message{Role: model.User, Parts: []model.Part{
				{Result: &model.Result{ID: calls[0].ID, Name: "grep", Text: "a.go:1"}}, {Result: &model.Result{ID: calls[1].ID, Name: "grep", Text: "", Failed: true}},
			}})
			r.NoCalls = true
			a, err = c.Answer(t.Context(), r, func(model.Event) {})
			if err != nil {
				t.Fatalf("%v; refused: %q", err, s.Refused())
			}
			if a.Finish != model.Done || a.Message.Text() != "It is in a.go — größer." {
				t.Errorf("step 2: %s %q", a.Finish, a.Message.Text())
			}

			// Check the address and the headers.
			req := s.Requests()[0]
			if req.Path != tt.path && !strings.HasPrefix(req.Path, tt.path+"?api-version=") {
				t.Errorf("path %s, want %s", req.Path, tt.path)
			}
			if got := req.Header.Get(tt.header); got == "" || tt.value != "" && got != tt.value {
				t.Errorf("%s: %q, want %q", tt.header, got, tt.value)
			}
			for name := range req.Header {
				if strings.HasPrefix(name, "X-Stainless") || name == "X-Goog-Api-Client" || name == "Http-Referer" {
					t.Errorf("a header tells of this program: %s", name)
				}
			}
			if got := req.Header.Get("User-Agent"); got != "shoal" {
				t.Errorf("User-Agent %q", got)
			}
		})
	}
}

// Each provider gets a conversation that another one began, with ids and a name in another
// format.
func TestEveryProvider_continuesAConversationOfAnotherModel(t *testing.T) {
	for _, tt := range all {
		t.Run(string(tt.m.Provider)+" "+tt.m.Model, func(t *testing.T) {
			t.Parallel()
			s := modeltest.Start(t, modeltest.Turn{Text: "ok"})
			c, _ := opened(t, tt.m, s.URL)
			r := &model.Request{Tools: tools, Messages: append(question("Where?"),
				model.Message{Role: model.Assistant, Native: &model.Native{From: "other/model", JSON: json.RawMessage(`{"strange":true}`)}, Parts: []model.Part{
					{Call: &model.Call{ID: "toolu_01:x/y", Name: "grep the code!", Arguments: `not json`}},
				}},
				model.Message{Role: model.User, Parts: []model.Part{{Result: &model.Result{ID: "toolu_01:x/y", Name: "grep the code!", Text: "x"}}}},
			)}
			if _, err := c.Answer(t.Context(), r, func(model.Event) {}); err != nil {
				t.Fatalf("%v; refused: %q", err, s.Refused())
			}
			raw := s.Requests()[0].Raw
			if strings.Contains(raw, "strange") {
				t.Error("another provider's own form was sent")
			}
			if strings.Contains(raw, "grep the code!") && strings.Contains(raw, `"name":"grep the code!"`) {
				t.Error("a name with odd letters was sent")
			}
		})
	}
}

// Every variable that the libraries would read has a wrong value. None of it reaches the
// configured address.
func TestEveryProvider_ignoresTheLibrariesOwnVariables(t *testing.T) {
	const poison = "poisoned-value"
	for _, name := range []string{
		"OPENAI_API_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "OPENAI_BASE_URL", "OPENAI_WEBHOOK_SECRET", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN",
		"ANTHROPIC_PROFILE", "ANTHROPIC_CUSTOM_HEADERS", "GOOGLE_API_KEY", "GEMINI_API_KEY", "GOOGLE_CLOUD_PROJECT", "GOOGLE_CLOUD_LOCATION", "AWS_ACCESS_KEY_ID",
		"AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_BEARER_TOKEN_BEDROCK", "AWS_REGION", "MISTRAL_API_KEY", "XAI_API_KEY", "DEEPSEEK_API_KEY", "OPENROUTER_API_KEY",
	} {
		t.Setenv(name, poison)
	}
	for _, name := range []string{"ANTHROPIC_BASE_URL", "GOOGLE_GEMINI_BASE_URL", "GOOGLE_VERTEX_BASE_URL", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_BEDROCK_RUNTIME"} {
		t.Setenv(name, "http://127.0.0.1:9/"+poison)
	}
	for _, tt := range all {
		s := modeltest.Start(t, modeltest.Turn{Text: "ok"})
		c, _ := opened(t, tt.m, s.URL)
		if _, err := c.Answer(t.Context(), &model.Request{Messages: question("?")}, func(model.Event) {}); err != nil {
			t.Errorf("%s: %v", tt.m.Provider, err)
			continue
		}
		for _, r := range s.Requests() {
			if strings.Contains(r.Path+r.Raw, poison) {
				t.Errorf("%s: poison in the request", tt.m.Provider)
			}
			for name, values := range r.Header {
				if strings.Contains(strings.Join(values, " "), poison) {
					t.Errorf("%s: poison in %s", tt.m.Provider, name)
				}
			}
		}
	}
}

// A key was changed at the provider and in the secret manager, while this node has the old one.
// The key is read again, and the request repeated without a pause.
func TestRefusedKey_isReadAgain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		manager string
		asked   int
		kind    model.Kind // "" for an answer
	}{
		"changed": {secretKey, 2, ""},
		"not":     {"sk-old", 1, model.BadKey},
		"wrong":   {"sk-wrong-too", 2, model.BadKey},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := modeltest.Play(t, func(r *modeltest.Request) modeltest.Turn {
				if r.Header.Get("Authorization") != "Bearer "+secretKey {
					return modeltest.Turn{Fault: modeltest.Status(401, `{"error":{"message":"no","code":"invalid_api_key"}}`)}
				}
				return modeltest.Turn{Text: "It is here."}
			})

			kept := "sk-old"
			models := model.New(model.Deps{
				Secret: func(context.Context, config.Token) (string, error) { return kept, nil },
				Forget: func() { kept = c.manager },
				Lookup: func(string) (string, bool) { return "", false },
				Wait:   func(context.Context, time.Duration) bool { t.Error("it waited"); return true },
			})
			client, err := models.Open(t.Context(), &config.Model{Provider: config.OpenAI, Model: "m", Token: key, BaseURL: s.URL})
			if err != nil {
				t.Fatal(err)
			}

			a, err := client.Answer(t.Context(), &model.Request{Messages: question("Where is it?")}, func(model.Event) {})
			failed := (*model.Error)(nil)
			errors.As(err, &failed)
			switch {
			case c.kind == "" && (err != nil || a.Message.Text() != "It is here."):
				t.Errorf("%v", err)
			case c.kind != "" && (failed == nil || failed.Kind != c.kind):
				t.Errorf("%v, want %s", err, c.kind)
			}
			if got := len(s.Requests()); got != c.asked {
				t.Errorf("asked %d times, want %d", got, c.asked)
			}
		})
	}
}

func TestProviderError_namesTheMissingSetting(t *testing.T) {
	t.Parallel()
	models := model.New(model.Deps{
		Secret: func(context.Context, config.Token) (string, error) {
			return "", errors.New("environment variable X is not set")
		},
		Lookup:      func(string) (string, bool) { return "", false },
		GoogleToken: func(context.Context, string) (string, error) { return "", nil },
	})
	for _, tt := range []struct {
		m    config.Model
		want string
	}{
		{config.Model{Provider: config.OpenAI, Model: "m"}, "OPENAI_API_KEY"},
		{config.Model{Provider: config.OpenAI, Model: "m", Token: &config.Token{Env: "X"}}, "environment variable X is not set"},
		{config.Model{Provider: config.Anthropic, Model: "m"}, "ANTHROPIC_API_KEY"},
		{config.Model{Provider: config.Azure, Model: "m"}, "AZURE_RESOURCE_NAME"},
		{config.Model{Provider: config.GoogleVertex, Model: "m"}, "GOOGLE_VERTEX_PROJECT"},
		{config.Model{Provider: config.AmazonBedrock, Model: "m"}, "AWS_REGION"},
		{config.Model{Provider: "nobody", Model: "m"}, "lacks"},
	} {
		_, err := models.Open(t.Context(), &tt.m)
		if e := (*model.Error)(nil); !errors.As(err, &e) || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "said") || strings.Contains(err.Error(), "refused") {
			t.Errorf("%s: %v, want %q", tt.m.Provider, err, tt.want)
		}
	}
}
