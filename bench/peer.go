package bench

import (
	"bytes"
	"context"
	"path/filepath"
	"strconv"
	"time"
)

// ripgrep counts the files and matches of a query in all files of a tree.
func ripgrep(ctx context.Context, tree string, q Query, options ...string) (files, matches int, took time.Duration, err error) {
	// Search the same files as Shoal: also hidden ones, but neither large ones nor those of git.
	args := []string{"--count-matches", "--no-ignore", "--hidden", "--no-messages", "--max-filesize", strconv.Itoa(maxText), "--glob", "!.complete", "--glob", "!.git"}
	if !q.Regexp {
		args = append(args, "--fixed-strings")
	}

	if !q.Case {
		args = append(args, "--ignore-case")
	}
	args = append(args, options...)
	u, err := measure(ctx, tree, nil, "rg", append(args, "-e", q.Text, ".")...)
	files, matches = countLines(u.Out)
	return files, matches, u.Wall, err
}

// csearch runs a query on the index that cindex has built, and returns its time.
func csearch(ctx context.Context, tree, index string, q Query) (time.Duration, error) {
	text := q.Text
	if !q.Regexp {
		text = quoteMeta(text)
	}
	args := []string{"-c"}
	if !q.Case {
		args = append(args, "-i")
	}
	u, err := measure(ctx, tree, []string{"CSEARCHINDEX=" + index}, "csearch", append(args, text)...)
	return u.Wall, err
}

// cindex builds csearch's index of a tree, and returns its cost and the path of the index.
func (r *run) cindex(ctx context.Context, tree string) (usage, string, error) {
	index := filepath.Join(r.Dir, "csearch.index")
	u, err := measure(ctx, tree, []string{"CSEARCHINDEX=" + index}, "cindex", "-reset", tree)
	return u, index, err
}

func countLines(out []byte) (files, matches int) {
	for line := range bytes.Lines(out) {
		line = bytes.TrimSpace(line)
		i := bytes.LastIndexByte(line, ':')
		if n, err := strconv.Atoi(string(line[i+1:])); err == nil {
			files++
			matches += n
		}
	}
	return files, matches
}

// quoteMeta escapes the operators in a text for csearch, and every minus: csearch would take one at the
// beginning for a flag.
func quoteMeta(s string) string {
	var b bytes.Buffer
	for i := range len(s) {
		if bytes.IndexByte([]byte(`\.+*?()|[]{}^$-`), s[i]) >= 0 {
			b.WriteByte('\\')
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
