package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/shoalsearch/shoal/node/nodetest"
)

// open opens an address in a browser, and returns a function that evaluates an expression in the
// page.
func open(t *testing.T, program, url string) (value func(js string) string) {
	t.Helper()
	ctx, stop := chromedp.NewExecAllocator(context.Background(), append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(program), chromedp.NoSandbox, chromedp.Flag("disable-gpu", true), chromedp.WSURLReadTimeout(time.Minute))...)
	t.Cleanup(stop)
	ctx, end := chromedp.NewContext(ctx)
	t.Cleanup(end)
	if err := chromedp.Do(ctx, chromedp.EmulateViewport(1280, 900), chromedp.Navigate(url)); err != nil {
		t.Fatal(err)
	}
	return func(js string) string {
		t.Helper()
		v, err := chromedp.Run(ctx, chromedp.Evaluate[string](js))
		if err != nil {
			t.Fatalf("%s: %v", js, err)
		}
		return v
	}
}

// It types queries into the page behind haproxy of three nodes while one is killed. Each query
// has all its results, and the page is never reloaded.
func TestSearchPage_losesNoResultWhenANodeIsKilled(t *testing.T) {
	program := os.Getenv("SHOAL_TEST_CHROMIUM")
	if program == "" {
		t.Skip("NOT RUN: no Chromium is named by SHOAL_TEST_CHROMIUM (make test-web names it)")
	}
	c := startProcesses(t)
	url := c.balance(t, "haproxy", "haproxy.cfg", func(file, dir string) []string { return []string{"-db", "-f", file} })

	value := open(t, program, url+"/")
	value(`window.loaded = 'once'`)

	// find types a query and waits for the page's result.
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

// It searches through haproxy while the nodes with the only copies hang, and kills them during
// the search. The page shows what is missing, without a reload.
func TestSearchPage_saysWhatIsMissingAfterNodesAreKilled(t *testing.T) {
	program := os.Getenv("SHOAL_TEST_CHROMIUM")
	if program == "" {
		t.Skip("NOT RUN: no Chromium is named by SHOAL_TEST_CHROMIUM (make test-web names it)")
	}
	c := startProcesses(t)
	url := c.balance(t, "haproxy", "haproxy.cfg", func(file, dir string) []string { return []string{"-db", "-f", file} })
	holders := c.holders(t)
	if len(holders) != 2 {
		t.Fatalf("nodes %v hold the repository, want two", holders)
	}

	value := open(t, program, url+"/search?query=whale")
	nodetest.Wait(t, "a complete answer", func() error {
		if text := value(`document.getElementById('proof').textContent`); !strings.Contains(text, "✓ complete") {
			return fmt.Errorf("the page says %s", text)
		}
		return nil
	})
	value(`window.loaded = 'once'`)

	for _, i := range holders {
		if err := c.nodes[i].Process.Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
	}
	value(`(q => { q.value = 'whale number'; document.getElementById('search').requestSubmit(); return ''; })(document.getElementById('query'))`)
	nodetest.Wait(t, "the search to be under way", func() error {
		if value(`document.getElementById('working').hidden ? '' : 'seen'`) == "" {
			return errors.New("the page does not say that it searches")
		}
		return nil
	})
	for _, i := range holders {
		if err := c.nodes[i].Process.Signal(syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}

	nodetest.Wait(t, "what is missing", func() error {
		text := value(`document.getElementById('results').innerText`)
		for _, want := range []string{"⚠ not complete: 1 shard did not answer", "try again", "Not searched: local/app", "No answer from ", "Nothing found in what was searched."} {
			if !strings.Contains(text, want) {
				return fmt.Errorf("the page does not say %q: %s", want, text)
			}
		}
		return nil
	})
	if value(`window.loaded || ''`) != "once" || value(`document.getElementById('query').value`) != "whale number" {
		t.Error("the page was loaded anew")
	}
}

// holders returns the nodes with an index file.
func (c *processes) holders(t *testing.T) (out []int) {
	t.Helper()
	for i := range c.nodes {
		found := false
		err := filepath.WalkDir(filepath.Join(c.dir, fmt.Sprintf("n%d", i)), func(path string, _ fs.DirEntry, err error) error {
			found = found || strings.HasSuffix(path, ".shard")
			if errors.Is(err, fs.ErrNotExist) { // the file was just moved into place
				return nil
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if found {
			out = append(out, i)
		}
	}
	return out
}
