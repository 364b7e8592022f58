package markdown_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/api/web/markdown"
)

// A reader whose request ends stops waiting, even if the rendering hangs.
func TestRender_endsWhenItsRequestEnds(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	s, held := site(), make(chan struct{})
	defer close(held)
	s.Code = func(dst []byte, _ string, _ []byte) []byte {
		cancel()
		<-held
		return dst
	}
	if _, err := markdown.Render(ctx, []byte("```\nx\n```\n"), s); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want that the request has ended", err)
	}
}

// A panic of the renderer is an error of the document.
func TestRender_panicBecomesAnError(t *testing.T) {
	t.Parallel()
	s := site()
	s.File = func(string) string { panic("oh") }
	if _, err := markdown.Render(t.Context(), []byte("[a](b)"), s); !errors.Is(err, markdown.ErrForm) {
		t.Errorf("%v, want %v", err, markdown.ErrForm)
	}
}

// Many references to a long address cannot exceed the size limit.
func TestRender_limitsTheExpansionOfLinkReferences(t *testing.T) {
	t.Parallel()
	source := "[a]: https://example.com/" + strings.Repeat("x", 200<<10) + "\n\n" + strings.Repeat("[a] ", 60_000)
	if _, err := markdown.Render(t.Context(), []byte(source), site()); !errors.Is(err, markdown.ErrGrown) {
		t.Errorf("%v, want %v", err, markdown.ErrGrown)
	}
}
