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

// ledger records which files and lines the tools have shown. It wraps the node's operations, so
// that nothing must be parsed from the tools' texts.
type ledger struct {
	symbols.Searcher
	browse.Reader

	mu       sync.Mutex
	reads    map[[2]string]*Read
	lines    map[[2]string][][2]int // ranges of lines shown of a file: first and last
	order    []*Read
	searches int
}

const maxLedger = 2000

func newLedger(s Sources, earlier []*Report) *ledger {
	l := &ledger{Searcher: s.Search, Reader: s.Browse, reads: map[[2]string]*Read{}, lines: map[[2]string][][2]int{}}
	for _, r := range earlier {
		for _, read := range r.Reads {
			l.addFile(read.Repo, read.Path, read.Commit)
		}
		for _, p := range r.Answer {
			if p.Cite != nil && p.Cite.State == Cited {
				l.addLines(p.Cite.Repo, p.Cite.Path, p.Cite.First, p.Cite.Last)
			}
		}
	}
	return l
}

// addLines records that a tool has shown lines of a file.
func (l *ledger) addLines(repo, path string, first, last int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := [2]string{repo, path}
	if list := l.lines[key]; first > 0 && len(list) < maxLedger && (list != nil || len(l.lines) < maxLedger) {
		l.lines[key] = append(list, [2]int{first, last})
	}
}

// shownRanges returns the first ranges shown of a file, as :10-20,31; "" if there are none.
func (l *ledger) shownRanges(repo, path string) string {
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

// hasShown reports whether a tool has shown the cited lines, or at least a quarter of a long range.
func (l *ledger) hasShown(c *Citation) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	length, visible := c.Last-c.First+1, map[int]bool{}
	for _, r := range l.lines[[2]string{c.Repo, c.Path}] {
		for line := max(r[0], c.First-slack); line <= min(r[1], c.Last+slack); line++ {
			visible[line] = true
		}
	}
	return len(visible) > 0 && (length <= shortCite || len(visible) >= length/4)
}

// shortCite is the length up to which one shown line proves a whole citation.
const shortCite = 100

// addFile records a file. The last commit at which it was read counts.
func (l *ledger) addFile(repo, path, commit string) {
	l.mu.Lock()
	defer l.mu.Unlock()

	key := [2]string{repo, path}
	if have := l.reads[key]; have != nil {
		// Update the commit if the file was read again, since citations point to it.
		if commit != "" {
			have.Commit = commit
		}
		return
	}

	// Limit the ledger, which is stored in the turn's file.
	if len(l.order) >= maxLedger || repo == "" || path == "" {
		return
	}
	r := &Read{repo, path, commit}
	l.reads[key], l.order = r, append(l.order, r)
}

func (l *ledger) countSearch() {
	l.mu.Lock()
	l.searches++
	l.mu.Unlock()
}

// fileEnding returns the only file whose path ends with path; ok is false if there are none or
// several. repo "" means any repository.
func (l *ledger) fileEnding(repo, path string) (found Read, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range l.order {
		// Without a repository, path may begin with its name.
		whole := "/" + r.Path
		if repo == "" {
			whole = "/" + r.Repo + whole
		}
		if (repo == "" || r.Repo == repo) && strings.HasSuffix(whole, "/"+path) {
			// Two files match: choosing one would be a guess.
			if ok && (found.Repo != r.Repo || found.Path != r.Path) {
				return Read{}, false
			}
			found, ok = *r, true
		}
	}
	return found, ok
}

