package browser

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// patience is how long a page may take before a test fails.
const patience = 60 * time.Second

// chromium starts the browser of a test, or leaves the test out.
func chromium(t testing.TB) context.Context {
	t.Helper()
	program := os.Getenv("SHOAL_TEST_CHROMIUM")
	if program == "" {
		t.Skip("NOT RUN: no Chromium is named by SHOAL_TEST_CHROMIUM (make test-web names it)")
	}
	ctx, stop := chromedp.NewExecAllocator(context.Background(), append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(program), chromedp.NoSandbox, chromedp.Flag("disable-gpu", true), chromedp.WSURLReadTimeout(patience))...)
	t.Cleanup(stop)
	ctx, end := chromedp.NewContext(ctx)
	t.Cleanup(end)
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("start %s: %v", program, err)
	}
	return ctx
}

// tab is one tab of the browser, with cookies and storage of its own.
type tab struct {
	t    testing.TB
	ctx  context.Context
	base string

	mu      sync.Mutex
	trouble []trouble
	pages   map[string]bool // addresses of whole pages: their status is told by status
	status  int64
}

// watcher collects what the policy of a page has to report, from its first byte.
const watcher = `window.reports = []; window.addEventListener('securitypolicyviolation', e => reports.push(e.violatedDirective + ' ' + e.blockedURI + ' ' + e.sample));`

// open opens a tab. key is the API key that it sends, "" for a guest.
func (s *site) open(t testing.TB, key string) *tab {
	t.Helper()
	ctx, end := chromedp.NewContext(s.chromium, chromedp.WithNewBrowserContext())
	t.Cleanup(end)
	b := &tab{t: t, ctx: ctx, base: s.url, pages: map[string]bool{}}
	b.must(chromedp.Listen(ctx, b.heard))
	b.must(call(ctx, log.Enable, cdp.Empty{}), call(ctx, network.Enable, network.EnableParams{}))
	b.must(call(ctx, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: watcher}))
	if key != "" {
		b.must(call(ctx, network.SetExtraHTTPHeaders, network.SetExtraHTTPHeadersParams{Headers: network.Headers{"Authorization": "Bearer " + key}}))
	}
	b.size(1280, 900)
	t.Cleanup(b.quiet)
	return b
}

// call runs a command of the protocol whose answer does not matter.
func call[P, R any](ctx context.Context, cmd cdp.Command[P, R], params P) error {
	_, err := chromedp.Call(ctx, cmd, params)
	return err
}

// trouble is what a page says that a good page does not.
type trouble struct {
	said   string
	source log.EntrySource
	url    string
}

// heard notes what a page says that a good page does not.
func (b *tab) heard(ev any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch ev := ev.(type) {
	case *runtime.EventExceptionThrown:
		said := "thrown: " + ev.ExceptionDetails.Text
		if e := ev.ExceptionDetails.Exception; e != nil {
			said += " " + e.Description
		}
		b.trouble = append(b.trouble, trouble{said, "", ""})
	case *log.EventEntryAdded:
		if ev.Entry.Level == "error" {
			b.trouble = append(b.trouble, trouble{ev.Entry.Text, ev.Entry.Source, ev.Entry.URL})
		}
	case *network.EventResponseReceived:
		if ev.Type == network.ResourceTypeDocument {
			b.status, b.pages[ev.Response.URL] = ev.Response.Status, true
		}
	}
}

// quiet fails the test where a page had anything to say.
func (b *tab) quiet() {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, w := range b.trouble {
		if w.source != "network" || !b.pages[w.url] {
			b.t.Errorf("a page says: %s: %s (%s)", w.source, w.said, w.url)
		}
	}
	b.trouble = nil
}

func (b *tab) must(errs ...error) {
	b.t.Helper()
	for _, err := range errs {
		if err != nil {
			b.t.Fatal(err)
		}
	}
}

// do runs steps, for as long as a page may take.
func (b *tab) do(what string, steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		b.t.Fatalf("%s: %v\n%s", what, err, b.state())
	}
}

// state is what the tab shows, for the message of a failure.
func (b *tab) state() string {
	ctx, cancel := context.WithTimeout(b.ctx, 5*time.Second)
	defer cancel()
	s, err := chromedp.Run(ctx, chromedp.Evaluate[string](`location.href + ' ' + JSON.stringify(document.documentElement.dataset) + ' focus on ' + (document.activeElement ? document.activeElement.outerHTML.slice(0, 200) : '') + '\n' + document.body.innerText.slice(0, 600)`))
	if err != nil {
		return err.Error()
	}
	return s
}

