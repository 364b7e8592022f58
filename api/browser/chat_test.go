package browser

import (
	"fmt"
	"net/http"
	"path/filepath"
	"testing"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/ask"
	"github.com/shoalsearch/shoal/node/model/modeltest"
	"github.com/shoalsearch/shoal/node/nodetest"
)

// anAnswerIsSeenWhileItIsGiven asks in a browser: calls and text show as they
// come, markup in them is text, and in the end the page has the answer, without
// having been loaded again.
func anAnswerIsSeenWhileItIsGiven(t *testing.T, s *site) {
	t.Parallel()
	called, half := make(chan struct{}), make(chan struct{})
	model := modeltest.Play(t, func(r *modeltest.Request) modeltest.Turn {
		if r.Step == 0 {
			return modeltest.Turn{Text: "I shall look. ", Calls: []modeltest.Call{{ID: "a", Name: "grep", Arguments: `{"pattern":"<img src=x onerror=pwned()>"}`}}}
		}
		<-called
		return modeltest.Turn{Text: "It is <b>seven</b> @file:{local/app::a.go:3}. And that is all.", Fault: func(w http.ResponseWriter, stream []byte) {
			at := len(stream) / 2
			_, _ = w.Write(stream[:at]) // a browser that has gone does not wait for the rest
			w.(http.Flusher).Flush()
			<-half
			_, _ = w.Write(stream[at:])
		}}
	})
	dir := t.TempDir()
	nodetest.NewRepo(t, filepath.Join(dir, "app"), map[string]string{"a.go": "package a\n\nconst seven = 7\n"})
	n := nodetest.Start(t, nodetest.Config{
		File: fmt.Sprintf(`{"connections": {"all": {"type": "git", "url": "file://%s/*"}}, "models": [{"provider": "openai-compatible", "model": "scripted", "baseUrl": %q}]}`, dir, model.URL),
	})
	n.WaitIndexed(1)
	n.Wait("the model", func() error {
		if !n.Ask.HasModel() {
			return fmt.Errorf("there is none")
		}
		return nil
	})
	owner, err := n.Keys.CreateKey(t.Context(), account.Operator(), account.CreateKeyRequest{Name: "owner", Role: catalog.RoleOwner})
	if err != nil {
		t.Fatal(err)
	}
	viewer, err := n.Keys.Authenticate(t.Context(), owner.Key)
	if err != nil {
		t.Fatal(err)
	}
	started, err := n.Ask.Ask(t.Context(), viewer, ask.Question{Query: "What is seven?"})
	if err != nil {
		t.Fatal(err)
	}

	own := *s
	own.node, own.url = n, serve(t, n.Node)
	b := own.open(t, owner.Key)
	b.goTo("/chat/"+started.ID, 200)
	b.until("the call", `document.querySelector('.steps .call')?.textContent.includes('<img src=x')`)
	b.until("the next step", `document.querySelector('.doing').textContent === 'Step 2'`)
	b.expect("what the model said before it is no answer", `document.querySelector('.answer').textContent === ''`)
	eval[bool](b, `window.same = document.documentElement, true`)
	b.tabTo("#chat form button")
	close(called)
	b.until("half of the answer", `document.querySelector('.answer').textContent.startsWith('It is <b>')`)
	b.expect("it is being answered", `document.querySelector('[data-events]') && document.querySelector('.doing').textContent.startsWith('Step 2')`)
	close(half)
	b.until("the answer", `!document.querySelector('[data-events]') && document.querySelector('.answer')?.textContent.includes('that is all')`)
	b.expect("with its citation", `document.querySelector('.answer a.cite').getAttribute('href').startsWith('/browse/local/app@')`)
	b.until("and a further question, once the answer is kept", `document.querySelector('textarea[name=query]')`)
	b.expect("with the focus, whose button is gone", `document.activeElement.matches('#chat textarea[name=query]')`)
	b.expect("where it stood", `window.same === document.documentElement && !document.querySelector('#chat img, #chat b')`)
	b.expect("and it is said", `document.getElementById('status').textContent === 'The answer is complete.'`)

	b.tabTo("#chat a.cite")
	b.until("the lines of the source", `document.querySelector('#card:popover-open pre')?.textContent.trim()`)
	b.press("Escape")
	b.until("the card is closed", `!document.querySelector('#card:popover-open')`)

	// The site of the other pages has no model, and so no thread.
	t.Run("NoBarrier", func(t *testing.T) {
		axe := axeCore(t)
		for _, look := range looks {
			b.wear(look)
			for name, path := range map[string]string{"a thread": "/chat/" + started.ID, "questions where there is a model": "/chat"} {
				b.goTo(path, 200)
				b.reports(name)
				b.hasNoBarrier(name+", "+look.name, "html", axe)
			}
		}
	})
}
