package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
)

// reference writes answers in the format of the product that Shoal replaces,
// made of what this node knows: so the formats alone are compared, not the
// engines. Its bounds are that product's: 100 matches of a search, 5 KB of a
// file, no bound on a difference, whole messages of commits.
type reference struct {
	s    *server
	repo string
}

const (
	referenceMatches = 100
	referenceRead    = 5 << 10
	referenceLine    = 2000
)

// grep finds lines, case-sensitively, in files that an expression matches.
func (f reference) grep(ctx context.Context, pattern, file string) (string, error) {
	query := "repo:^" + f.repo + "$ " + pattern
	if file != "" {
		query += " file:" + file
	}

	body, err := json.Marshal(map[string]any{"query": query, "matches": referenceMatches, "isRegexEnabled": true, "isCaseSensitivityEnabled": true})
	if err != nil {
		return "", err
	}

	var a struct {
		Files []struct {
			FileName struct{ Text string }
			Chunks   []struct {
				Content      string
				ContentStart struct{ LineNumber int }
			}
		}
		IsSearchExhaustive bool
	}

	if err := f.s.post(ctx, "/api/search", body, &a); err != nil {
		return "", err
	}

	// Its tool lists matches by file, with the numbers of their lines.
	var out strings.Builder
	matches := 0
	for _, file := range a.Files {
		fmt.Fprintf(&out, "\n[%s] %s:", f.repo, file.FileName.Text)
		for _, c := range file.Chunks {
			for i, line := range strings.Split(strings.TrimSuffix(c.Content, "\n"), "\n") {
				matches++
				fmt.Fprintf(&out, "\n  %d: %s", c.ContentStart.LineNumber+i, line[:min(len(line), referenceLine)])
			}
		}
	}

	text := fmt.Sprintf("Found %d match(es) in %d file(s)\n%s", matches, len(a.Files), out.String())
	if !a.IsSearchExhaustive {
		text += "\n\n(Results truncated. Consider using a more specific path or pattern, specifying a repo, or increasing the limit.)"
	}
	return text, nil
}

// symbols finds definitions or references.
func (f reference) symbols(ctx context.Context, path, name string) (string, error) {
	body, err := json.Marshal(map[string]string{"symbolName": name, "repoName": f.repo})
	if err != nil {
		return "", err
	}

	var a struct {
		Stats struct{ MatchCount int }
		Files []struct {
			FileName string
			Matches  []struct {
				LineContent string
				Range       struct{ Start struct{ LineNumber int } }
			}
		}
	}

	if err := f.s.post(ctx, path, body, &a); err != nil {
		return "", err
	}

	// The lines as its tool prints them; it has no kinds and no parents.
	var out strings.Builder
	fmt.Fprintf(&out, "Found %d %s in %d files\n", a.Stats.MatchCount, strings.TrimPrefix(path, "/api/find_"), len(a.Files))

	for _, file := range a.Files {
		fmt.Fprintf(&out, "\n[%s] %s:", f.repo, file.FileName)
		for _, m := range file.Matches {
			fmt.Fprintf(&out, "\n  %d: %s", m.Range.Start.LineNumber, m.LineContent)
		}
	}
	return out.String(), nil
}

// read reads lines from one on until its bound, or until stop is in what was
// read, call by call.
func (f reference) read(ctx context.Context, path, ref string, from, limit int, stop string) (texts []string, err error) {
	var a struct{ Source, ExternalWebURL string }
	args := url.Values{"repo": {f.repo}, "path": {path}, "ref": {ref}}
	if err := f.s.get(ctx, "/api/source?"+args.Encode(), &a); err != nil {
		return nil, err
	}

	// Call by call, each with at most 500 lines and 5 KB, as its tool answers.
	lines := strings.Split(strings.TrimSuffix(a.Source, "\n"), "\n")
	for end := min(len(lines), from-1+limit); from <= end; {
		var out strings.Builder
		fmt.Fprintf(&out, "<repo>%s</repo>\n<path>%s</path>\n<url>%s</url>\n<content>\n", f.repo, path, a.ExternalWebURL)
		first, room := from, referenceRead
		for ; from <= end && from < first+500; from++ {
			line := fmt.Sprintf("%d: %s\n", from, lines[from-1][:min(len(lines[from-1]), referenceLine)])
			if room -= len(line); room < 0 {
				break
			}
			out.WriteString(line)
		}

		switch {
		case room < 0:
			fmt.Fprintf(&out, "\n(Output capped at 5KB. Showing lines %d-%d of %d. Use offset=%d to continue.)", first, from-1, len(lines), from)
		case from <= len(lines):
			fmt.Fprintf(&out, "\n(Showing lines %d-%d of %d. Use offset=%d to continue.)", first, from-1, len(lines), from)
		default:
			fmt.Fprintf(&out, "\n(End of file - %d lines total)", len(lines))
		}

		out.WriteString("\n</content>")
		texts = append(texts, out.String())
		if stop != "" && strings.Contains(out.String(), stop) {
			break
		}
	}

	return texts, nil
}

// commits lists commits whose message has some words.
func (f reference) commits(ctx context.Context, query string) (string, error) {
	args := url.Values{"repo": {f.repo}, "query": {query}}
	var list []json.RawMessage
	if err := f.s.get(ctx, "/api/commits?"+args.Encode(), &list); err != nil {
		return "", err
	}
	text, err := json.Marshal(map[string]any{"commits": list, "totalCount": len(list)})
	return string(text), err
}

// diff compares two revisions.
func (f reference) diff(ctx context.Context, base, head, path string) (string, error) {
	args := url.Values{"repo": {f.repo}, "base": {base}, "head": {head}}
	if path != "" {
		args.Set("path", path)
	}
	type lines struct{ Start, Lines int }

	var a struct {
		Files []struct {
			OldPath, NewPath *string
			Hunks            []struct {
				OldRange, NewRange lines
				Heading, Body      string
			}
		}
	}

	if err := f.s.get(ctx, "/api/diff?"+args.Encode(), &a); err != nil {
		return "", err
	}

	// Whole, whatever its size: its tool has no bound.
	side := func(prefix string, path *string) string {
		if path == nil {
			return "/dev/null"
		}
		return prefix + *path
	}

	var out strings.Builder
	for _, file := range a.Files {
		fmt.Fprintf(&out, "--- %s\n+++ %s\n", side("a/", file.OldPath), side("b/", file.NewPath))
		for _, h := range file.Hunks {
			fmt.Fprintf(&out, "@@ -%d,%d +%d,%d @@ %s\n%s", h.OldRange.Start, h.OldRange.Lines, h.NewRange.Start, h.NewRange.Lines, h.Heading, h.Body)
		}
	}
	return out.String(), nil
}

// tree and paths rewrite a listing of this product: what is listed is the
// same.
func (f reference) tree(listing, path string) string {
	out := path
	for _, line := range body(listing) {
		name := strings.TrimLeft(line, " ")
		out += "\n" + strings.Repeat("  ", len(line)-len(name)+1) + name
	}
	return out
}

func (f reference) paths(listing, pattern string) string {
	lines := body(listing)
	out := fmt.Sprintf("Found %d files matching %q:\n\n[%s]", len(lines), pattern, f.repo)
	for _, line := range lines {
		out += "\n  " + line
	}
	return out
}

// body is a text of this product without its first and its last line.
func body(text string) []string {
	lines := strings.Split(text, "\n")
	return lines[1 : len(lines)-1]
}
