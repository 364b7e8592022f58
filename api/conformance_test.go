package api

//lint:file-ignore SA1019 the suite asks older revisions for what newer ones have deprecated

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/shoalsearch/shoal/api/mcp"
)

// TestMCPServer_passesTheOfficialConformanceSuite runs the protocol's official suite against the suite's own tools, served like
// the product's: through the bridge, stateless. SHOAL_CONFORMANCE is the suite's program.
// SHOAL_CONFORMANCE_EXPECTED is a file with expected failures: features of older revisions that
// need sessions. .ci/test-mcp sets both.
func TestMCPServer_passesTheOfficialConformanceSuite(t *testing.T) {
	suite := os.Getenv("SHOAL_CONFORMANCE")
	if suite == "" {
		t.Skip("SHOAL_CONFORMANCE does not name the suite's program: see .ci/test-mcp")
	}
	s := start(t, (&fake{guests: true}).parts(), serveFixtures)
	url := "http://" + s.Addr().String() + "/api/mcp"
	for _, args := range [][]string{
		{"--requirements", "2026-07-28"},
		{"--requirements", "2025-11-25", "--expected-failures", os.Getenv("SHOAL_CONFORMANCE_EXPECTED")},
	} {
		revision := args[1]
		args = append([]string{"server", "--url", url}, args...)
		cmd := exec.CommandContext(t.Context(), suite, args...)
		cmd.Dir = t.TempDir() // it writes its results there
		out, err := cmd.CombinedOutput()
		t.Logf("%s\n%s", revision, summary(out))
		if err != nil {
			t.Errorf("%s: %v\n%s", revision, err, out)
		}

		// The suite does not count failures in extensions of the newest revision and in its new
		// checks. This test does.
		if revision == "2026-07-28" && bytes.Contains(out, []byte("✗ ")) {
			t.Errorf("%s: not all scenarios pass, also of those that the suite does not count\n%s", revision, out)
		}
	}
}

// summary returns the suite's output from its summary on.
func summary(out []byte) []byte {
	if i := bytes.Index(out, []byte("=== SUMMARY ===")); i >= 0 {
		return out[i:]
	}
	return out
}

// serveFixtures replaces the product's tools by the suite's.
func serveFixtures(o *Options) {
	o.tools = mcp.Mount(fixtures(), &fixtureTasks{tasks: map[string]*fixtureTask{}}, slog.New(slog.DiscardHandler))
}

// red is an image of one pixel, silence a sound without samples.
var red, silence = unBase64("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="),
	unBase64("UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA=")

func unBase64(s string) []byte {
	b, err := base64.StdEncoding.DecodeString(s)
	if err != nil {
		panic(err)
	}
	return b
}

// fixtures returns a server with the tools, resources and prompts that the suite uses by name.
func fixtures() *sdk.Server {
	offers := &sdk.ServerCapabilities{Logging: &sdk.LoggingCapabilities{}}
	offers.AddExtension(mcp.TasksExtension, nil)
	s := sdk.NewServer(&sdk.Implementation{Name: "shoal-conformance", Version: "1"}, &sdk.ServerOptions{
		CompletionHandler: func(context.Context, *sdk.CompleteRequest) (*sdk.CompleteResult, error) {
			return &sdk.CompleteResult{Completion: sdk.CompletionResultDetails{Values: []string{}}}, nil
		},
		Capabilities:       offers,
		SubscribeHandler:   func(context.Context, *sdk.SubscribeRequest) error { return nil },
		UnsubscribeHandler: func(context.Context, *sdk.UnsubscribeRequest) error { return nil },
	})
	resource := func(uri string) *sdk.EmbeddedResource {
		return &sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: uri, MIMEType: "text/plain", Text: "This is an embedded resource"}}
	}
	for name, content := range map[string][]sdk.Content{
		"test_simple_text":            {&sdk.TextContent{Text: "This is a simple text response for testing."}},
		"test_image_content":          {&sdk.ImageContent{Data: red, MIMEType: "image/png"}},
		"test_audio_content":          {&sdk.AudioContent{Data: silence, MIMEType: "audio/wav"}},
		"test_embedded_resource":      {resource("test://embedded-resource")},
		"test_multiple_content_types": {&sdk.TextContent{Text: "some text"}, &sdk.ImageContent{Data: red, MIMEType: "image/png"}, resource("test://embedded-in-multiple")},
		"test_streaming_elicitation":  {&sdk.TextContent{Text: "nothing was asked"}},
		"json_schema_2020_12_tool":    {&sdk.TextContent{Text: "called"}},
		"test_x_mcp_header":           {&sdk.TextContent{Text: "called"}},
	} {
		fixtureTool(s, name, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return &sdk.CallToolResult{Content: content}, nil
		})
	}
	fixtureTool(s, "test_error_handling", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{IsError: true, Content: []sdk.Content{&sdk.TextContent{Text: "this tool fails on purpose"}}}, nil
	})
	noticeTools(s)
	inputTools(s)
	taskTools(s)
	fixtureResources(s)
	fixturePrompts(s)
	return s
}