// goTo opens an address of the site and waits until its scripts run. want is the
// status that it is to have.
func (b *tab) goTo(path string, want int64) {
	b.t.Helper()
	b.mu.Lock()
	b.status = 0
	b.mu.Unlock()
	b.do("open "+path, chromedp.Navigate(b.base+path))
	b.until("scripts of "+path, `document.readyState === 'complete' && document.documentElement.dataset.booted === '1'`)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.status != want {
		b.t.Errorf("%s has status %d, want %d", path, b.status, want)
	}
}

// until waits until an expression of the page holds.
func (b *tab) until(what, js string) {
	b.t.Helper()
	b.do("wait for "+what+": "+js, poll(js))
}

// poll tries an expression until it holds; while the tab goes to another page
// there is nothing to try it in.
func poll(js string) chromedp.Action[chromedp.Void] {
	return func(ctx context.Context, t *chromedp.Target) (none chromedp.Void, err error) {
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for {
			holds, err := chromedp.Evaluate[bool]("!!("+js+")")(ctx, t)
			if holds && err == nil {
				return none, nil
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
				return none, errors.Join(ctx.Err(), err)
			}
		}
	}
}

// eval is the value of an expression of the page, a promise awaited.
func eval[T any](b *tab, js string) T {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](js, chromedp.EvalAwaitPromise))
	if err != nil {
		b.t.Fatalf("%s: %v\n%s", js, err, b.state())
	}
	return v
}

// expect fails the test unless an expression of the page holds.
func (b *tab) expect(what, js string) {
	b.t.Helper()
	if !eval[bool](b, "!!("+js+")") {
		b.t.Errorf("%s: does not hold: %s\n%s", what, js, b.state())
	}
}

// named are keys by name, for press.
var named = map[string]string{
	"Tab": kb.Tab, "Enter": kb.Enter, "Escape": kb.Escape, "Down": kb.ArrowDown, "Up": kb.ArrowUp, "Space": " ",
	"Home": kb.Home, "End": kb.End, "Backspace": kb.Backspace, "Left": kb.ArrowLeft, "Right": kb.ArrowRight,
}

// press types keys one after another: names of named, Shift+, Alt+ or Ctrl+ before
// one of them, or a text as it stands.
func (b *tab) press(keys ...string) {
	b.t.Helper()
	for _, key := range keys {
		var modifiers []chromedp.KeyOption
		for name, m := range map[string]chromedp.Modifier{"Shift+": chromedp.ModifierShift, "Alt+": chromedp.ModifierAlt, "Ctrl+": chromedp.ModifierCtrl} {
			if rest, ok := strings.CutPrefix(key, name); ok && rest != "" {
				key, modifiers = rest, append(modifiers, chromedp.KeyModifiers(m))
			}
		}
		if k, ok := named[key]; ok && key != "Enter" {
			b.do("press "+key, chromedp.KeyEvent(k, modifiers...))
			continue
		}
		if len(modifiers) > 0 {
			b.do("press "+key, chromedp.KeyEvent(key, modifiers...))
			continue
		}
		for _, r := range strings.Replace(key, "Enter", "\r", 1) {
			b.strike(r)
		}
	}
}

// strike presses one key with a character as a keyboard does: what the page keeps
// from the key is not typed either.
func (b *tab) strike(r rune) {
	b.t.Helper()
	name, code := string(r), int64(unicode.ToUpper(r))
	if r == '\r' {
		name = "Enter"
	}

	// The numbers of signs are those of other keys: that of a point is Delete's.
	if unicode.IsPunct(r) || unicode.IsSymbol(r) {
		code = 0
	}
	event := input.DispatchKeyEventParams{Type: input.DispatchKeyEventTypeKeyDown, Key: name, Text: string(r), UnmodifiedText: string(r), WindowsVirtualKeyCode: code}
	b.must(call(b.ctx, input.DispatchKeyEvent, event))
	event.Type, event.Text, event.UnmodifiedText = input.DispatchKeyEventTypeKeyUp, "", ""
	b.must(call(b.ctx, input.DispatchKeyEvent, event))
}

func (b *tab) size(width, height int64) {
	b.t.Helper()
	b.do("set the size", chromedp.EmulateViewport(width, height))
}

// look is how a reader has set up the browser.
type look struct {
	name   string
	width  int64
	dark   bool
	forced bool
}

// looks are the ways in which each page is looked at; the first two make the
// short form.
var looks = []look{{name: "light", width: 1280}, {name: "phone", width: 390, dark: true}, {name: "dark", width: 1280, dark: true}, {name: "forced colours", width: 1280, forced: true}}

// wear gives a tab a look.
func (b *tab) wear(l look) {
	b.t.Helper()
	scheme, forced := "light", "none"
	if l.dark {
		scheme = "dark"
	}
	if l.forced {
		forced = "active"
	}
	b.size(l.width, 900)
	b.must(call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: scheme}, {Name: "forced-colors", Value: forced}, {Name: "prefers-reduced-motion", Value: "reduce"},
	}}))
}
