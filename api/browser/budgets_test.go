package browser

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/performance"
	"github.com/chromedp/chromedp"

	"github.com/shoalsearch/shoal/clock"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node"
	"github.com/shoalsearch/shoal/node/nodetest"
	"github.com/shoalsearch/shoal/node/search"
)

// TestPageBudgets_limitElementsAndBytes measures the pages and prints a table. It fails on what does not
// depend on the machine: elements and bytes. SHOAL_TEST_REPOS is a directory of
// repositories to measure with, SHOAL_TEST_NODES how many nodes there are.
func TestPageBudgets_limitElementsAndBytes(t *testing.T) {
	dir := os.Getenv("SHOAL_TEST_REPOS")
	if dir == "" {
		t.Skip("NOT RUN: SHOAL_TEST_REPOS names no directory of repositories (make test-web-budgets REPOS=... does)")
	}
	s := &site{chromium: chromium(t)}
	large := filepath.Join(t.TempDir(), "large")
	largeRepository(t, large)
	file, err := json.Marshal(map[string]any{"connections": map[string]any{
		"real":  map[string]any{"type": "git", "url": "file://" + dir + "/*"},
		"large": map[string]any{"type": "git", "url": "file://" + large},
	}, "settings": map[string]any{"maxFileSize": 8_000_000}})
	if err != nil {
		t.Fatal(err)
	}
	nodes, _ := strconv.Atoi(os.Getenv("SHOAL_TEST_NODES")) // one where it is not said
	s.node = cluster(t, nodes, nodetest.Config{File: string(file), Env: map[string]string{"FORCE_ENABLE_ANONYMOUS_ACCESS": "true"}, Edit: func(o *node.Options) { o.Ctags = "" }})
	// A file among the repositories is none of them.
	names, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	repos := slices.DeleteFunc(names, func(name string) bool {
		info, err := os.Stat(name)
		return err != nil || !info.IsDir()
	})
	if !nodetest.Eventually(20*time.Minute, func() bool { return s.node.Status().Repos.Indexed == len(repos)+1 }) {
		t.Fatalf("the repositories are not indexed: %+v", s.node.Status())
	}
	// What a cluster does once all is indexed, as copying, is no load of its pages.
	var since time.Time
	if !nodetest.Eventually(20*time.Minute, func() bool { return restsFor(quiet, &since, s.node.Status()) }) {
		t.Fatalf("the cluster has still something to do: %+v", s.node.Status())
	}
	s.url = serve(t, s.node.Node)

	fmt.Printf("\n| what | measured | budget |\n|---|---|---|\n")
	s.measureOthers(t)
	s.measureResults(t)
	s.measureMatches(t)
	s.measureFile(t)
}

// quiet is how long a cluster has to have nothing to do: which small repositories to put
// together it sees only now and then.
const quiet = 30 * time.Second

// restsFor reports whether all copies have been where they belong for a while, without
// a job that was left. It notes since when.
func restsFor(while time.Duration, since *time.Time, s *node.StatusResponse) bool {
	if s.Jobs.Pending+s.Jobs.Running+s.Placement.UnderReplicated+s.Placement.Moves > 0 {
		*since = time.Time{}
		return false
	}

	if since.IsZero() {
		*since = clock.Now()
	}
	return clock.Since(*since) >= while
}

// cluster is the first of so many nodes, of one at least.
func cluster(t *testing.T, nodes int, cfg nodetest.Config) *nodetest.Node {
	t.Helper()
	if nodes < 2 {
		return nodetest.Start(t, cfg)
	}
	return nodetest.StartFleet(t, nodes, cfg).Nodes[0]
}

// row prints a row of the table.
func row(what, measured, budget string, args ...any) {
	fmt.Printf("| %s | %s | %s |\n", what, fmt.Sprintf(measured, args...), budget)
}

// far makes a tab one of somebody on another machine: pages come compressed.
func (b *tab) far() {
	b.must(call(b.ctx, network.SetExtraHTTPHeaders, network.SetExtraHTTPHeadersParams{Headers: network.Headers{"X-Forwarded-For": "192.0.2.1"}}))
}

// watch keeps the time of each key until results are painted, and long tasks.
const watch = `(() => {
  performance.setResourceTimingBufferSize(100000);
  window.keys = []; window.long = [];
  let since = 0;
  addEventListener('keydown', () => { since = performance.now(); }, true);
  new MutationObserver(() => {
    if (!since) return;
    const began = since;
    since = 0;
    requestAnimationFrame(() => { const c = new MessageChannel(); c.port1.onmessage = () => { keys.push(performance.now() - began); }; c.port2.postMessage(0); });
  }).observe(document.documentElement, {attributeFilter: ['data-ready']});
  new PerformanceObserver(l => long.push(...l.getEntries().map(e => e.duration))).observe({type: 'longtask', buffered: true});
  return true;
})()`

