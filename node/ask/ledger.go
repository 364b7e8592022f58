package ask

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/browse"
	"github.com/shoalsearch/shoal/node/search"
	"github.com/shoalsearch/shoal/node/symbols"
)

// ledger notes what the tools show. It stands between them and the node, so
// that nothing has to be read out of their texts.
type ledger struct {
	symbols.Searcher
	browse.Reader

	mu       sync.Mutex
	reads    map[[2]string]*Read
	lines    map[[2]string][][2]int // that were shown of a file: first and last
	order    []*Read
	searches int
}

const maxLedger = 2000

func newLedger(s Sources, earlier []*Report) *ledger {
	l := &ledger{Searcher: s.Search, Reader: s.Browse, reads: map[[2]string]*Read{}, lines: map[[2]string][][2]int{}}
	for _, r := range earlier {
		for _, read := range r.Reads {
			l.note(read.Repo, read.Path, read.Commit)
		}
		for _, p := range r.Answer {
			if p.Cite != nil && p.Cite.State == Cited {
				l.show(p.Cite.Repo, p.Cite.Path, p.Cite.First, p.Cite.Last)
			}
		}
	}
	return l
}

// show notes lines of a file that a tool has shown.
func (l *ledger) show(repo, path string, first, last int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := [2]string{repo, path}
	if list := l.lines[key]; first > 0 && len(list) < maxLedger && (list != nil || len(l.lines) < maxLedger) {
		l.lines[key] = append(list, [2]int{first, last})
	}
}

// cited is the first lines that were shown of a file, as :10-20,31; "" for none.
func (l *ledger) cited(repo, path string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var runs []string
	for _, r := range l.lines[[2]string{repo, path}] {
		if run := fmt.Sprintf("%d-%d", r[0], r[1]); len(runs) < 5 && !slices.Contains(runs, run) {
			runs = append(runs, run)
		}
	}
	if runs == nil {
		return ""
	}
	return ":" + strings.Join(runs, ",")
}

// shown reports whether a citation is of lines that a tool has shown: of a long run, of a
// quarter of them at least.
func (l *ledger) shown(c *Citation) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	length, seen := c.Last-c.First+1, map[int]bool{}
	for _, r := range l.lines[[2]string{c.Repo, c.Path}] {
		for line := max(r[0], c.First-slack); line <= min(r[1], c.Last+slack); line++ {
			seen[line] = true
		}
	}
	return len(seen) > 0 && (length <= shortCite || len(seen) >= length/4)
}

// shortCite is how many lines a citation may have of which one line is proof enough.
const shortCite = 100

// note keeps a file. The last commit that it was read at counts.
func (l *ledger) note(repo, path, commit string) {
	l.mu.Lock()
	defer l.mu.Unlock()

	key := [2]string{repo, path}
	if have := l.reads[key]; have != nil {
		// Found once more is nothing new, read at another commit is: citations point to that one.
		if commit != "" {
			have.Commit = commit
		}
		return
	}

	// A bound, for the ledger is in the file of the turn.
	if len(l.order) >= maxLedger || repo == "" || path == "" {
		return
	}
	r := &Read{repo, path, commit}
	l.reads[key], l.order = r, append(l.order, r)
}

func (l *ledger) searched() {
	l.mu.Lock()
	l.searches++
	l.mu.Unlock()
}

// ending finds the file of a repository whose path ends so, "" where there is
// none or more than one. repo "" is any.
func (l *ledger) ending(repo, path string) (found Read, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range l.order {
		// Without a repository the path may begin with its name.
		whole := "/" + r.Path
		if repo == "" {
			whole = "/" + r.Repo + whole
		}
		if (repo == "" || r.Repo == repo) && strings.HasSuffix(whole, "/"+path) {
			// Two files end so: to take one of them would be a guess.
			if ok && (found.Repo != r.Repo || found.Path != r.Path) {
				return Read{}, false
			}
			found, ok = *r, true
		}
	}
	return found, ok
}

// list is what was read, and how often was searched.
func (l *ledger) list() ([]Read, int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []Read
	for _, r := range l.order {
		if r.Commit != "" {
			out = append(out, *r)
		}
	}
	return slices.Clip(out), l.searches
}