// schemas are the schemas that the suite checks; all other tools take any object.
var schemas = map[string]string{
	"json_schema_2020_12_tool": `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object",
		"$defs":{"address":{"$anchor":"addressDef","type":"object","properties":{"street":{"type":"string"},"city":{"type":"string"}}}},
		"properties":{"name":{"type":"string"},"address":{"$ref":"#/$defs/address"},"contactMethod":{"type":"string","enum":["phone","email"]},"phone":{"type":"string"},"email":{"type":"string"}},
		"allOf":[{"anyOf":[{"required":["phone"]},{"required":["email"]}]}],
		"if":{"properties":{"contactMethod":{"const":"phone"}},"required":["contactMethod"]},"then":{"required":["phone"]},"else":{"required":["email"]},
		"additionalProperties":false}`,
	"test_x_mcp_header": `{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"},"level":{"type":"integer"}}}`,
}

func fixtureTool(s *sdk.Server, name string, h sdk.ToolHandler) {
	schema := schemas[name]
	if schema == "" {
		schema = `{"type":"object"}`
	}
	s.AddTool(&sdk.Tool{Name: name, Description: "A tool of the conformance suite.", InputSchema: json.RawMessage(schema)}, h)
}

func said(format string, args ...any) (*sdk.CallToolResult, error) {
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: fmt.Sprintf(format, args...)}}}, nil
}

// noticeTools adds tools that send notifications during a call, or to listeners for changes.
func noticeTools(s *sdk.Server) {
	fixtureTool(s, "test_tool_with_progress", func(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		token := req.Params.GetProgressToken()
		for _, done := range []float64{0, 50, 100} {
			if err := req.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: token, Progress: done, Total: 100}); err != nil {
				return nil, err
			}
		}
		return said("%v", token)
	})
	logs := func(texts ...string) sdk.ToolHandler {
		return func(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			for _, text := range texts {
				if err := req.Session.Log(ctx, &sdk.LoggingMessageParams{Level: "info", Data: text}); err != nil {
					return nil, err
				}
			}
			return said("logged")
		}
	}
	fixtureTool(s, "test_tool_with_logging", logs("Tool execution started", "Tool processing data", "Tool execution completed"))
	fixtureTool(s, "test_logging_tool", logs("called"))
	fixtureTool(s, "test_missing_capability", func(_ context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		if caps := req.ClientCapabilities(); caps != nil && caps.Sampling != nil {
			return said("the client can sample")
		}
		return nil, &jsonrpc.Error{Code: sdk.CodeMissingRequiredClientCapabilities, Message: "the client has to be able to sample", Data: json.RawMessage(`{"requiredCapabilities":{"sampling":{}}}`)}
	})
	fixtureTool(s, "test_trigger_tool_change", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		fixtureTool(s, "transient", logs())
		return said("published")
	})
	fixtureTool(s, "test_trigger_prompt_change", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		s.AddPrompt(&sdk.Prompt{Name: "transient", Description: "A prompt of the conformance suite."}, func(context.Context, *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
			return &sdk.GetPromptResult{}, nil
		})
		return said("published")
	})
}

// property returns the schema of an object with one member.
func property(name, kind string) map[string]any {
	return map[string]any{"type": "object", "properties": map[string]any{name: map[string]any{"type": kind}}, "required": []string{name}}
}

var (
	askName     = &sdk.ElicitParams{Message: "What is your name?", RequestedSchema: property("name", "string")}
	askColor    = &sdk.ElicitParams{Message: "What is your favorite color?", RequestedSchema: property("color", "string")}
	askConfirm  = &sdk.ElicitParams{Message: "Please confirm", RequestedSchema: property("ok", "boolean")}
	askGreeting = &sdk.CreateMessageParams{MaxTokens: 50, Messages: []*sdk.SamplingMessage{{Role: "user", Content: &sdk.TextContent{Text: "Greet somebody."}}}}
)

