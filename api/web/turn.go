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

// depths has the limits of the searches whose results are divided into pages. A search with a higher
// limit may find matches that rank before those of a lower one. So the files of a deeper search that
// earlier ones did not find are appended to theirs.
//
// Each limit allows one file more than fits on its pages: if the limit cuts the last file, that moves to
// a later page, and the page is still full.
var depths = []int{pageMatches + perFile, 4*pageMatches + perFile, 16*pageMatches + perFile, mostMatches}

// depthsOf returns the depths for pages with want ranges altogether. A query that counts all matches has
// a fixed order, so it needs no search with a lower depth first.
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

// heap has the files of all pages up to the shown one, or found commits.
type heap struct {
	files []search.File    // in the order of the pages
	last  *search.Response // answer of the deepest search, whose counts the page shows
	more  bool             // a deeper search may find further files
	ends  bool             // there are further files, but no page shows them

	commits *search.CommitsResponse // answer of a search for commits; nil for files

	branches map[uint32]string // default branch of each repository
}

// add appends files of an answer, which becomes the last one.
func (h *heap) add(resp *search.Response, files []search.File) {
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

// gather runs deeper and deeper searches until their files fill pages with want ranges altogether, or
// there are no further files.
func (p *searching) gather(ctx context.Context, v catalog.Viewer, req search.Request, want int) (*heap, error) {
	h := &heap{}
	ownLimit := hasOwnLimit(req)
	added := map[fileKey]bool{}
	deepest := depths[len(depths)-1]
	for _, limit := range depthsOf(req.Query, want) {
		req.Matches = limit
		resp, err := p.searcher.Search(ctx, v, req)
		if err != nil {
			return nil, err
		}

		// A deeper search finds no more if the query has its own limit.
		cut := endsAtLimit(resp, limit) && !ownLimit
		h.more, h.ends = cut && limit < deepest, cut && limit == deepest

		files := resp.Files
		if h.more {
			files = withoutCut(files, req.PerFile)
		}
		files = slices.DeleteFunc(slices.Clone(files), func(f search.File) bool {
			key := keyOf(&f)
			known := added[key]
			added[key] = true
			return known
		})

		h.add(resp, files)
		if !h.more || h.size() >= want {
			break
		}
	}
	return h, nil
}

// hasOwnLimit reports whether a query limits the number of matches itself, by count:.
func hasOwnLimit(req search.Request) bool {
	q, err := query.Parse(req.Query, query.Options{Regexp: req.Regexp, CaseSensitive: req.CaseSensitive})
	return err == nil && q.Count > 0
}

// endsAtLimit reports whether an answer ends at a limit, so that there may be further results.
func endsAtLimit(resp *search.Response, limit int) bool {
	shown := max(resp.Stats.ActualMatches, len(resp.Files))
	return shown >= limit || resp.Stats.FlushReason == search.FlushLimit
}

// withoutCut returns the files of an answer without the last one if the limit of the search has cut it.
// A later page then has that file whole. A single file stays.
func withoutCut(files []search.File, perFile int) []search.File {
	n := len(files) - 1
	if n < 1 {
		return files
	}

	// The limit of the ranges of each file is no cut.
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

// size returns the number of results as the limit of a search counts them: ranges of files, or
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

// sizeOfFile returns the number of a file's ranges, but at least one.
func sizeOfFile(f *search.File) int { return max(1, rangesOf(f.Chunks)+len(f.NameRanges)) }

// page returns the files of the page that begins after from ranges, and the number of ranges up to its
// end. No file is divided between two pages.
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

// isOfOneFile reports whether a query searches for text in one file of one repository. The pages of such
// a search have all matches in the order of the file.
func isOfOneFile(req search.Request) bool {
	q, err := query.Parse(req.Query, query.Options{Regexp: req.Regexp, CaseSensitive: req.CaseSensitive})
	if err != nil || q.Type != query.AnyType || q.Count != query.NoCount {
		return false
	}
	all, ok := q.Q.(*query.And)
	if !ok {
		return false
	}

	// Each file of the answer matches all parts, so one part that names the repository, one that names
	// the file, and one with a text are enough.
	repo, file, text := false, false, false
	for _, sub := range all.Subs {
		switch a := sub.(type) {
		case *query.RepoSet:
			repo = repo || len(a.Names) == 1
		case *query.Repo:
			repo = repo || isAnchoredText(a.Pattern)
		case *query.Text:
			file = file || a.Field == query.Name && a.Regexp && isAnchoredText(a.Pattern)
			text = text || a.Field != query.Name
		case *query.Or:
			text = true
		}
	}
	return repo && file && text
}

// isAnchoredText reports whether an expression is a text between anchors, such as ^main\.go$. The text
// may have dots: inFile writes one for a byte that a query cannot contain.
func isAnchoredText(expr string) bool {
	re, err := syntax.Parse(expr, syntax.Perl)
	if err != nil || re.Op != syntax.OpConcat || len(re.Sub) < 3 {
		return false
	}

	last := len(re.Sub) - 1
	// Refuse all operators except the dot: a choice or a repetition could match several paths.
	literal := false
	for _, sub := range re.Sub[1:last] {
		switch sub.Op {
		case syntax.OpLiteral:
			literal = true
		case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		default:
			return false
		}
	}

	// A path has one line, so the anchors of lines and of texts mean the same.
	begin, end := re.Sub[0].Op, re.Sub[last].Op
	return literal && (begin == syntax.OpBeginText || begin == syntax.OpBeginLine) && (end == syntax.OpEndText || end == syntax.OpEndLine)
}

// withoutFirst returns files without their first n ranges. The first chunk that is left begins at most
// around lines before its first range.
func withoutFirst(files []search.File, n, around int) []search.File {
	for i := range files {
		size := sizeOfFile(&files[i])
		if n >= size {
			n -= size
			continue
		}

		// Copy the files, because other parts of the page use the answer.
		rest := slices.Clone(files[i:])
		rest[0].Chunks = chunksWithoutFirst(rest[0].Chunks, n, around)
		return rest
	}
	return nil
}

// chunksWithoutFirst is withoutFirst for the chunks of a file.
func chunksWithoutFirst(chunks []shard.Chunk, n, around int) []shard.Chunk {
	for i := range chunks {
		c := chunks[i]
		if n >= len(c.Ranges) {
			n -= len(c.Ranges)
			continue
		}

		// Remove whole lines, because a chunk begins with a line.
		skip := int(c.Ranges[n].Start.Line) - around - int(c.Start.Line)
		for ; skip > 0; skip-- {
			size := bytes.IndexByte(c.Content, '\n') + 1
			c.Content = c.Content[size:]
			c.Start.Offset += uint32(size)
			c.Start.Line, c.Start.Column = c.Start.Line+1, 1
		}

		// Ranges of the previous page keep their marks if their lines are shown again.
		c.Ranges = slices.DeleteFunc(slices.Clone(c.Ranges), func(r shard.Range) bool { return r.End.Offset <= c.Start.Offset })
		return append([]shard.Chunk{c}, chunks[i+1:]...)
	}
	return nil
}
