package node

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/shoalsearch/shoal/shard"
	"github.com/shoalsearch/shoal/shard/git"
	"github.com/shoalsearch/shoal/shard/match"
)

// The bounds of a search in a commit that is not indexed.
const (
	scanTime  = 20 * time.Second // then what was found so far is the answer
	scanLines = 2000             // shown of one file
	scanBytes = 32 << 20         // of lines, in all
)

// grepOperation searches a commit that is not indexed: every file is read, so
// that the answer has the same files in the same order as one of the index.
func grepOperation() operation[GrepRequest, GrepResponse] {
	return operation[GrepRequest, GrepResponse]{name: "grep", run: func(ctx context.Context, s *site, req GrepRequest) (*GrepResponse, error) {
		m, err := match.Compile(req.Pattern, match.Options{})
		if err != nil {
			return nil, fail(ErrInvalid, "pattern: %v", err)
		}
		commit, keep, err := s.scanOf(ctx, req.Ref, req.Path, req.Include)
		if err != nil {
			return nil, err
		}
		defer context.AfterFunc(ctx, m.Stop)()
		f := &finder{m: m, limit: req.Limit, counting: req.GroupByRepo, until: time.Now().Add(scanTime)}
		o := git.ScanOptions{Dir: strings.Trim(req.Path, "/"), Keep: keep, MaxSize: s.maxFileSize()}
		if o.Dir == "." {
			o.Dir = ""
		}
		if _, err := s.mirror.Scan(ctx, commit, o, f.visit); err != nil {
			return nil, err
		}
		return f.response(s, req), nil
	}}
}

// maxFileSize is the size of the largest files that are searched.
func (s *site) maxFileSize() int64 {
	if s.n == nil {
		return 0 // the default
	}
	return s.n.cluster.View().File().Settings.MaxFileSize
}

// finder gathers the files with a match, the best of them with their lines.
type finder struct {
	m        *match.Matcher
	limit    int
	counting bool
	until    time.Time

	files   []scored
	matches int // lines, of all files
	found   int // files, kept or not
	bytes   int // of lines in files
	late    bool
	spans   []match.Span
}

type scored struct {
	path  string
	score float64
	lines []GrepLine
}

// visit looks at one file.
func (f *finder) visit(e git.Entry, content []byte) bool {
	if f.late = time.Now().After(f.until); f.late {
		return false
	}
	if bytes.IndexByte(content, 0) >= 0 {
		return true
	}
	f.spans = f.m.Append(f.spans[:0], content, -1)
	lines, count := matchingLines(content, f.spans)
	if count == 0 {
		return true
	}
	f.found++
	f.matches += count
	if f.counting {
		return true
	}
	f.files = append(f.files, scored{e.Path, shard.ScoreText(e.Path, content, f.spans), lines})
	for _, l := range lines {
		f.bytes += len(l.Text)
	}
	if len(f.files) >= 2*f.limit+100 || f.bytes > scanBytes {
		f.trim()
	}
	return true
}

// trim keeps the best files, and of them no more lines than there is room
// for.
func (f *finder) trim() {
	slices.SortFunc(f.files, func(a, b scored) int { return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.path, b.path)) })
	f.files = f.files[:min(len(f.files), f.limit)]
	f.bytes = 0
	for i := range f.files {
		for j, l := range f.files[i].lines {
			if f.bytes += len(l.Text); f.bytes > scanBytes/2 && j > 0 {
				f.files[i].lines = f.files[i].lines[:j]
				break
			}
		}
	}
}

func (f *finder) response(s *site, req GrepRequest) *GrepResponse {
	out := &GrepResponse{}
	switch {
	case f.late:
		out.Cut, out.CutWhy = true, "This revision is not indexed and reading it took too long; a path or include makes it quicker."
	case f.found > f.limit && !f.counting:
		out.Cut, out.CutWhy = true, fmt.Sprintf("More files match than the limit of %d shows; raise limit, or be more specific.", f.limit)
	}
	if f.counting {
		out.Matches = f.matches
		if f.found > 0 {
			out.Repos = []GrepRepo{{Repo: s.repo.Name, Files: f.found, Matches: f.matches}}
		}
		return out
	}
	f.trim()
	for _, found := range f.files {
		g := GrepFile{Repo: s.repo.Name, Path: found.path, Lines: found.lines}
		if s.n != nil {
			g.WebURL = webURL(s.n.opt.BaseURL, s.repo.Name, req.Ref, "blob", found.path)
		}
		out.Files = append(out.Files, g)
		out.Matches += len(found.lines)
	}
	return out
}

// scanOf resolves what a scan of a mirror is about.
func (s *site) scanOf(ctx context.Context, ref, dir, glob string) (commit string, keep func(string) bool, err error) {
	commit, err = s.resolve(ctx, ref)
	if err != nil {
		return "", nil, err
	}
	names, err := pathPattern(dir, glob)
	if err != nil {
		return "", nil, err
	}
	re, err := regexp.Compile(names)
	if err != nil {
		return "", nil, fail(ErrInvalid, "glob: %v", err)
	}
	return commit, re.MatchString, nil
}

// matchingLines lists the first lines of a text that a match touches, and
// counts all of them. An empty match touches the line it is in.
func matchingLines(content []byte, spans []match.Span) (lines []GrepLine, count int) {
	line, counted, last := 1, 0, 0
	for _, sp := range spans {
		line += bytes.Count(content[counted:sp.Start], []byte("\n"))
		counted = sp.Start
		begin := bytes.LastIndexByte(content[:sp.Start], '\n') + 1
		for number := line; begin < max(sp.End, sp.Start+1); number++ {
			end := len(content)
			if i := bytes.IndexByte(content[begin:], '\n'); i >= 0 {
				end = begin + i
			}
			if number > last {
				count, last = count+1, number
				if len(lines) < scanLines {
					lines = append(lines, GrepLine{Number: number, Text: bytes.Clone(bytes.TrimRight(content[begin:end], "\r"))})
				}
			}
			begin = end + 1
		}
	}
	return lines, count
}

// globOperation lists paths of a commit that is not indexed.
func globOperation() operation[GlobRequest, GlobResponse] {
	return operation[GlobRequest, GlobResponse]{name: "glob", run: func(ctx context.Context, s *site, req GlobRequest) (*GlobResponse, error) {
		commit, keep, err := s.scanOf(ctx, req.Ref, req.Path, req.Pattern)
		if err != nil {
			return nil, err
		}
		files, err := s.mirror.Files(ctx, commit, git.ScanOptions{Keep: keep})
		if err != nil {
			return nil, err
		}
		best := make([]scored, len(files))
		for i, e := range files {
			best[i] = scored{path: e.Path, score: shard.ScoreText(e.Path, nil, nil)}
		}
		f := &finder{limit: req.Limit, files: best}
		f.trim()
		out := &GlobResponse{Files: len(f.files)}
		if len(best) > req.Limit {
			out.Cut, out.CutWhy = true, fmt.Sprintf("More files match than the limit of %d shows; raise limit, or be more specific.", req.Limit)
		}
		if len(f.files) > 0 {
			one := GlobRepo{Repo: s.repo.Name}
			for _, found := range f.files {
				one.Paths = append(one.Paths, found.path)
			}
			slices.Sort(one.Paths)
			out.Repos = []GlobRepo{one}
		}
		return out, nil
	}}
}
