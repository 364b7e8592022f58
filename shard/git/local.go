package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/shoalsearch/shoal/shard/git/run"
)

// Local is a repository in a directory of this machine.
type Local struct {
	Root      string // the cleaned directory
	OriginURL string // remote.origin.url; empty if not set
}

// OpenLocal looks at the repository whose root is dir. It writes nothing. Nothing of the repository
// may lead out of the directory within; empty means the parent of dir. An error that is
// fs.ErrNotExist means that dir is not the root of a repository. ErrOutside means that we must not
// show what it has.
func OpenLocal(ctx context.Context, dir, within string) (Local, error) {
	f, err := openForeign(dir, within)
	if err != nil {
		return Local{}, err
	}
	defer f.close()

	l := Local{Root: f.asked}
	text, err := f.config()
	if err != nil {
		return l, fmt.Errorf("%s: %w", f.asked, err)
	}
	if name, ok := plainOrigin(text); ok {
		l.OriginURL = name
		return l, nil
	}

	// Pass the file on standard input: then git opens no file and follows no include.
	c := &run.Command{Args: []string{"config", "--no-includes", "--file", "-", "--get", "remote.origin.url"}, Stdin: bytes.NewReader(text)}
	out, err := c.Output(ctx)
	var failed *run.Failure
	if errors.As(err, &failed) && failed.Exit == 1 { // not set
		return l, nil
	}
	l.OriginURL = strings.TrimSuffix(string(out), "\n")
	return l, err
}

// plainOrigin finds remote.origin.url in a configuration written in the usual way, so that listing
// thousands of directories need not start git for each. ok is false if the caller must ask git: the
// section or the value is quoted, continued, commented or repeated.
//
//	[remote "origin"]
//		url = https://example.org/a.git
func plainOrigin(text []byte) (address string, ok bool) {
	if !strings.Contains(strings.ToLower(string(text)), "origin") {
		return "", !strings.Contains(string(text), `\`) // an escape may write the name in another way
	}

	// found counts the values so far. inside says whether the line is in the section.
	found, inside := 0, false
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			inside = line == `[remote "origin"]`
			lower := strings.ToLower(line)

			if !inside && strings.Contains(lower, "remote") && strings.Contains(lower, "origin") {
				return "", false // written in another way
			}
			continue
		}

		if key, value, _ := strings.Cut(line, "="); inside && strings.EqualFold(strings.TrimSpace(key), "url") {
			found++
			address = strings.TrimSpace(value)
		}
	}
	return address, found <= 1 && !strings.ContainsAny(address, "\\\"#;") && !strings.Contains(string(text), "\\\n")
}

// LocalURL returns the file:// address of a directory.
func LocalURL(dir string) string {
	return (&url.URL{Scheme: "file", Path: dir}).String()
}