// The operations of the tools that show files. Each is that of the node, noted.

// ReadFile implements [browse.Reader].
func (l *ledger) ReadFile(ctx context.Context, v catalog.Viewer, req browse.ReadFileRequest) (*browse.ReadFileResponse, error) {
	r, err := l.Reader.ReadFile(ctx, v, req)
	if err == nil {
		l.note(r.Repo, r.Path, r.Commit)
		l.show(r.Repo, r.Path, r.First, r.First+len(r.Lines)-1)
	}
	return r, err
}

// Grep implements [symbols.Searcher].
func (l *ledger) Grep(ctx context.Context, v catalog.Viewer, req search.GrepRequest) (*search.GrepResponse, error) {
	l.searched()
	r, err := l.Searcher.Grep(ctx, v, req)
	if err == nil {
		for _, f := range r.Files[:min(len(r.Files), 100)] {
			l.note(f.Repo, f.Path, "")
			for _, line := range f.Lines {
				l.show(f.Repo, f.Path, line.Number, line.Number)
			}
		}
	}
	return r, err
}

// Search implements [symbols.Searcher].
func (l *ledger) Search(ctx context.Context, v catalog.Viewer, req search.Request) (*search.Response, error) {
	l.searched()
	r, err := l.Searcher.Search(ctx, v, req)
	if err == nil {
		for _, f := range r.Files[:min(len(r.Files), 100)] {
			l.note(f.Repository, f.Path, "")
			for _, c := range f.Chunks {
				for _, at := range c.Ranges {
					l.show(f.Repository, f.Path, int(at.Start.Line), int(at.End.Line))
				}
			}
		}
	}
	return r, err
}

// Ranked implements [symbols.Searcher].
func (l *ledger) Ranked(ctx context.Context, v catalog.Viewer, req search.RankedRequest) (*search.RankedResponse, error) {
	// Counted also where it fails: people are told how often was looked.
	l.searched()
	r, err := l.Searcher.Ranked(ctx, v, req)
	if err == nil {
		for _, f := range r.Files {
			l.note(f.Repo, f.Path, "")
			for _, line := range f.Lines {
				l.show(f.Repo, f.Path, line.Number, line.Number)
			}
		}
	}
	return r, err
}

// Definitions implements [symbols.Searcher].
func (l *ledger) Definitions(ctx context.Context, v catalog.Viewer, req symbols.SymbolRequest) (*symbols.SymbolResponse, error) {
	l.searched()
	r, err := l.Searcher.Definitions(ctx, v, req)
	l.symbols(r, err)
	return r, err
}

// References implements [symbols.Searcher].
func (l *ledger) References(ctx context.Context, v catalog.Viewer, req symbols.SymbolRequest) (*symbols.SymbolResponse, error) {
	l.searched()
	r, err := l.Searcher.References(ctx, v, req)
	l.symbols(r, err)
	return r, err
}

// Hierarchy implements [symbols.Searcher].
func (l *ledger) Hierarchy(ctx context.Context, v catalog.Viewer, req symbols.HierarchyRequest) (*symbols.SymbolResponse, error) {
	l.searched()
	r, err := l.Searcher.Hierarchy(ctx, v, req)
	l.symbols(r, err)
	return r, err
}

func (l *ledger) symbols(r *symbols.SymbolResponse, err error) {
	if err != nil {
		return
	}
	for _, f := range r.Files[:min(len(r.Files), 100)] {
		l.note(f.Repository, f.Path, "")
		for _, m := range f.Matches {
			line := int(m.Range.Start.Line)
			l.show(f.Repository, f.Path, line, line)
		}
	}
}

// Diff implements [browse.Reader].
func (l *ledger) Diff(ctx context.Context, v catalog.Viewer, req browse.DiffRequest) (*browse.DiffResponse, error) {
	r, err := l.Reader.Diff(ctx, v, req)
	if err == nil && !req.Stat {
		for _, f := range r.Files {
			// What is gone at the head cannot be cited there.
			if f.Status != 'D' {
				l.note(req.Repo, f.NewPath, r.HeadCommit)
				for _, h := range f.Hunks {
					l.show(req.Repo, f.NewPath, h.NewStart, h.NewStart+h.NewLines-1)
				}
			}
		}
	}
	return r, err
}
