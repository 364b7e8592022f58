package web

import (
	"bytes"
	"context"
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/search"
	"github.com/shoalsearch/shoal/shard"
	"github.com/shoalsearch/shoal/shard/query"
)

// depths are the limits of the searches that pages are cut from. A higher limit may find matches
// that belong before those found with the lower one. So pages do not assume a fixed start: a page
// shows what a deeper search found and earlier ones did not.
//
// Each limit has room for one file more than its pages, so that a page is full even if the limit
// cuts the last file, which then moves to a later page.
var depths = []int{pageMatches + perFile, 4*pageMatches + perFile, 16*pageMatches + perFile, mostMatches}

// depthsOf returns the depths of the searches for pages with want ranges in all. A search that
// counts all results has a fixed order, so one search with the last depth is enough.
func depthsOf(query string, want int) []int {
	if !countsAll(query) {
		return depths
	}
	first := slices.IndexFunc(depths, func(limit int) bool { return limit >= want+perFile })
	if first < 0 {
		first = len(depths) - 1
	}
	return depths[first:]
}

// heap has the files of the pages so far.
type heap struct {
	files []search.File    // in the order of the pages
	last  *search.Response // of the deepest search, whose counts are used
	more  bool             // a deeper search may find others
	ends  bool             // there are others, which no page shows

	commits *search.CommitsResponse // of a search of commits, which has no files

	branches map[uint32]string // default branches of their repositories
}

// take adds the new files of an answer.
func (h *heap) take(resp *search.Response, files []search.File) {
	if h.branches == nil {
		h.branches = map[uint32]string{}
	}
	for i := range resp.Repositories {
		h.branches[resp.Repositories[i].ID] = resp.Repositories[i].DefaultBranch
	}
	h.last, h.files = resp, append(h.files, files...)
}

// fileKey identifies a file of an answer.
type fileKey struct {
	repo          uint32
	path, id, rev string
}

func keyOf(f *search.File) fileKey {
	return fileKey{f.RepoID, f.Path, f.OID, strings.Join(f.Branches, "\n")}
}

// gather runs the searches that are needed for pages with want ranges in all.
func (p *searching) gather(ctx context.Context, v catalog.Viewer, req search.Request, want int) (*heap, error) {
	h := &heap{}
	own := ownLimit(req)
	had := map[fileKey]bool{}
	deepest := depths[len(depths)-1]
	for _, limit := range depthsOf(req.Query, want) {
		req.Matches = limit
		resp, err := p.searcher.Search(ctx, v, req)
		if err != nil {
			return nil, err
		}

		// No search goes beyond the query's own limit.
		cut := reached(resp, limit) && !own
		h.more, h.ends = cut && limit < deepest, cut && limit == deepest

		files := resp.Files
		if h.more {
			files = withoutCut(files, req.PerFile)
		}
		files = slices.DeleteFunc(slices.Clone(files), func(f search.File) bool {
			key := keyOf(&f)
			again := had[key]
			had[key] = true
			return again
		})

		h.take(resp, files)
		if !h.more || h.size() >= want {
			break
		}
	}
	return h, nil
}

// ownLimit reports whether a query sets the number of shown matches itself.
func ownLimit(req search.Request) bool {
	q, err := query.Parse(req.Query, query.Options{Regexp: req.Regexp, CaseSensitive: req.CaseSensitive})
	return err == nil && q.Count > 0
}

// reached reports whether an answer ends at a limit.
func reached(resp *search.Response, limit int) bool {
	shown := max(resp.Stats.ActualMatches, len(resp.Files))
	return shown >= limit || resp.Stats.FlushReason == search.FlushLimit
}

// withoutCut returns the files of an answer without a last file that the limit cut; a later page
// has all of it.
func withoutCut(files []search.File, perFile int) []search.File {
	// A single file stays, even if it was cut.
	n := len(files) - 1
	if n < 1 {
		return files
	}

	// A search limits the matches of a file; that is no cut.
	all := files[n].Matches
	if perFile > 0 {
		all = min(all, perFile)
	}

	// A file that only matches by name has no ranges to cut.
	if rangesOf(files[n].Chunks) < all && len(files[n].Chunks) > 0 {
		return files[:n]
	}
	return files
}

