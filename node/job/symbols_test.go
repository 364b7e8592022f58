package job

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/shard"
)

// tagger finds one definition in each text, and counts the texts. While it is broken it finds
// nothing.
type tagger struct {
	texts  atomic.Int64
	broken atomic.Bool
	fails  atomic.Bool // on each text
}

func (g *tagger) tag(_ context.Context, texts []shard.Untagged, use func(shard.Definition), done func(int, error)) error {
	if g.broken.Load() {
		return errors.New("ctags is gone")
	}
	for i := range texts {
		g.texts.Add(1)
		if g.fails.Load() {
			done(i, errors.New("ctags died"))
			continue
		}
		use(shard.Definition{Name: []byte("walrus"), Kind: "function", Line: 1})
		done(i, nil)
	}
	return nil
}

// newTaggedNode returns a testNode that finds symbols.
func newTaggedNode(t *testing.T, names ...string) (*testNode, *tagger) {
	t.Helper()
	g := &tagger{}
	return newTestNodeWith(t, Options{Build: BuildOptions{Tagger: g.tag, TaggerName: "one"}}, names...), g
}

// tagged returns how many files of a repository have symbols.
func (y *testNode) tagged(id catalog.RepoID) string {
	shards, with := y.View().Repo(id).Shards, 0
	for _, s := range shards {
		if s.Symbols != "" {
			with++
		}
	}
	return fmt.Sprintf("%d of %d", with, len(shards))
}

// Text is searchable before its symbols are found. If the tagger fails, the next attempt only finds
// symbols. A push needs only the symbols of new texts.
func TestIndexJob_publishesTextBeforeSymbols(t *testing.T) {
	t.Parallel()
	y, g := newTaggedNode(t, "app")
	y.push("app", "a.go", "package walrus\n")
	g.broken.Store(true)
	if err := y.run(catalog.JobIndex, "1"); err == nil || !strings.Contains(err.Error(), "ctags is gone") {
		t.Errorf("without a tagger that works: %v", err)
	}
	text := y.View().Repo(1)
	if !text.Indexed() || !y.files.Complete(text) || y.tagged(1) != "0 of 1" {
		t.Errorf("then the text is %+v, with symbols of %s", text, y.tagged(1))
	}

	g.broken.Store(false)
	repo := y.index(1)
	if y.tagged(1) != "1 of 1" || repo.Shards[0].ID != text.Shards[0].ID || g.texts.Load() != 1 || !y.files.Complete(repo) {
		t.Errorf("the next attempt: %+v, with symbols of %s after %d texts", repo.Shards, y.tagged(1), g.texts.Load())
	}
	if repo = y.index(1); g.texts.Load() != 1 || y.tagged(1) != "1 of 1" {
		t.Errorf("nothing is new: %+v, %d texts", repo.Shards, g.texts.Load())
	}

	y.push("app", "b.go", "package narwhal\n")
	if repo = y.index(1); y.lines(1) != 2 || g.texts.Load() != 2 || !y.files.Complete(repo) {
		t.Errorf("after a push: %+v, with symbols of %s after %d texts", repo.Shards, y.tagged(1), g.texts.Load())
	}
}

// A text on which the tagger failed is retried by a job with unchanged input, not by a push.
func TestIndexJob_retriesTextsWhoseSymbolsFailed(t *testing.T) {
	t.Parallel()
	y, g := newTaggedNode(t, "app")
	unknown := newSymbols(nil, y.files, true, time.Minute, time.Now)
	count := func() string {
		sum := unknownPart{}
		for _, u := range unknown.findUnknown(y.View()) {
			sum = u
		}
		return fmt.Sprintf("%d after %d, %d texts", sum.files, sum.tries, g.texts.Load())
	}

	y.push("app", "a.go", "package walrus\n")
	g.fails.Store(true)
	y.index(1)
	for _, want := range []string{"1 after 1, 1 texts", "1 after 2, 2 texts"} {
		if got := count(); got != want {
			t.Errorf("ctags dies: %s, want %s", got, want)
		}
		y.index(1)
	}

	g.fails.Store(false)
	y.push("app", "b.go", "package narwhal\n")
	y.index(1)
	if got := count(); got != "1 after 3, 4 texts" {
		t.Errorf("after a push: %s", got)
	}
	for range 2 {
		y.index(1)
		if got := count(); got != "0 after 0, 5 texts" {
			t.Errorf("after an index of the same input: %s", got)
		}
	}
}

// The pause grows fourfold with each failed attempt.
func TestSymbolRetry_pauseGrowsFourfold(t *testing.T) {
	t.Parallel()
	s := newSymbols(nil, nil, true, time.Minute, time.Now)
	for tries, want := range map[int]time.Duration{0: time.Minute, 1: time.Minute, 2: 4 * time.Minute, 3: 16 * time.Minute, 255: 24 * time.Hour} {
		if got := s.pause(tries); got != want {
			t.Errorf("after %d: %v, want %v", tries, got, want)
		}
	}
}

// A pack takes the symbols of its files, without tagging again.
func TestPackJob_keepsSymbolsWithoutTaggingAgain(t *testing.T) {
	t.Parallel()
	var names []string
	for i := range 8 {
		names = append(names, fmt.Sprintf("r%d", i))
	}
	y, g := newTaggedNode(t, names...)
	for i, name := range names {
		y.push(name, name+".go", strings.Repeat("package "+name+"\n", 3))
		y.index(catalog.RepoID(i + 1))
	}
	if err := y.run(catalog.JobPack, catalog.PackSubject(nil)); err != nil {
		t.Fatal(err)
	}
	for i, name := range names {
		id := catalog.RepoID(i + 1)
		if repo := y.View().Repo(id); repo.Shards[0].Pack == 0 || y.tagged(id) != "1 of 1" || !y.files.Complete(repo) {
			t.Errorf("%s is %+v, with symbols of %s", name, repo.Shards, y.tagged(id))
		}
	}
	if g.texts.Load() != 8 {
		t.Errorf("%d texts were looked at for 8 files", g.texts.Load())
	}
}

// A pack waits for files that have not arrived yet.
func TestPackJob_waitsForItsFiles(t *testing.T) {
	t.Parallel()
	var names []string
	for i := range 8 {
		names = append(names, fmt.Sprintf("r%d", i))
	}
	y := newTestNode(t, names...)
	for i, name := range names {
		y.push(name, "a.txt", name+"\n")
		y.index(catalog.RepoID(i + 1))
	}
	y.lose()
	if err := y.run(catalog.JobPack, catalog.PackSubject(nil)); err == nil || err.Error() != "the files are not here yet" {
		t.Errorf("a pack of files that are not here: %v", err)
	}
}

// A whole sync job lists what exists, and removes what is gone.
func TestListingJob_listsNewAndRemovesGoneRepositories(t *testing.T) {
	t.Parallel()
	y := newTestNode(t)
	for _, name := range []string{"app", "lib"} {
		y.git(name, "init", "-q", "-b", "main")
	}
	names := func() (out []string) {
		for r := range y.View().ReposByName() {
			if !r.Orphaned() {
				out = append(out, r.Name)
			}
		}
		return out
	}

	if err := y.run(catalog.JobSync, "a"); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(names(), " "); got != "local/app local/lib" {
		t.Errorf("the listing has %s", got)
	}
	y.remove("lib")
	if err := y.run(catalog.JobSync, "a"); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(names(), " "); got != "local/app" || y.View().Connection("a").Repos != 1 {
		t.Errorf("one is gone, the listing has %s and says %d", got, y.View().Connection("a").Repos)
	}
}
