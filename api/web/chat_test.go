package web

import (
	"context"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/api/layout"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/ask"
	"github.com/shoalsearch/shoal/node/tool"
)

// none are chats that answer nothing.
type none = ask.Chats

// asked records the questions.
type asked struct {
	none
	got ask.Question
}

func (a *asked) Models(context.Context, catalog.Viewer) ([]tool.Model, error) {
	return []tool.Model{{Provider: "p", Model: "small"}, {Provider: "p", Model: "org/large", DisplayName: "Large"}}, nil
}
func (a *asked) HasModel() bool { return true }
func (a *asked) Chats(context.Context, catalog.Viewer, int, int) ([]ask.Chat, int, error) {
	return nil, 0, nil
}
func (a *asked) Chat(context.Context, catalog.Viewer, string) (*ask.Chat, error) {
	return &ask.Chat{ID: "1", Title: "How?", Mine: true, Turns: []ask.Report{{Query: "How?", Model: "p/org/large", Status: ask.Done, Answer: []ask.Piece{{Text: "So."}}}}}, nil
}

func (a *asked) Ask(_ context.Context, _ catalog.Viewer, q ask.Question) (*ask.Started, error) {
	a.got = q
	return &ask.Started{ID: "1"}, nil
}

// A name may contain a space; browsers end lines with \r\n.
func TestAskForm_acceptsRepositoryNamesWithSpaces(t *testing.T) {
	t.Parallel()
	for field, want := range map[string][]string{
		"dev.azure.com/acme/My Project/app":                      {"dev.azure.com/acme/My Project/app"},
		" dev.azure.com/acme/My Project/app \r\n\r\napp/lib\r\n": {"dev.azure.com/acme/My Project/app", "app/lib"},
		" \r\n": nil,
		"":      nil,
	} {
		a := &asked{}
		v := &layout.Visit{
			Method: "POST", Viewer: catalog.Operator(), Form: url.Values{"query": {"?"}, "repos": {field}},
			Sent: func(name string) string { return map[string]string{"Sec-Fetch-Site": "same-origin"}[name] },
		}
		if err := New(Deps{Chats: a, Now: time.Now}).conversations.chats(t.Context(), v); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(a.got.Repos, want) {
			t.Errorf("%q names %q, want %q", field, a.got.Repos, want)
		}
	}
}

// A model can be chosen, and another one for repeating the last question.
func TestAskPage_offersTheModels(t *testing.T) {
	t.Parallel()
	a := &asked{}
	p := New(Deps{Chats: a, Now: time.Now}).conversations
	visit := func(method string, form url.Values) *layout.Visit {
		return &layout.Visit{Method: method, Path: "/chat/1", Viewer: catalog.Operator(), Form: form, Status: 200, Sent: func(name string) string {
			return map[string]string{"Sec-Fetch-Site": "same-origin"}[name]
		}}
	}
	for path, page := range map[string]func(context.Context, *layout.Visit) error{"chats": p.chats, "chat": p.chat} {
		v := visit("GET", nil)
		if err := page(t.Context(), v); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(v.Body), `<option value="p/org/large"`) {
			t.Errorf("%s offers no model:\n%s", path, v.Body)
		}
		if again := strings.Contains(string(v.Body), "Ask again"); again != (path == "chat") {
			t.Errorf("%s: asks again: %v", path, again)
		}
		if err := page(t.Context(), visit("POST", url.Values{"do": {"ask"}, "query": {"?"}, "model": {"p/org/large"}})); err != nil {
			t.Fatal(err)
		}
		if want := (ask.ModelName{Provider: "p", Model: "org/large"}); a.got.Model != want {
			t.Errorf("%s asks %+v, want %+v", path, a.got.Model, want)
		}
	}
}

// After a failure the next model is offered, else the one that answered.
func TestAskPage_offersTheNextModelAfterAFailure(t *testing.T) {
	t.Parallel()
	list := []modelRow{{Value: "p/a"}, {Value: "p/b"}}
	for _, c := range []struct {
		model, want string
		status      ask.Status
	}{
		{"p/a", "p/b", ask.Failed}, {"p/b", "p/a", ask.Failed}, {"p/b", "p/b", ask.Stopped}, {"p/b", "p/b", ask.Done}, {"gone/c", "gone/c", ask.Failed},
	} {
		turn := chatTurn{Report: &ask.Report{Model: c.model, Status: c.status}}
		if got := turn.nextModel(list); got != c.want {
			t.Errorf("after %s of %s: %s, want %s", c.status, c.model, got, c.want)
		}
	}
}