// size returns the number of collected results, counted as the limit of a search counts them: of
// repositories if there are no files.
func (h *heap) size() int {
	if len(h.files) == 0 {
		return len(h.last.Repositories)
	}
	sum := 0
	for i := range h.files {
		sum += sizeOfFile(&h.files[i])
	}
	return sum
}

// sizeOfFile returns the number of a file's ranges, at least one.
func sizeOfFile(f *search.File) int { return max(1, rangesOf(f.Chunks)+len(f.NameRanges)) }

// page returns the files of the page that begins after from ranges, and where the next page begins.
// Each file is on one page, whatever from is.
func (h *heap) page(from int) (files []search.File, end int) {
	for i := range h.files {
		if end >= from+pageMatches {
			break
		}
		if end += sizeOfFile(&h.files[i]); end > from {
			files = append(files, h.files[i])
		}
	}
	return files, end
}

// isOfOneFile reports whether a query asks for places in one file of one repository. Such pages
// have all matches in order.
func isOfOneFile(req search.Request) bool {
	q, err := query.Parse(req.Query, query.Options{Regexp: req.Regexp, CaseSensitive: req.CaseSensitive})
	// A query with its own count or type wants something else.
	if err != nil || q.Type != query.AnyType || q.Count != query.NoCount {
		return false
	}
	all, ok := q.Q.(*query.And)
	if !ok {
		return false
	}

	repo, file, text := false, false, false
	for _, sub := range all.Subs {
		// One matching part of each of the three is enough, because all must hold.
		switch a := sub.(type) {
		case *query.RepoSet:
			repo = repo || len(a.Names) == 1
		case *query.Repo:
			repo = repo || whole(a.Pattern)
		case *query.Text:
			file = file || a.Field == query.Name && a.Regexp && whole(a.Pattern)
			text = text || a.Field != query.Name
		// An or counts as several texts.
		case *query.Or:
			text = true
		}
	}
	return repo && file && text
}

// whole reports whether an expression is a text between anchors, as ^main\.go$. A dot may stand
// for a byte that a query cannot contain.
func whole(expr string) bool {
	re, err := syntax.Parse(expr, syntax.Perl)
	if err != nil || re.Op != syntax.OpConcat || len(re.Sub) < 3 {
		return false
	}

	last := len(re.Sub) - 1
	// Check the structure, because a choice or repetition may mean many paths.
	literal := false
	for _, sub := range re.Sub[1:last] {
		switch sub.Op {
		case syntax.OpLiteral:
			literal = true
		// Bytes that a query cannot contain are written as a dot, see inFile.
		case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		default:
			return false
		}
	}

	// Both kinds of anchors are the same, because a path has one line.
	begin, end := re.Sub[0].Op, re.Sub[last].Op
	return literal && (begin == syntax.OpBeginText || begin == syntax.OpBeginLine) && (end == syntax.OpEndText || end == syntax.OpEndLine)
}

// behind returns files without their first n ranges.
func behind(files []search.File, n, around int) []search.File {
	for i := range files {
		size := sizeOfFile(&files[i])
		if n >= size {
			n -= size
			continue
		}

		// Copy, because the answer must not change.
		rest := slices.Clone(files[i:])
		rest[0].Chunks = chunksBehind(rest[0].Chunks, n, around)
		return rest
	}
	return nil
}

// chunksBehind returns chunks without their first n ranges. A cut chunk begins some lines before
// its next range.
func chunksBehind(chunks []shard.Chunk, n, around int) []shard.Chunk {
	for i := range chunks {
		c := chunks[i]
		if n >= len(c.Ranges) {
			n -= len(c.Ranges)
			continue
		}

		// Cut at whole lines, because numbers and colours begin with a line.
		skip := int(c.Ranges[n].Start.Line) - around - int(c.Start.Line)
		for ; skip > 0; skip-- {
			size := bytes.IndexByte(c.Content, '\n') + 1
			c.Content = c.Content[size:]
			c.Start.Offset += uint32(size)
			c.Start.Line, c.Start.Column = c.Start.Line+1, 1
		}

		// Lines that are shown again keep their marks.
		c.Ranges = slices.DeleteFunc(slices.Clone(c.Ranges), func(r shard.Range) bool { return r.End.Offset <= c.Start.Offset })
		return append([]shard.Chunk{c}, chunks[i+1:]...)
	}
	return nil
}
