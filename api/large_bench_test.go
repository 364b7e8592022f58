package api

import (
	"bufio"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/clock"
	"github.com/shoalsearch/shoal/node/host/giteatest"
	"github.com/shoalsearch/shoal/node/nodetest"
)

// It measures the time from a push to a repository with a gigabyte of text until a search finds
// it, with and without a webhook. It also measures memory and disk of its first index and of
// pushes.
func TestPushToSearchable_ofAGigabyteAtARealGiteaStaysWithinItsLimit(t *testing.T) {
	if os.Getenv(benchHosts) == "" {
		t.Skipf("set %s, or run make bench-hosts", benchHosts)
	}
	const size, fileSize, pushes = 1_000_000_000, 50_000, 10
	g := giteatest.Start(t)
	g.Org("acme")
	g.Repo("acme", "large", giteatest.Options{Empty: true})
	packed := pushText(t, g, "acme/large", size, fileSize)

	idle := residentPeak(t)
	began := clock.Now()
	n := nodetest.Start(t, nodetest.Config{
		Env:  map[string]string{"GITEA_TOKEN": g.Token},
		File: fmt.Sprintf(`{"connections": {"main": {"type": "gitea", "url": %q, "token": {"env": "GITEA_TOKEN"}, "orgs": ["acme"]}}}`, g.URL),
	})
	if !nodetest.Eventually(time.Hour, func() bool { return n.Status().Repos.Indexed == 1 }) {
		t.Fatalf("the first index takes more than an hour: %+v", n.Status().Running)
	}
	if got := len(n.Find("file:f0.txt")); got == 0 {
		t.Fatal("nothing of it is indexed")
	}
	took, peak := clock.Since(began), residentPeak(t)
	mirror, shards := bytesBelow(t, filepath.Join(n.Dir, "mirrors")), bytesBelow(t, filepath.Join(n.Dir, "shards"))
	fmt.Printf("%d MB of text in %d files, packed %d MB: first index after %.0f s, at most %d MB resident (%d MB before), mirror %d MB, index %d MB\n",
		size/1_000_000, size/fileSize, packed/1_000_000, took.Seconds(), peak/1_000_000, idle/1_000_000, mirror/1_000_000, shards/1_000_000)

	measure := func(how string, worst time.Duration) {
		residentPeak(t)
		var all []time.Duration
		for i := range pushes {
			p := push{word: fmt.Sprintf("zq%dx%dxw", len(how), i)}
			g.Push("acme/large", map[string]string{p.word + ".txt": p.word + "\n"})
			p.at = clock.Now()
			one := make(chan push, 1)
			one <- p
			close(one)
			all = append(all, found(t, n, one)...)
		}
		slices.Sort(all)
		fmt.Printf("%d pushes to it %s: searchable after %.1f s (median), %.1f s at most; at most %d MB resident; mirror %d MB, index %d MB\n", len(all), how,
			all[len(all)/2].Seconds(), all[len(all)-1].Seconds(), residentPeak(t)/1_000_000,
			bytesBelow(t, filepath.Join(n.Dir, "mirrors"))/1_000_000, bytesBelow(t, filepath.Join(n.Dir, "shards"))/1_000_000)
		if all[len(all)-1] > worst {
			t.Errorf("%s a push is found after %v, want at most %v", how, all[len(all)-1], worst)
		}
	}
	measure("without a webhook", time.Minute)
	hookTo(t, g, n)
	measure("with a webhook", 30*time.Second)
}

// hookTo adds a webhook for acme at a server, which calls a node at each push.
func hookTo(t *testing.T, g *giteatest.Server, n *nodetest.Node) {
	t.Helper()
	s := start(t, partsOf(n.Node))
	keys, err := n.Operate.WebhookKeys(t.Context(), "main")
	if err != nil {
		t.Fatal(err)
	}
	g.Do("POST", "/orgs/acme/hooks", map[string]any{
		"type": "gitea", "active": true, "events": []string{"push"},
		"config": map[string]string{"url": "http://" + s.Addr().String() + "/api/webhook/main", "content_type": "json", "secret": keys.Secret},
	}, nil)
}

// pushText pushes one commit with so many bytes of text, in files of a size. It returns the bytes
// of the pack.
func pushText(t *testing.T, g *giteatest.Server, repo string, size, fileSize int) int64 {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "large.git")
	git := func(in io.Reader, args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "git", append([]string{"-C", dir}, args...)...)
		cmd.Stdin = in
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %s: %v\n%s", args[0], err, out)
		}
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	git(nil, "init", "--bare", "-q")

	// A file has few different words, as code has. Random letters have more trigrams than an
	// indexed file may have.
	r := rand.New(rand.NewPCG(1, 2))
	words := make([]string, 20_000)
	for i := range words {
		words[i] = strconv.FormatUint(r.Uint64()>>(24+r.UintN(20)), 36)
	}

	in, out := io.Pipe()
	go func() {
		w := bufio.NewWriterSize(out, 1<<20)
		fmt.Fprint(w, "commit refs/heads/main\ncommitter A <a@example.com> 1767225600 +0000\ndata 5\nlarge\n")
		for file := range size / fileSize {
			var text strings.Builder
			own := r.IntN(len(words) - 500)
			for text.Len() < fileSize {
				for range 6 {
					text.WriteString(words[own+min(r.IntN(500), r.IntN(500))])
					text.WriteByte(' ')
				}
				text.WriteByte('\n')
			}
			fmt.Fprintf(w, "M 100644 inline d%d/f%d.txt\ndata %d\n%s\n", file/100, file, text.Len(), text.String())
		}
		w.Flush()
		out.Close()
	}()
	git(in, "fast-import", "--quiet")

	address := strings.Replace(g.URL, "://", "://boss:"+g.Token+"@", 1) + "/" + repo + ".git"
	git(nil, "push", "-q", address, "main")
	return bytesBelow(t, filepath.Join(dir, "objects"))
}

// residentPeak returns the peak of resident memory since the last call.
func residentPeak(t *testing.T) int64 {
	t.Helper()
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Skip("this system does not tell the memory of a process")
	}
	var kB int64
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			fmt.Sscan(rest, &kB)
		}
	}

	// Reset the peak.
	runtime.GC()
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil {
		t.Logf("the peak of memory is one of the whole test: %v", err)
	}
	return kB * 1000
}

// bytesBelow returns the size of all files below a directory.
func bytesBelow(t *testing.T, dir string) (n int64) {
	t.Helper()
	err := filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return nil // files come and go while a node runs
		}
		if info, err := e.Info(); err == nil {
			n += info.Size()
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}
