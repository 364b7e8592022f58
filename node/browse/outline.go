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

// OutlineRequest asks what is defined in files, and where it ends.
type OutlineRequest struct {
	Repo, Ref string
	Paths     []string // files; a directory stands for the files in it; at most 20 files are looked at
}

// OutlineResponse has the files in the order of the request.
type OutlineResponse struct {
	Commit string
	Files  []OutlineFile
	Cut    bool // more than 20 files were meant, or time ran out
}

// OutlineFile is the symbols of a file, in the order of their lines.
type OutlineFile struct {
	Path     string
	Language string
	Lines    int
	Binary   bool
	Symbols  []OutlineSymbol
	Unknown  bool // the symbols could not be found
}

// OutlineSymbol is a definition.
type OutlineSymbol struct {
	Name, Kind             string
	ParentName, ParentKind string // what it is defined in; "" at the top
	Signature              string // of a function, as (a int); "" where that is not known
	First, Last            int    // lines, from 1
}

const (
	outlineFiles = 20
	outlineBytes = 4<<20 + 1 // of one file: more than the pool takes, which so refuses a file that is cut here
	outlineTime  = 5 * time.Second
)

// Outline finds the symbols of files at any commit, as the index would.
func (b *Browser) Outline(ctx context.Context, v catalog.Viewer, req OutlineRequest) (*OutlineResponse, error) {
	if len(req.Paths) == 0 {
		return nil, call.Fail(call.ErrInvalid, "path must not be empty")
	}
	return route(ctx, b, v, req.Repo, outlineOperation, req)
}

var outlineOperation = operation[OutlineRequest, OutlineResponse]{name: "outline", run: answerOutline, heavy: true}

// answerOutline lists the symbols of files. They are found anew at each call: any commit may be asked for.
func answerOutline(ctx context.Context, s *site, req OutlineRequest) (*OutlineResponse, error) {
	if s.outlines == nil {
		return nil, call.Fail(call.ErrUnavailable, "this node cannot find symbols: universal-ctags is not installed or switched off")
	}

	commit, err := s.resolve(ctx, req.Ref)
	if err != nil {
		return nil, err
	}

	// Texts are gathered first: the program that finds symbols takes them as one run.
	out := &OutlineResponse{Commit: commit}
	texts, err := s.outlineTexts(ctx, commit, req.Paths, out)
	if err != nil {
		return nil, err
	}
	return out, findSymbols(ctx, s.outlines, texts, out)
}

// outlineTexts reads the files that are meant by paths, and names them in out.
func (s *site) outlineTexts(ctx context.Context, commit string, paths []string, out *OutlineResponse) (texts []symbol.File, err error) {
	// The root has no entry of its own, so that its path is told by its text.
	for _, p := range paths {
		p = s.pathOf(ctx, commit, p)
		files := []string{p}
		if e, err := s.mirror.Stat(ctx, commit, p); err == nil && e.Kind == git.Dir || strings.Trim(p, "/.") == "" {
			if files, err = s.filesIn(ctx, commit, p); err != nil {
				return nil, err
			}
		}

		for _, file := range files {
			// Told and not refused: the first files are an answer.
			if len(out.Files) == outlineFiles {
				out.Cut = true
				return texts, nil
			}
			src, err := s.mirror.Source(ctx, commit, file, git.SourceOptions{MaxBytes: outlineBytes})
			if err != nil {
				return nil, s.explain(ctx, err, commit, file)
			}

			// A binary file is named, so that nobody wonders where it is.
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

// filesIn lists the files of a directory, without those below.
func (s *site) filesIn(ctx context.Context, commit, dir string) ([]string, error) {
	dir = strings.Trim(strings.TrimPrefix(dir, "./"), "/.")
	entries, _, err := s.mirror.List(ctx, commit, dir, git.ListOptions{Depth: 1})
	if err != nil {
		return nil, s.explain(ctx, err, commit, dir)
	}

	// A link is no file of its own: what it leads to is listed where it lies.
	var files []string
	for _, e := range entries {
		if e.Kind.IsBlob() && e.Kind != git.Symlink {
			files = append(files, e.Path)
		}
	}
	return files, nil
}

// findSymbols fills in the symbols of files. Of a file that the pool fails on, or does
// not reach in time, they stay unknown.
func findSymbols(ctx context.Context, pool *symbol.Pool, texts []symbol.File, out *OutlineResponse) error {
	looked, cancel := context.WithTimeout(ctx, outlineTime)
	defer cancel()

	// Symbols of a file come before its end is told.
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
		// All that came since the end of the last file is of this one.
		if err == nil {
			slices.SortStableFunc(found, func(a, b OutlineSymbol) int { return a.First - b.First })
			out.Files[i].Symbols, out.Files[i].Unknown = found, false
		}

		found = nil
	})

	// What was found until then is an answer.
	if looked.Err() != nil && ctx.Err() == nil {
		out.Cut, err = true, nil
	}
	return err
}