// words are words of the repositories, for queries that somebody might type.
func (s *site) words(t *testing.T, n int) []string {
	t.Helper()
	r, err := s.node.Node.Search.Search(t.Context(), catalog.Operator(), search.Request{Query: `\b[a-z]{4,9}[_A-Z][a-z]{3,8}\b -reposet:local/large`, Regexp: true, CaseSensitive: true, Matches: 20_000})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	var all []string
	for _, f := range r.Files {
		for _, c := range f.Chunks {
			for _, m := range c.Ranges {
				w := string(c.Content[m.Start.Offset-c.Start.Offset : m.End.Offset-c.Start.Offset])
				if !seen[w] {
					seen[w] = true
					all = append(all, w)
				}
			}
		}
	}
	slices.Sort(all)
	if len(all) < n {
		t.Fatalf("%d words, want %d", len(all), n)
	}
	var out []string
	for i := range n {
		out = append(out, all[i*len(all)/n])
	}
	return out
}

// other is what others who search meanwhile see, and what the nodes spend.
type other struct {
	times []float64 // milliseconds, sorted
	cpu   time.Duration
	took  time.Duration
}

func (o other) at(share float64) float64 { return o.times[int(share*float64(len(o.times)-1))] }

// beside searches fifty times a second until f has ended, and 500 times at least. The
// processor's time is that of the process of this test, in which all nodes run and the
// browser does not.
func (s *site) beside(t *testing.T, f func()) (o other) {
	t.Helper()
	words := s.words(t, 100)
	stop, enough, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	began, spent := time.Now(), processTime(t)
	go func() {
		defer close(done)
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			case <-tick.C:
			}
			body, _ := json.Marshal(map[string]any{"query": words[i%len(words)], "matches": 50})
			asked := time.Now()
			resp, err := http.Post(s.url+"/api/search", "application/json", bytes.NewReader(body))
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
			if resp.StatusCode != 200 {
				t.Errorf("a search beside typing: %d", resp.StatusCode)
			}
			if o.times = append(o.times, float64(time.Since(asked))/float64(time.Millisecond)); len(o.times) == 500 {
				close(enough)
			}
		}
	}()

	f()
	select {
	case <-enough:
	case <-done: // it has failed
	}
	close(stop)
	<-done
	o.cpu, o.took = processTime(t)-spent, time.Since(began)
	slices.Sort(o.times)
	return o
}

