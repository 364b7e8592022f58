package tool_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node"
	"github.com/shoalsearch/shoal/node/nodetest"
	"github.com/shoalsearch/shoal/node/symbols"
	"github.com/shoalsearch/shoal/node/tool"
	"github.com/shoalsearch/shoal/shard/change"
)

// The repositories that the transcripts ask about. Their commits are the same
// in every run, so the transcripts can name them.

// day is a day of the sample's history.
func day(n int) time.Time { return time.Date(2024, 3, n, 10, 0, 0, 0, time.UTC) }

const storeGo = `package store

import (
	"errors"
	"sync"
)

// ErrClosed is returned after Close.
var ErrClosed = errors.New("store is closed")

// Store keeps values by key.
type Store struct {
	mu     sync.Mutex
	values map[string]string
	closed bool
}

// Open makes an empty store.
func Open() *Store {
	return &Store{values: map[string]string{}}
}

// Get returns the value of a key.
func (s *Store) Get(key string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return "", ErrClosed
	}
	return s.values[key], nil
}

// Close ends the store. Close may be called twice.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return nil
}
`

const replicaGo = `package store

import "time"

// retryReplica sends a write to a replica until it is taken.
func retryReplica(send func() error) error {
	backoff := time.Millisecond
	for try := 0; ; try++ {
		err := send()
		if err == nil || try == 5 {
			return err
		}
		time.Sleep(backoff)
		backoff *= 2
	}
}
`

const mainGo = `package main

import "example.com/acme/app/store"

func main() {
	s := store.Open()
	if _, err := s.Get("a"); err != nil {
		panic(err) // the store cannot be closed here
	}
	s.Close()
}
`

const storeTest = `package store

import "testing"

func TestClose(t *testing.T) {
	s := Open()
	s.Close()
	if _, err := s.Get("a"); err != ErrClosed {
		t.Error(err)
	}
}
`

const evictC = `#include "evict.h"

/* evict frees memory until it is below the limit. */
int evict(struct pool *p, int limit) {
    if (p->used <= limit)
        goto done;
    while (p->used > limit)
        p->used -= free_one(p);
done:
    return evict_stats(p);
}

int free_one(struct pool *p) {
    return p->size;
}
`

const evictH = `struct pool {
    int used;
    int size;
};

int evict(struct pool *p, int limit);
int free_one(struct pool *p);
int evict_stats(struct pool *p);
`

// shapeRs is in a language of which ctags does not tell where definitions end.
const shapeRs = `pub struct Shape {
    side: u32,
}

impl Shape {
    pub fn scale(
        &mut self,
        by: u32,
    ) {
        self.side *= checked(by);
    }
}

fn checked(by: u32) -> u32 {
    by.max(1)
}
`

// sample starts a node that has indexed two repositories, symbols and all.
func sample(t testing.TB) (*nodetest.Node, *tool.Set) {
	t.Helper()
	dir := t.TempDir()
	history(empty(t, filepath.Join(dir, "app")))
	lib := empty(t, filepath.Join(dir, "lib"))
	lib.CommitAs("Ada Bell", day(1), "Begin the library", map[string]string{
		"lib.go": "package lib\n\n// Answer answers.\nfunc Answer() int { return 42 }\n\n// Guess answers too.\nfunc Guess() int { return 41 }\n",
		"old.go": "package lib\n\n// Old is old.\nfunc Old() {}\n",
	})
	lib.Git("rm", "-q", "old.go")
	lib.CommitAs("Ben Cole", day(2), "Answer once", map[string]string{
		"lib.go":           "package lib\n\n// Answer answers.\nfunc Answer() int { return 42 }\n",
		"web/package.json": "{\n  \"dependencies\": {\"@acme/lib\": \"^2.0.0\"},\n  \"devDependencies\": {\"acme\": \"1.0.0\"}\n}\n",
		"Cargo.toml":       "[dependencies\nserde = \"1\"\n",
		"lib_test.go":      "package lib\n\nvar tested = Answer()\n",
		"shape.rs":         shapeRs,
		"getter.go":        "package lib\n\ntype Getter interface{ Get(key string) (string, error) }\n",
		"Scaled.java":      "interface Scaled {}\nclass Square\n    extends Shape\n    implements Scaled {}\nclass Tile extends Square {}\n",
	})
	lib.Git("remote", "add", "origin", "https://example.com/acme/lib")

	n := nodetest.Start(t, sampleConfig(dir))
	n.WaitIndexed(2)
	n.WaitHistory()
	n.Wait("symbols", func() error { return hasSymbols(n, "evict", "Answer") })
	return n, tool.New(tool.Parts{Search: n.Search, Browse: n.Browse, Models: n.Ask, Log: slog.New(slog.DiscardHandler)})
}

