package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/shoalsearch/shoal/node/nodetest"
)

// TestPagesOutliveANode types queries into the page that haproxy shows of three
// nodes while one of them is killed: each query has all its results, and the page
// is never loaded anew.
func TestPagesOutliveANode(t *testing.T) {
	program := os.Getenv("SHOAL_TEST_CHROMIUM")
	if program == "" {
		t.Skip("NOT RUN: no Chromium is named by SHOAL_TEST_CHROMIUM (make test-web names it)")
	}
	c := startProcesses(t)
	url := c.balance(t, "haproxy", "haproxy.cfg", func(file, dir string) []string { return []string{"-db", "-f", file} })

	ctx, stop := chromedp.NewExecAllocator(context.Background(), append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(program), chromedp.NoSandbox, chromedp.Flag("disable-gpu", true), chromedp.WSURLReadTimeout(time.Minute))...)
	defer stop()
	ctx, end := chromedp.NewContext(ctx)
	defer end()
	if err := chromedp.Do(ctx, chromedp.EmulateViewport(1280, 900), chromedp.Navigate(url+"/")); err != nil {
		t.Fatal(err)
	}
	value := func(js string) string {
		v, err := chromedp.Run(ctx, chromedp.Evaluate[string](js))
		if err != nil {
			t.Fatalf("%s: %v", js, err)
		}
		return v
	}
	value(`window.loaded = 'once'`)

	// find types a query as a reader does, and waits for what the page makes of it.
	find := func(query string) {
		value(fmt.Sprintf(`(q => { q.value = %q; q.dispatchEvent(new Event('input', {bubbles: true})); return ''; })(document.getElementById('query'))`, query))
		nodetest.Wait(t, "the results of "+query, func() error {
			text := value(`[document.querySelector('.summary'), document.getElementById('proof'), document.getElementById('working')].map(e => e ? e.textContent : '').join(' | ') + ' ' + document.querySelectorAll('#files .file').length`)
			if want := fmt.Sprintf("in %d files | ✓ complete", wantFiles); !strings.Contains(text, want) || !strings.HasSuffix(text, fmt.Sprint(" ", wantFiles)) {
				return fmt.Errorf("the page shows %s", text)
			}
			return nil
		})
		if value(`window.loaded || ''`) != "once" || value(`document.getElementById('query').value`) != query {
			t.Errorf("after %q the page was loaded anew", query)
		}
	}
	for i := range 40 {
		if i == 10 {
			if err := c.nodes[0].Process.Signal(syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
		}
		find(fmt.Sprintf("whale timeout:%ds", 5+i))
	}
}