// processTime is the processor's time of this process.
func processTime(t *testing.T) time.Duration {
	t.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		t.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// measureOthers types, and tells what that is to others who search and to the nodes.
func (s *site) measureOthers(t *testing.T) {
	alone := s.beside(t, func() {})
	beside := s.beside(t, func() { s.measureTyping(t) })
	cores := func(o other) float64 { return o.cpu.Seconds() / o.took.Seconds() }
	row("... others, 50 searches a second: p50 / p99 alone, while one types", "%.1f / %.1f ms, %.1f / %.1f ms", "", alone.at(0.5), alone.at(0.99), beside.at(0.5), beside.at(0.99))
	row("... cores that the nodes take: alone, while one types", "%.2f, %.2f", "", cores(alone), cores(beside))
}

// measureTyping types queries letter by letter.
func (s *site) measureTyping(t *testing.T) {
	const queries = 200
	b := s.open(t, "")
	b.goTo("/", 200)
	eval[bool](b, watch)
	typed := 0
	for _, w := range s.words(t, queries) {
		eval[bool](b, `(q => { q.value = ''; q.focus(); })(document.getElementById('query')), true`)
		for i, letter := range w {
			was := eval[string](b, `document.documentElement.dataset.ready || ''`)
			b.press(string(letter))
			if i > 0 {
				b.until("results of "+w[:i+1], `(document.documentElement.dataset.ready || '') !== `+quote(was))
				typed++
			}
		}
	}
	times := eval[[]float64](b, `keys`)
	long := eval[[]float64](b, `long`)
	asked := eval[int](b, `performance.getEntriesByType('resource').filter(e => e.name.includes('/search') || e.name.includes('/suggest')).length`)
	slices.Sort(times)
	row("key to painted results, p50 / p95", "%.0f / %.0f ms", "50 / 120 ms", times[len(times)/2], times[len(times)*95/100])
	row("... letters typed; requests for them; long tasks meanwhile", "%d; %d; %d", "", typed, asked, len(long))
}

// loaded is what the browser says of a page.
type loaded struct {
	First, Paint, Load float64
	Server             float64 // of First, by the node's own account
	Bytes, Requests    int
	Elements           int
	Long               []float64
}

const whatLoaded = `(() => {
  const n = performance.getEntriesByType('navigation')[0], r = performance.getEntriesByType('resource'), p = performance.getEntriesByName('first-contentful-paint')[0];
  return {First: n.responseStart, Server: n.serverTiming.length ? n.serverTiming[0].duration : 0, Paint: p ? p.startTime : 0, Load: n.loadEventEnd, Bytes: n.transferSize + r.reduce((s, e) => s + e.transferSize, 0),
    Requests: 1 + r.length, Elements: document.querySelectorAll('*').length, Long: window.long || []};
})()`

// load opens a page and waits until its first paint is told.
func (b *tab) load(path string) loaded {
	b.t.Helper()
	b.goTo(path, 200)
	b.until("the first paint", `performance.getEntriesByName('first-contentful-paint').length && performance.getEntriesByType('navigation')[0].loadEventEnd > 0`)
	eval[bool](b, watch)
	return eval[loaded](b, whatLoaded)
}

// heap is how many bytes the scripts of the page hold.
func (b *tab) heap() float64 {
	b.t.Helper()
	r, err := chromedp.Call(b.ctx, performance.GetMetrics, cdp.Empty{})
	b.must(err)
	for _, m := range r.Metrics {
		if m.Name == "JSHeapUsedSize" {
			return m.Value
		}
	}
	return 0
}

// measureResults loads a page of results with nothing kept, and again.
func (s *site) measureResults(t *testing.T) {
	// What the browser itself takes on this machine is measured beside it.
	word := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<!doctype html><p>word") }))
	defer word.Close()

	var cold, empty []float64
	var last, again loaded
	for range 20 {
		b := s.open(t, "")
		b.do("open a page of one word", chromedp.Navigate(word.URL))
		b.until("the first paint", `performance.getEntriesByName('first-contentful-paint').length`)
		empty = append(empty, eval[float64](b, `performance.getEntriesByName('first-contentful-paint')[0].startTime`))

		b = s.open(t, "")
		b.far()
		last = b.load(find("int count:100"))
		cold = append(cold, last.Paint)
		again = b.load(find("static count:100"))
	}
	slices.Sort(cold)
	slices.Sort(empty)
	row("cold load of results until the first paint, p50 / p95 of 20; of a page of one word", "%.0f / %.0f ms; %.0f / %.0f ms", "150 ms", cold[len(cold)/2], cold[len(cold)*95/100], empty[len(empty)/2], empty[len(empty)*95/100])
	row("... of the last: first byte, node", "%.0f ms, %.0f ms", "", last.First, last.Server)
	row("... bytes, requests, elements", "%.1f kB, %d, %d", "45 kB of results", float64(last.Bytes)/1000, last.Requests, last.Elements)
	row("the next page of results: bytes", "%.1f kB", "15 kB", float64(again.Bytes)/1000)
}

// measureMatches turns pages until ten thousand matches stand below each other.
func (s *site) measureMatches(t *testing.T) {
	b := s.open(t, "")
	b.must(call(b.ctx, performance.Enable, performance.EnableParams{}))
	b.load(find("straw reposet:local/large"))
	var took []float64
	for i := range 19 {
		eval[bool](b, `(window.before = document.querySelectorAll('#files .file').length, window.clicked = performance.now(), document.getElementById('next').click(), true)`)
		b.until(fmt.Sprintf("page %d", i+2), `document.querySelectorAll('#files .file').length > before`)
		took = append(took, eval[float64](b, `performance.now() - clicked`))
	}
	slices.Sort(took)
	now := eval[loaded](b, whatLoaded)
	row("10,000 matches: elements, long tasks, heap", "%d, %d, %.1f MB", "30,000 elements", now.Elements, len(now.Long), b.heap()/1e6)
	row("... each next 500, request to page, p50 / p95", "%.0f / %.0f ms", "", took[len(took)/2], took[len(took)*95/100])
	if now.Elements > 60_000 {
		t.Errorf("10,000 matches are %d elements", now.Elements)
	}
}

// measureFile opens 50,000 lines and scrolls through them.
func (s *site) measureFile(t *testing.T) {
	var painted, usable []float64
	var b *tab
	var now loaded
	for range 5 {
		b = s.open(t, "")
		b.must(call(b.ctx, performance.Enable, performance.EnableParams{}))
		b.far()
		now = b.load(browse("local/large", "", "blob", "long.go"))
		painted, usable = append(painted, now.Paint), append(usable, now.Load)
	}
	slices.Sort(painted)
	slices.Sort(usable)
	row("50,000 lines: the first are painted, p50 of 5; of the last: first byte, node", "%.0f ms; %.0f ms, %.0f ms", "300 ms", painted[2], now.First, now.Server)
	row("... all are loaded, p50 of 5; bytes", "%.0f ms; %.0f kB", "", usable[2], float64(now.Bytes)/1000)

	eval[bool](b, `long.length = 0, true`)
	for i := range 30 {
		eval[bool](b, fmt.Sprintf(`new Promise(done => { scrollTo(0, %d); requestAnimationFrame(() => requestAnimationFrame(() => done(true))); })`, i*33_000))
	}
	jump := eval[float64](b, `new Promise(done => { const began = performance.now(); scrollTo(0, 500000); document.body.getBoundingClientRect(); requestAnimationFrame(() => done(performance.now() - began)); })`)
	after := eval[loaded](b, whatLoaded)
	worst := 0.0
	for _, d := range after.Long {
		worst = max(worst, d)
	}
	row("... elements at load and after 30 jumps", "%d; %d", "6,000", now.Elements, after.Elements)
	row("... a jump; long tasks while scrolling, the longest; heap", "%.0f ms; %d, %.0f ms; %.1f MB", "16 ms; none; 30 MB", jump, len(after.Long), worst, b.heap()/1e6)
	if now.Elements > 6000 {
		t.Errorf("50,000 lines are %d elements", now.Elements)
	}
}
