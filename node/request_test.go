package node_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/node/nodetest"
	"github.com/shoalsearch/shoal/node/search"
)

// logged is a log that a test reads while a node writes it.
type logged struct {
	mu  sync.Mutex // guards the field below
	out bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.out.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.out.String()
}

// The id of a search reaches the other nodes: the node that searches for another logs it too.
func TestRequestID_isLoggedByTheNodeThatSearches(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	nodetest.NewRepo(t, filepath.Join(dir, "app"), map[string]string{"main.go": "package main // whale\n"})
	logs := map[string]*logged{}
	f := nodetest.StartFleet(t, 2, nodetest.Config{File: unpolled(dir), Edit: func(o *node.Options) {
		log := new(logged)
		logs[o.Dir] = log
		o.Replicas, o.Slow, o.Log = 1, time.Nanosecond, slog.New(slog.NewTextHandler(log, nil))
	}})
	f.Nodes[0].WaitIndexed(1)

	for i, n := range f.Nodes {
		id, ctx := fmt.Sprintf("id-of-%d", i), t.Context()
		n.Wait("the file", func() error {
			res, err := n.Search.Search(call.WithRequest(ctx, id), catalog.Operator(), search.Request{Query: "whale", Matches: 1})
			if err == nil && len(res.Files) != 1 {
				err = fmt.Errorf("%d files", len(res.Files))
			}
			return err
		})
	}

	// If one node has the file, it logs both.
	holder := f.Nodes[0].View().Holders(catalog.MirrorKey(1))
	var both string
	for _, n := range f.Nodes {
		if len(holder) == 1 && n.ID() == holder[0] {
			both = logs[n.Dir].String()
		}
	}
	for i := range f.Nodes {
		if line := fmt.Sprintf(`msg="slow search of shards" request=id-of-%d `, i); !strings.Contains(both, line) {
			t.Errorf("the log of the node with the file (%q) lacks %s:\n%s", holder, line, both)
		}
	}
}