// accepted returns what the user filled in; nil for nothing.
func accepted(p sdk.InputResponseMap, name string) map[string]any {
	if r, ok := p[name].(*sdk.ElicitResult); ok && r != nil && r.Action == "accept" {
		return r.Content
	}
	return nil
}

// sampled returns the text of the client's model.
func sampled(p sdk.InputResponseMap, name string) string {
	r, ok := p[name].(*sdk.CreateMessageWithToolsResult)
	if !ok || r == nil {
		return ""
	}
	for _, c := range r.Content {
		if text, ok := c.(*sdk.TextContent); ok {
			return text.Text
		}
	}
	return "no text"
}

// asking returns a result that asks the client for more.
func asking(state string, requests sdk.InputRequestMap) (*sdk.CallToolResult, error) {
	return &sdk.CallToolResult{InputRequests: requests, RequestState: state}, nil
}

// inputTools adds tools that ask the client for more input. The client sends their state back.
func inputTools(s *sdk.Server) {
	tool := func(name string, h func(p *sdk.CallToolParamsRaw, caps *sdk.ClientCapabilities) (*sdk.CallToolResult, error)) {
		fixtureTool(s, "test_input_required_result_"+name, func(_ context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return h(req.Params, req.ClientCapabilities())
		})
	}
	tool("elicitation", func(p *sdk.CallToolParamsRaw, _ *sdk.ClientCapabilities) (*sdk.CallToolResult, error) {
		if name, _ := accepted(p.InputResponses, "user_name")["name"].(string); name != "" {
			return said("Hello, %s!", name)
		}
		return asking("", sdk.InputRequestMap{"user_name": askName})
	})
	tool("sampling", func(p *sdk.CallToolParamsRaw, _ *sdk.ClientCapabilities) (*sdk.CallToolResult, error) {
		if text := sampled(p.InputResponses, "capital_question"); text != "" {
			return said("The model says: %s", text)
		}
		return asking("", sdk.InputRequestMap{"capital_question": askGreeting})
	})
	tool("list_roots", func(p *sdk.CallToolParamsRaw, _ *sdk.ClientCapabilities) (*sdk.CallToolResult, error) {
		if r, ok := p.InputResponses["client_roots"].(*sdk.ListRootsResult); ok && r != nil {
			return said("%d roots", len(r.Roots))
		}
		return asking("", sdk.InputRequestMap{"client_roots": &sdk.ListRootsParams{}})
	})
	confirm := func(p *sdk.CallToolParamsRaw, _ *sdk.ClientCapabilities) (*sdk.CallToolResult, error) {
		if p.RequestState != "" && p.RequestState != "minted" {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "invalid requestState"}
		}
		if p.RequestState != "" && accepted(p.InputResponses, "confirm") != nil {
			return said("state-ok: confirmed")
		}
		return asking("minted", sdk.InputRequestMap{"confirm": askConfirm})
	}
	tool("request_state", confirm)
	tool("tampered_state", confirm)
	tool("multiple_inputs", func(p *sdk.CallToolParamsRaw, _ *sdk.ClientCapabilities) (*sdk.CallToolResult, error) {
		name, _ := accepted(p.InputResponses, "user_name")["name"].(string)
		greeting := sampled(p.InputResponses, "greeting")
		if roots, ok := p.InputResponses["client_roots"].(*sdk.ListRootsResult); ok && roots != nil && name != "" && greeting != "" {
			return said("%s %s, %d roots", greeting, name, len(roots.Roots))
		}
		return asking("multiple", sdk.InputRequestMap{"user_name": askName, "greeting": askGreeting, "client_roots": &sdk.ListRootsParams{}})
	})
	tool("multi_round", func(p *sdk.CallToolParamsRaw, _ *sdk.ClientCapabilities) (*sdk.CallToolResult, error) {
		name, second := strings.CutPrefix(p.RequestState, "2 ")
		switch {
		case p.RequestState == "":
			return asking("1", sdk.InputRequestMap{"step1": askName})
		case !second:
			return asking(fmt.Sprintf("2 %v", accepted(p.InputResponses, "step1")["name"]), sdk.InputRequestMap{"step2": askColor})
		}
		return said("%s likes %v", name, accepted(p.InputResponses, "step2")["color"])
	})
	tool("capabilities", func(p *sdk.CallToolParamsRaw, caps *sdk.ClientCapabilities) (*sdk.CallToolResult, error) {
		if len(p.InputResponses) > 0 || caps == nil {
			return said("done")
		}
		requests := sdk.InputRequestMap{}
		if caps.Elicitation != nil {
			requests["user_name"] = askName
		}
		if caps.Sampling != nil {
			requests["greeting"] = askGreeting
		}
		if caps.RootsV2 != nil {
			requests["client_roots"] = &sdk.ListRootsParams{}
		}
		if len(requests) == 0 {
			return said("the client can answer nothing")
		}
		return asking("", requests)
	})
}

