package model_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/cluster/config"
	"github.com/shoalsearch/shoal/node/model"
	"github.com/shoalsearch/shoal/node/model/modeltest"
)

// one returns a model of each wire.
func one(name config.Provider) config.Model {
	for _, tt := range all {
		if tt.m.Provider == name {
			return tt.m
		}
	}
	return config.Model{}
}

var wires = []config.Provider{config.Mistral, config.OpenAI, config.Anthropic, config.GoogleGenerativeAI, config.AmazonBedrock}

// Each wire gets the refusals of the real services.
func TestProviderRefusals_getTheirErrorKind(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		status int
		body   string
		want   model.Kind
	}{
		{401, `{"error":{"message":"Incorrect API key provided","type":"invalid_request_error","code":"invalid_api_key"}}`, model.BadKey},
		{403, `{"type":"error","error":{"type":"permission_error","message":"no"}}`, model.BadKey},
		{402, `{"error":{"message":"Insufficient Balance"}}`, model.NoCredit},
		{429, `{"error":{"message":"You exceeded your current quota, please check your plan and billing details.","type":"insufficient_quota","code":"insufficient_quota"}}`, model.NoCredit},
		{404, `{"error":{"code":404,"message":"models/x is not found","status":"NOT_FOUND"}}`, model.NoModel},
		{400, `{"error":{"message":"This model's maximum context length is 128000 tokens.","type":"invalid_request_error","code":"context_length_exceeded"}}`, model.TooLong},
		{400, `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}`, model.TooLong},
		{400, `{"message":"Input is too long for requested model."}`, model.TooLong},
		{400, `{"error":{"message":"filtered","code":"content_filter"}}`, model.Filtered},
		{422, `{"detail":[{"loc":["body","messages"],"msg":"bad"}]}`, model.Refused},
		{413, `<html>too large</html>`, model.Refused},
		{307, ``, model.Refused},
	} {
		for _, wire := range wires {
			s := modeltest.Start(t, modeltest.Turn{Fault: modeltest.Status(tt.status, tt.body, "Location", "http://127.0.0.1:1/")})
			c, _ := opened(t, one(wire), s.URL)
			_, err := c.Answer(t.Context(), &model.Request{Messages: question("?")}, func(model.Event) {})
			if e := (*model.Error)(nil); !errors.As(err, &e) || e.Kind != tt.want || e.Status != tt.status {
				t.Errorf("%s %d %s: %v, want %s", wire, tt.status, tt.body, err, tt.want)
			}
			if n := len(s.Requests()); n != 1 {
				t.Errorf("%s %d: asked %d times, want once", wire, tt.status, n)
			}
		}
	}
}

// There are four tries in all, never sooner than the provider says.
func TestProviderRetry_waitsAsLongAsAnOverloadedProviderSays(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		status int
		body   string
		header string
		value  string
		least  time.Duration
	}{
		{429, `{"error":{"type":"rate_limit_error","message":"slow down"}}`, "Retry-After", "7", 7 * time.Second},
		{429, `{"error":{"message":"slow down"}}`, "Retry-After-Ms", "2500", 2500 * time.Millisecond},
		{429, `{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","message":"later","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"34.4s"}]}}`, "", "", 34400 * time.Millisecond},
		{529, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, "", "", time.Second},
		{500, `oops`, "", "", time.Second},
		{429, `{"message":"Too many requests"}`, "X-Amzn-Errortype", "ThrottlingException:http://x", time.Second},
	} {
		for _, wire := range wires {
			s := modeltest.Start(t, modeltest.Turn{Fault: modeltest.Status(tt.status, tt.body, tt.header, tt.value)})
			c, pauses := opened(t, one(wire), s.URL)
			notes := 0
			_, err := c.Answer(t.Context(), &model.Request{Messages: question("?")}, func(e model.Event) {
				if e.Note != "" && e.Again {
					notes++
				}
			})
			e := (*model.Error)(nil)
			if !errors.As(err, &e) || e.Tries != 4 || notes != 3 || len(s.Requests()) != 4 {
				t.Errorf("%s %d: %v, %d notes, %d requests", wire, tt.status, err, notes, len(s.Requests()))
			}
			for i, p := range *pauses {
				if p < tt.least || p > time.Minute || i > 0 && tt.least == time.Second && p < (*pauses)[i-1] {
					t.Errorf("%s %d: pauses %v, want at least %v", wire, tt.status, *pauses, tt.least)
				}
			}
		}
	}
}

// The partial answer is dropped.
func TestProviderRetry_discardsAPartialAnswer(t *testing.T) {
	t.Parallel()
	for _, wire := range wires {
		s := modeltest.Start(t, modeltest.Turn{Text: "half an answer", Fault: func(w http.ResponseWriter, stream []byte) { _, _ = w.Write(stream[:len(stream)*2/3]) }},
			modeltest.Turn{Text: "the answer"})
		c, _ := opened(t, one(wire), s.URL)
		var shown strings.Builder
		a, err := c.Answer(t.Context(), &model.Request{Messages: question("?")}, func(e model.Event) {
			if e.Again {
				shown.Reset()
			}
			shown.WriteString(e.Text)
		})
		if err != nil || a.Message.Text() != "the answer" || shown.String() != "the answer" {
			t.Errorf("%s: %v, shown %q", wire, err, shown.String())
		}
	}
}

