package browse

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/shard"
	"github.com/shoalsearch/shoal/shard/git"
	"github.com/shoalsearch/shoal/shard/symbol"
)

// OutlineRequest asks for the definitions in files.
type OutlineRequest struct {
	Repo, Ref string
	Paths     []string // files, or directories for the files in them; at most 20 files
}

// OutlineResponse has the files in the order of the request.
type OutlineResponse struct {
	Commit string
	Files  []OutlineFile
	Cut    bool // there are more than 20 files, or time ran out
}

// OutlineFile lists the symbols of a file by line.
type OutlineFile struct {
	Path     string
	Language string
	Lines    int
	Binary   bool
	Symbols  []OutlineSymbol
	Unknown  bool // the symbols could not be determined
}

// OutlineSymbol is a definition.
type OutlineSymbol struct {
	Name, Kind             string
	ParentName, ParentKind string // the enclosing definition; "" at the top level
	Signature              string // of a function, as (a int); "" if unknown
	First, Last            int    // lines, from 1
}

const (
	outlineFiles = 20
	outlineBytes = 4<<20 + 1 // of one file; one more than the pool accepts, so that it refuses a file cut here
	outlineTime  = 5 * time.Second
)

// Outline returns the symbols of files at any commit, the same as the index would have.
func (b *Browser) Outline(ctx context.Context, v catalog.Viewer, req OutlineRequest) (*OutlineResponse, error) {
	if len(req.Paths) == 0 {
		return nil, call.Fail(call.ErrInvalid, "path must not be empty")
	}
	return route(ctx, b, v, req.Repo, outlineOperation, req)
}

var outlineOperation = operation[OutlineRequest, OutlineResponse]{name: "outline", run: answerOutline, heavy: true}

// answerOutline returns the symbols of files. It runs ctags on each call, because any commit may
// be requested.
func answerOutline(ctx context.Context, s *site, req OutlineRequest) (*OutlineResponse, error) {
	if s.outlines == nil {
		return nil, call.Fail(call.ErrUnavailable, "this node cannot find symbols: universal-ctags is not installed or switched off")
	}

	commit, err := s.resolve(ctx, req.Ref)
	if err != nil {
		return nil, err
	}

	// Read all files first: ctags takes them in one run.
	out := &OutlineResponse{Commit: commit}
	texts, err := s.outlineTexts(ctx, commit, req.Paths, out)
	if err != nil {
		return nil, err
	}
	return out, findSymbols(ctx, s.outlines, texts, out)
}

// outlineTexts reads the requested files, and adds them to out without symbols.
func (s *site) outlineTexts(ctx context.Context, commit string, paths []string, out *OutlineResponse) (texts []symbol.File, err error) {
	// The root has no tree entry, so recognize it by its path.
	for _, p := range paths {
		p = s.pathOf(ctx, commit, p)
		files := []string{p}
		if e, err := s.mirror.Stat(ctx, commit, p); err == nil && e.Kind == git.Dir || strings.Trim(p, "/.") == "" {
			if files, err = s.filesIn(ctx, commit, p); err != nil {
				return nil, err
			}
		}

		for _, file := range files {
			// Cut instead of failing: the first files are an answer.
			if len(out.Files) == outlineFiles {
				out.Cut = true
				return texts, nil
			}
			src, err := s.mirror.Source(ctx, commit, file, git.SourceOptions{MaxBytes: outlineBytes})
			if err != nil {
				return nil, s.explainError(ctx, err, commit, file)
			}

			// List a binary file too, without symbols.
			lang := shard.Language(src.Path, src.Content)
			if src.Binary {
				src.Content = nil
			}
			out.Files = append(out.Files, OutlineFile{Path: src.Path, Language: lang, Lines: src.Lines, Binary: src.Binary, Unknown: true})
			texts = append(texts, symbol.File{Path: src.Path, Language: lang, Content: src.Content})
		}
	}
	return texts, nil
}

// filesIn lists the files of a directory, without subdirectories.
func (s *site) filesIn(ctx context.Context, commit, dir string) ([]string, error) {
	dir = strings.Trim(strings.TrimPrefix(dir, "./"), "/.")
	entries, _, err := s.mirror.List(ctx, commit, dir, git.ListOptions{Depth: 1})
	if err != nil {
		return nil, s.explainError(ctx, err, commit, dir)
	}

	// Skip symbolic links: their targets are listed where they are.
	var files []string
	for _, e := range entries {
		if e.Kind.IsBlob() && e.Kind != git.Symlink {
			files = append(files, e.Path)
		}
	}
	return files, nil
}

// findSymbols fills in the symbols. A file that ctags fails on or does not reach in time stays
// Unknown.
func findSymbols(ctx context.Context, pool *symbol.Pool, texts []symbol.File, out *OutlineResponse) error {
	looked, cancel := context.WithTimeout(ctx, outlineTime)
	defer cancel()

	// The pool reports the symbols of a file first, then the end of the file.
	var found []OutlineSymbol
	err := pool.Tag(looked, texts, func(y symbol.Symbol) {
		found = append(found, OutlineSymbol{
			Name:       string(y.Name),
			Kind:       y.Kind,
			ParentName: string(y.ParentName),
			ParentKind: y.ParentKind,
			Signature:  string(y.Signature),
			First:      int(y.Line),
			Last:       int(max(y.Line, y.End)),
		})
	}, func(i int, err error) {
		// found has the symbols since the end of the previous file.
		if err == nil {
			slices.SortStableFunc(found, func(a, b OutlineSymbol) int { return a.First - b.First })
			out.Files[i].Symbols, out.Files[i].Unknown = found, false
		}

		found = nil
	})

	// If only outlineTime ran out, the files so far are the answer.
	if looked.Err() != nil && ctx.Err() == nil {
		out.Cut, err = true, nil
	}
	return err
}
