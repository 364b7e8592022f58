package web

import (
	"context"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/api/layout"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/ask"
)

// none are chats that answer nothing.
type none = ask.Chats

// asked keeps what it was asked.
type asked struct {
	none
	got ask.Question
}

func (a *asked) Ask(_ context.Context, _ catalog.Viewer, q ask.Question) (*ask.Started, error) {
	a.got = q
	return &ask.Started{ID: "1"}, nil
}

// A name with a blank in it can be given whole; browsers end lines with both signs.
func TestTheFormOfQuestionsTakesNamesWithBlanks(t *testing.T) {
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