// A service returns the key in its error, whole and shortened as services do.
func TestProviderErrors_neverContainTheKey(t *testing.T) {
	t.Parallel()
	for _, wire := range wires {
		s := modeltest.Start(t, modeltest.Turn{Fault: modeltest.Status(401, `{"error":{"message":"Incorrect API key `+secretKey+` provided: sk-p***************wxyz."}}`)})
		c, _ := opened(t, one(wire), s.URL)
		_, err := c.Answer(t.Context(), &model.Request{Messages: question("?")}, func(model.Event) {})
		if err == nil || strings.Contains(err.Error(), secretKey) || strings.Contains(err.Error(), "wxyz") || !strings.Contains(err.Error(), "[secret]") {
			t.Errorf("%s: %v", wire, err)
		}
	}
	c, _ := opened(t, one(config.OpenAICompatible), "http://"+secretKey+"@127.0.0.1:1/v1")
	if _, err := c.Answer(t.Context(), &model.Request{Messages: question("?")}, func(model.Event) {}); err == nil || strings.Contains(err.Error(), secretKey) {
		t.Errorf("unreachable: %v", err)
	}
}

// After a refusal the request is repeated without the parameter, and later requests omit it.
func TestRefusedParameter_isOmittedFromLaterRequests(t *testing.T) {
	t.Parallel()
	warm := 0.5
	for _, tt := range []struct {
		wire   config.Provider
		member string
		says   string
	}{
		{config.OpenAI, `"temperature"`, `{"error":{"message":"Unsupported parameter: 'temperature' is not supported with this model.","param":"temperature"}}`},
		{config.OpenAI, `"summary"`, `{"error":{"message":"Your organization must be verified to generate reasoning summaries.","param":"reasoning.summary"}}`},
		{config.OpenAI, `"reasoning"`, `{"error":{"message":"Unsupported parameter: 'reasoning.effort' is not supported with this model."}}`},
		{config.OpenAICompatible, `"stream_options"`, `{"error":{"message":"unknown field stream_options"}}`},
		{config.GoogleGenerativeAI, `"MINIMAL"`, `{"error":{"code":400,"message":"Thinking level MINIMAL is not supported for this model.","status":"INVALID_ARGUMENT"}}`},
		{config.Anthropic, `"temperature"`, `{"type":"error","error":{"type":"invalid_request_error","message":"temperature is deprecated for this model"}}`},
	} {
		s := modeltest.Play(t, func(r *modeltest.Request) modeltest.Turn {
			if strings.Contains(r.Raw, tt.member) {
				return modeltest.Turn{Fault: modeltest.Status(400, tt.says)}
			}
			return modeltest.Turn{Text: "ok"}
		})
		m := one(tt.wire)
		m.Temperature, m.ThinkingLevel = &warm, "minimal"
		c, _ := opened(t, m, s.URL)
		for range 2 {
			r := &model.Request{Messages: question("?")}
			if tt.wire == config.Anthropic {
				r.MaxOutput = 100 // too small for thinking
			}
			if _, err := c.Answer(t.Context(), r, func(model.Event) {}); err != nil {
				t.Errorf("%s %s: %v", tt.wire, tt.member, err)
			}
		}
		if n := len(s.Requests()); n != 3 {
			t.Errorf("%s %s: %d requests, want 3", tt.wire, tt.member, n)
		}
	}
}

// raw answers every request with these bytes.
func raw(stream string) modeltest.Turn {
	return modeltest.Turn{Fault: func(w http.ResponseWriter, _ []byte) { _, _ = io.WriteString(w, stream) }}
}

// These errors come after a status of 200.
func TestModelStream_errorAfterStatus200IsReported(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		wire   config.Provider
		stream string
		want   model.Kind
	}{
		{config.OpenRouter, "data: {\"error\":{\"code\":429,\"message\":\"upstream busy\"},\"choices\":[{\"delta\":{},\"finish_reason\":\"error\"}]}\n\n", model.Limited},
		{config.DeepSeek, "data: {\"choices\":[{\"delta\":{\"content\":\"a\"},\"finish_reason\":\"insufficient_system_resource\"}]}\n\ndata: [DONE]\n\n", model.Overloaded},
		{config.Anthropic, "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n", model.Overloaded},
		{config.OpenAI, "event: error\ndata: {\"type\":\"error\",\"code\":\"rate_limit_exceeded\",\"message\":\"slow\",\"sequence_number\":0}\n\n", model.Limited},
		{config.OpenAI, "event: response.failed\ndata: {\"type\":\"response.failed\",\"response\":{\"error\":{\"code\":\"server_error\",\"message\":\"sorry\"}}}\n\n", model.Overloaded},
		{config.GoogleGenerativeAI, "data: {\"promptFeedback\":{\"blockReason\":\"SAFETY\"}}\n\n", model.Filtered},
		{config.GoogleGenerativeAI, "data: {\"candidates\":[{\"finishReason\":\"MALFORMED_FUNCTION_CALL\"}]}\n\n", model.Broken},
		{config.Mistral, "data: not json\n\n", model.Broken},
		{config.Mistral, "data: [DONE]\n\n", ""},
	} {
		s := modeltest.Start(t, raw(tt.stream))
		c, _ := opened(t, one(tt.wire), s.URL)
		_, err := c.Answer(t.Context(), &model.Request{Messages: question("?")}, func(model.Event) {})
		e := (*model.Error)(nil)
		if tt.want == "" && err != nil || tt.want != "" && (!errors.As(err, &e) || e.Kind != tt.want) {
			t.Errorf("%s %s: %v, want %q", tt.wire, tt.stream, err, tt.want)
		}
	}
}