func fixtureResources(s *sdk.Server) {
	for uri, contents := range map[string]*sdk.ResourceContents{
		"test://static-text":      {MIMEType: "text/plain", Text: "This is the content of the static text resource."},
		"test://static-binary":    {MIMEType: "image/png", Blob: red},
		"test://watched-resource": {MIMEType: "text/plain", Text: "watched"},
	} {
		contents.URI = uri
		s.AddResource(&sdk.Resource{Name: strings.TrimPrefix(uri, "test://"), URI: uri, MIMEType: contents.MIMEType},
			func(context.Context, *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
				return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{contents}}, nil
			})
	}
	s.AddResourceTemplate(&sdk.ResourceTemplate{Name: "template", MIMEType: "application/json", URITemplate: "test://template/{id}/data"},
		func(_ context.Context, req *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
			id := strings.TrimSuffix(strings.TrimPrefix(req.Params.URI, "test://template/"), "/data")
			text := fmt.Sprintf(`{"id":%q,"templateTest":true,"data":"Data for ID: %s"}`, id, id)
			return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: req.Params.URI, MIMEType: "application/json", Text: text}}}, nil
		})
}

func fixturePrompts(s *sdk.Server) {
	prompt := func(name string, arguments []string, messages func(args map[string]string) []sdk.Content) {
		p := &sdk.Prompt{Name: name, Description: "A prompt of the conformance suite."}
		for _, a := range arguments {
			p.Arguments = append(p.Arguments, &sdk.PromptArgument{Name: a, Description: "any text", Required: true})
		}
		s.AddPrompt(p, func(_ context.Context, req *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
			r := &sdk.GetPromptResult{}
			for _, c := range messages(req.Params.Arguments) {
				r.Messages = append(r.Messages, &sdk.PromptMessage{Role: "user", Content: c})
			}
			return r, nil
		})
	}
	prompt("test_simple_prompt", nil, func(map[string]string) []sdk.Content {
		return []sdk.Content{&sdk.TextContent{Text: "This is a simple prompt for testing."}}
	})
	prompt("test_prompt_with_arguments", []string{"arg1", "arg2"}, func(a map[string]string) []sdk.Content {
		return []sdk.Content{&sdk.TextContent{Text: fmt.Sprintf("Prompt with arguments: arg1='%s', arg2='%s'", a["arg1"], a["arg2"])}}
	})
	prompt("test_prompt_with_embedded_resource", []string{"resourceUri"}, func(a map[string]string) []sdk.Content {
		return []sdk.Content{
			&sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: a["resourceUri"], MIMEType: "text/plain", Text: "Embedded resource content for testing."}},
			&sdk.TextContent{Text: "Please process the embedded resource above."},
		}
	})
	prompt("test_prompt_with_image", nil, func(map[string]string) []sdk.Content {
		return []sdk.Content{&sdk.ImageContent{Data: red, MIMEType: "image/png"}, &sdk.TextContent{Text: "Please analyze the image above."}}
	})
	s.AddPrompt(&sdk.Prompt{Name: "test_input_required_result_prompt", Description: "A prompt of the conformance suite."}, func(_ context.Context, req *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
		if given := accepted(req.Params.InputResponses, "user_context"); given != nil {
			return &sdk.GetPromptResult{Messages: []*sdk.PromptMessage{{Role: "user", Content: &sdk.TextContent{Text: fmt.Sprintf("Context: %v", given["context"])}}}}, nil
		}
		ask := &sdk.ElicitParams{Message: "Please provide context", RequestedSchema: property("context", "string")}
		return &sdk.GetPromptResult{InputRequests: sdk.InputRequestMap{"user_context": ask}}, nil
	})
}

// The suite's server is mounted like the product's. Otherwise the suite would test another
// server.
func TestConformanceServer_isMountedLikeTheProductsServer(t *testing.T) {
	t.Parallel()
	s := start(t, (&fake{}).parts(), serveFixtures)
	session := connect(t, s, memberKey, "2026-07-28", nil)
	r, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: "test_simple_text"})
	if err != nil || r.IsError || !strings.Contains(textOf(t, r), "simple text") {
		t.Fatalf("%+v %v", r, err)
	}
}
