package ask

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/cluster/config"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/node/model"
	"github.com/shoalsearch/shoal/node/tool"
)

// NoModel is the error message if the configuration has no language model.
const NoModel = `No language model is configured. Add one to "models" in the configuration, for example {"provider": "openai", "model": "gpt-5", "token": {"env": "OPENAI_API_KEY"}}.`

// models gives access to the language models of the configuration in force.
type models struct {
	gate    *account.Gate
	view    func() *catalog.View
	clients *model.Models
	now     func() time.Time
}

// Models lists the configured language models in the configuration's order; the first is the
// default. It checks that the credentials are available, but calls no model.
func (l *models) Models(ctx context.Context, v catalog.Viewer) ([]tool.Model, error) {
	configured, err := l.configuredModels(v)
	if err != nil {
		return nil, err
	}

	// A credential may come from a remote secret manager: do not wait long for it.
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()

	out := make([]tool.Model, len(configured))
	for i := range configured {
		m := &configured[i]
		// Usable is about this node: each node reads its own variables and files.
		_, err := l.clients.Open(ctx, m)
		out[i] = tool.Model{Provider: string(m.Provider), Model: m.Model, DisplayName: m.DisplayName, Usable: err == nil}
	}
	return out, nil
}

// configuredModels returns the models of the configuration in force.
func (l *models) configuredModels(v catalog.Viewer) ([]config.Model, error) {
	seen, err := l.gate.Repos(v)
	if err != nil {
		return nil, err
	}
	return seen.View.File().Models, nil
}

// HasModel reports whether a model is configured at all.
func (l *models) HasModel() bool { return len(l.view().File().Models) > 0 }

// ModelCheck is the result of calling a model.
type ModelCheck struct {
	Provider     string        `json:"provider"`
	Model        string        `json:"model"`
	OK           bool          `json:"ok"`                  // it answered and called the tool
	Problem      string        `json:"problem,omitzero"`    // if not OK
	Took         time.Duration `json:"tookMs,format:milli"` // whole milliseconds
	InputTokens  int           `json:"inputTokens"`
	OutputTokens int           `json:"outputTokens"`
}

// CheckModels calls each configured model once from this node, with a small tool to call.
func (l *models) CheckModels(ctx context.Context, _ account.Owner) ([]ModelCheck, error) {
	configured := l.view().File().Models
	if len(configured) == 0 {
		// The request is valid, but the configuration lacks models.
		return nil, call.Fail(call.ErrUnable, "%s", NoModel)
	}

	out := make([]ModelCheck, len(configured))
	for i := range configured {
		m := &configured[i]
		began := l.now()
		usage, err := l.tryToolCall(ctx, m)

		out[i] = ModelCheck{
			Provider: string(m.Provider), Model: m.Model, OK: err == nil,
			Took: l.now().Sub(began).Truncate(time.Millisecond), InputTokens: usage.Input, OutputTokens: usage.Output,
		}

		// A failing model is a result; the check itself succeeds.
		if err != nil {
			out[i].Problem = err.Error()
		}
	}
	return out, nil
}

const checkTime = 45 * time.Second

// tryToolCall asks a model to call a tool. It returns an error if the model does not answer or calls no
// tool.
func (l *models) tryToolCall(ctx context.Context, m *config.Model) (model.Usage, error) {
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()

	// Without its credentials the model is not called at all.
	c, err := l.clients.Open(ctx, m)
	if err != nil {
		return model.Usage{}, err
	}
	// Offer a tool: ask_codebase needs a model that calls tools.
	answer, err := c.Answer(ctx, &model.Request{
		System: []string{"This is a test of the connection."},
		Tools: []model.Tool{{Name: "ready", About: "Tells that the model is ready.", Schema: json.RawMessage(
			`{"type":"object","properties":{"word":{"type":"string"}},"required":["word"],"additionalProperties":false}`)}},
		Messages: []model.Message{{Role: model.User, Parts: []model.Part{{Text: `Call the tool ready with the word "yes". Say nothing else.`}}}},
	}, func(model.Event) {})

	switch {
	// Check the timeout first: the call's own error only says that it was cancelled.
	case ctx.Err() != nil:
		return model.Usage{}, fmt.Errorf("no answer within %v", checkTime)
	case err != nil:
		return model.Usage{}, err
	case len(answer.Message.Calls()) == 0:
		return answer.Usage, fmt.Errorf("it answers, but calls no tools: questions about code need a model that does. It said: %.100q", strings.TrimSpace(answer.Message.Text()))
	}
	return answer.Usage, nil
}

// isConfigured reports whether the configuration has the model.
func (l *models) isConfigured(name ModelName) bool {
	return slices.ContainsFunc(l.view().File().Models, func(m config.Model) bool {
		return string(m.Provider) == name.Provider && m.Model == name.Model
	})
}

// chooseModel returns the model for a question.
func (l *models) chooseModel(v catalog.Viewer, want ModelName) (*config.Model, error) {
	models, err := l.configuredModels(v)
	if err != nil {
		return nil, err
	}
	if len(models) == 0 {
		return nil, call.Fail(call.ErrInvalid, "%s", NoModel)
	}
	// The first configured model is the default.
	if want == (ModelName{}) {
		return &models[0], nil
	}

	// Without a provider the name must be unique, or the bill could go to the wrong provider.
	var fits []*config.Model
	names := make([]string, len(models))
	for i := range models {
		m := &models[i]
		names[i] = string(m.Provider) + "/" + m.Model
		if m.Model == want.Model && (want.Provider == "" || want.Provider == string(m.Provider)) {
			fits = append(fits, m)
		}
	}
	// A model may be configured twice with different settings: the first one counts.
	if len(fits) == 1 || len(fits) > 1 && want.Provider != "" {
		return fits[0], nil
	}

	names[0] += " (default)"
	name := strings.TrimPrefix(want.Provider+"/"+want.Model, "/")
	return nil, call.Fail(call.ErrInvalid, "languageModel: %q is not configured, or more than once. Configured: %s.", name, strings.Join(names, ", "))
}