// filesAndSearches returns the files that were read, and the number of searches.
func (l *ledger) filesAndSearches() ([]Read, int) {
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

// The operations below wrap those of the node and record what they return.

// ReadFile implements [browse.Reader].
func (l *ledger) ReadFile(ctx context.Context, v catalog.Viewer, req browse.ReadFileRequest) (*browse.ReadFileResponse, error) {
	r, err := l.Reader.ReadFile(ctx, v, req)
	if err == nil {
		l.addFile(r.Repo, r.Path, r.Commit)
		l.addLines(r.Repo, r.Path, r.First, r.First+len(r.Lines)-1)
	}
	return r, err
}

// Grep implements [symbols.Searcher].
func (l *ledger) Grep(ctx context.Context, v catalog.Viewer, req search.GrepRequest) (*search.GrepResponse, error) {
	l.countSearch()
	r, err := l.Searcher.Grep(ctx, v, req)
	if err == nil {
		for _, f := range r.Files[:min(len(r.Files), 100)] {
			l.addFile(f.Repo, f.Path, "")
			for _, line := range f.Lines {
				l.addLines(f.Repo, f.Path, line.Number, line.Number)
			}
		}
	}
	return r, err
}

// Search implements [symbols.Searcher].
func (l *ledger) Search(ctx context.Context, v catalog.Viewer, req search.Request) (*search.Response, error) {
	l.countSearch()
	r, err := l.Searcher.Search(ctx, v, req)
	if err == nil {
		for _, f := range r.Files[:min(len(r.Files), 100)] {
			l.addFile(f.Repository, f.Path, "")
			for _, c := range f.Chunks {
				for _, at := range c.Ranges {
					l.addLines(f.Repository, f.Path, int(at.Start.Line), int(at.End.Line))
				}
			}
		}
	}
	return r, err
}

// Ranked implements [symbols.Searcher].
func (l *ledger) Ranked(ctx context.Context, v catalog.Viewer, req search.RankedRequest) (*search.RankedResponse, error) {
	// Count failed searches too: people see how often the model searched.
	l.countSearch()
	r, err := l.Searcher.Ranked(ctx, v, req)
	if err == nil {
		for _, f := range r.Files {
			l.addFile(f.Repo, f.Path, "")
			for _, line := range f.Lines {
				l.addLines(f.Repo, f.Path, line.Number, line.Number)
			}
		}
	}
	return r, err
}

// Definitions implements [symbols.Searcher].
func (l *ledger) Definitions(ctx context.Context, v catalog.Viewer, req symbols.SymbolRequest) (*symbols.SymbolResponse, error) {
	l.countSearch()
	r, err := l.Searcher.Definitions(ctx, v, req)
	l.recordSymbols(r, err)
	return r, err
}

// References implements [symbols.Searcher].
func (l *ledger) References(ctx context.Context, v catalog.Viewer, req symbols.SymbolRequest) (*symbols.SymbolResponse, error) {
	l.countSearch()
	r, err := l.Searcher.References(ctx, v, req)
	l.recordSymbols(r, err)
	return r, err
}

// Hierarchy implements [symbols.Searcher].
func (l *ledger) Hierarchy(ctx context.Context, v catalog.Viewer, req symbols.HierarchyRequest) (*symbols.SymbolResponse, error) {
	l.countSearch()
	r, err := l.Searcher.Hierarchy(ctx, v, req)
	l.recordSymbols(r, err)
	return r, err
}

// recordSymbols records the lines that a symbol search has shown.
func (l *ledger) recordSymbols(r *symbols.SymbolResponse, err error) {
	if err != nil {
		return
	}
	for _, f := range r.Files[:min(len(r.Files), 100)] {
		l.addFile(f.Repository, f.Path, "")
		for _, m := range f.Matches {
			line := int(m.Range.Start.Line)
			l.addLines(f.Repository, f.Path, line, line)
		}
	}
}

// Diff implements [browse.Reader].
func (l *ledger) Diff(ctx context.Context, v catalog.Viewer, req browse.DiffRequest) (*browse.DiffResponse, error) {
	r, err := l.Reader.Diff(ctx, v, req)
	if err == nil && !req.Stat {
		for _, f := range r.Files {
			// A deleted file cannot be cited at the new commit.
			if f.Status != 'D' {
				l.addFile(req.Repo, f.NewPath, r.HeadCommit)
				for _, h := range f.Hunks {
					l.addLines(req.Repo, f.NewPath, h.NewStart, h.NewStart+h.NewLines-1)
				}
			}
		}
	}
	return r, err
}