// sampleConfig is a node with the repositories in a directory, and the changes of all of their commits.
func sampleConfig(dir string) nodetest.Config {
	return nodetest.Config{
		File: fmt.Sprintf(`{"settings": {"maxFileSize": 50000}, "connections": {"all": {"type": "git", "url": "file://%s/*"}}}`, dir),
		Edit: func(o *node.Options) { o.Ctags, o.History = "", change.Bound{All: true} }, // ctags is the one on PATH
	}
}

// empty makes a repository without a commit.
func empty(t testing.TB, dir string) *nodetest.Repo {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	r := nodetest.OpenRepo(t, dir)
	r.Git("init", "-q", "-b", "main")
	return r
}

// history is what happened in the larger repository.
func history(r *nodetest.Repo) {
	r.CommitAs("Ada Bell", day(2), "Begin the store", map[string]string{
		"README.md":      "# App\n\nA store that is closed with Close.\n",
		"cmd/main.go":    mainGo,
		"store/store.go": strings.Replace(storeGo, "\tif s.closed {\n\t\treturn \"\", ErrClosed\n\t}\n", "", 1),
	})
	r.Git("tag", "v1.0.0")
	r.CommitAs("Ben Cole", day(3), "Evict values when memory is short\n\nThe limit is the caller's.", map[string]string{
		"src/evict.c": evictC, "src/evict.h": evictH,
	})
	r.CommitAs("Ada Bell", day(4), "Refuse reads after Close", map[string]string{
		"store/store.go": storeGo, "store/store_test.go": storeTest,
	})
	r.Git("tag", "v1.1.0")
	r.Git("branch", "release")
	r.CommitAs("Ben Cole", day(5), "Retry replication with back-off", map[string]string{
		"store/replica.go":     replicaGo,
		"vendor/dep/dep.go":    "package dep\n\n// Close closes nothing.\nfunc Close() {}\n",
		"docs/large.txt":       strings.Repeat("a file that is kept by name only\n", 2000) + "needle in the haystack\n",
		"docs/picture.bin":     "not text\x00at all\n",
		"go.mod":               "module example.com/acme/app\n\nrequire (\n\tgithub.com/acme/lib/v2 v2.1.0\n\tgithub.com/acme/old v1.0.0 // indirect\n)\n",
		"docs/notes.txt":       strings.Repeat("line of notes\n", 40),
		"src/größe \xe9.c":     "int odd_name;\n",
		"testdata/replica.txt": "retry the replica\n",
	})
	r.Git("remote", "add", "origin", "https://example.com/acme/app")
}

// hasSymbols fails until the symbols are there, which follow the text.
func hasSymbols(n *nodetest.Node, names ...string) error {
	for _, name := range names {
		r, err := n.Search.Definitions(context.Background(), catalog.Operator(), symbols.SymbolRequest{Symbol: name})
		if err != nil {
			return err
		}
		if len(r.Files) == 0 {
			return errors.New(name + " has no definition yet")
		}
	}
	return nil
}
