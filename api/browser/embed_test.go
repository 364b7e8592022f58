package browser

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/shoalsearch/shoal/api"
)

// linesAreEmbedded: what the page of a file copies shows its lines within a page of
// a site that may, and of no other.
func linesAreEmbedded(t *testing.T, s *site) {
	t.Parallel()
	var frame string // that the pages of the wikis have
	wiki := func() string {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html; charset=utf-8")

			// A page that isolates itself shows nothing that does not agree to it.
			w.Header().Set("Cross-Origin-Embedder-Policy", "require-corp")
			fmt.Fprintf(w, "<!doctype html><html lang=en><title>Wiki</title><link rel=icon href=data:,><p>Notes</p>%s</html>", frame)
		}))
		t.Cleanup(srv.Close)
		return srv.URL
	}
	known, other := wiki(), wiki()
	lets := &site{chromium: s.chromium, url: serveAt(t, s.node.Node, "127.0.0.1:0", func(o *api.Options) { o.EmbedAncestors = []string{known} })}

	// The frame that a reader copies is one of the marked lines at this very commit.
	b := lets.open(t, "")
	b.goTo(browse(appRepo, "", "blob", "greet/greet.go")+"#L3-L6", 200)
	b.until("the button", `!document.getElementById('copyEmbed').hidden`)
	eval[bool](b, `navigator.clipboard.writeText = text => { window.copied = text; return Promise.resolve(); }, true`)
	b.click("#copyEmbed")
	b.until("a frame", `window.copied`)
	frame = eval[string](b, `window.copied`)
	at := "/embed/" + strings.TrimPrefix(browse(appRepo, s.app.Git("rev-parse", "HEAD"), "blob", "greet/greet.go"), "/browse/") + "?lines=3-6"
	if want := fmt.Sprintf(`<iframe src="%s%s" title="greet/greet.go" width="100%%" height="180" loading="lazy"></iframe>`, s.node.BaseURL(), at); frame != want {
		t.Fatalf("copied %s, want %s", frame, want)
	}

	// At the address of this door.
	frame = strings.Replace(frame, s.node.BaseURL(), lets.url, 1)
	b.do("open the wiki", chromedp.Navigate(known))
	text := `document.querySelector('.text').innerText`
	if got := inFrame(b, text); !strings.HasPrefix(got, "// Greeting is what one says to somebody.\nfunc Greeting(name string) string {\n") || strings.Contains(got, "Greeter") {
		t.Errorf("the frame shows %q", got)
	}
	if got := inFrame(b, `getComputedStyle(document.querySelector('.text .k')).color + ' ' + getComputedStyle(document.body).margin`); !strings.HasSuffix(got, " 0px") || strings.HasPrefix(got, "rgb(0, 0, 0)") {
		t.Errorf("the frame has no style: %s", got)
	}

	// Another site's page has an empty frame, and the browser says why.
	b.do("open the other wiki", chromedp.Navigate(other))
	if got := inFrame(b, `document.body.innerText`); strings.Contains(got, "Greeting") {
		t.Errorf("another site shows %q", got)
	}
	b.mu.Lock()
	if len(b.trouble) == 0 || !strings.Contains(b.trouble[0].said, "frame-ancestors") {
		t.Errorf("the browser says %v", b.trouble)
	}
	b.trouble = nil
	b.mu.Unlock()

	// By itself it is a page like others, for everybody.
	axe := axeCore(t)
	for _, l := range looks {
		b.wear(l)
		b.do("open "+at, chromedp.Navigate(lets.url+at))
		b.reports("embedded lines")
		b.hasNoBarrier("embedded lines, "+l.name, "html", axe)
	}
}

// inFrame is the text that an expression has in the only frame of a page, once that
// is loaded.
func inFrame(b *tab, js string) (text string) {
	b.t.Helper()
	b.do("wait for the frame: "+js, func(ctx context.Context, t *chromedp.Target) (none chromedp.Void, err error) {
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for {
			if text, err = tryFrame(b.ctx, js); err == nil {
				return none, nil
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
				return none, errors.Join(ctx.Err(), err)
			}
		}
	})
	return text
}

// tryFrame is inFrame where the frame is loaded, else an error.
func tryFrame(ctx context.Context, js string) (string, error) {
	tree, err := chromedp.Call(ctx, page.GetFrameTree, cdp.Empty{})
	if err != nil {
		return "", err
	}
	if n := len(tree.FrameTree.ChildFrames); n != 1 {
		return "", fmt.Errorf("the page has %d frames", n)
	}

	// The page that the frame begins with is gone a moment later, with what runs in it.
	world, err := chromedp.Call(ctx, page.CreateIsolatedWorld, page.CreateIsolatedWorldParams{FrameID: tree.FrameTree.ChildFrames[0].Frame.ID})
	if err != nil {
		return "", err
	}
	whole := fmt.Sprintf("if (document.readyState !== 'complete' || location.href === 'about:blank') throw new Error('not loaded'); String(%s)", js)
	got, err := chromedp.Call(ctx, runtime.Evaluate, runtime.EvaluateParams{Expression: whole, ContextID: world.ExecutionContextID})
	if err != nil {
		return "", err
	}
	if got.ExceptionDetails != nil {
		return "", errors.New(got.ExceptionDetails.Exception.Description)
	}

	var text string
	err = json.Unmarshal(got.Result.Value, &text)
	return text, err
}
