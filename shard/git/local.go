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

// Local is a repository found in a directory of this machine.
type Local struct {
	Root      string // the directory asked for, cleaned
	OriginURL string // remote.origin.url; empty when not set
}

// OpenLocal looks at the repository whose root is dir, without writing
// anything. within is the directory that nothing of it may lead out of; empty
// is the one above dir. An error that is fs.ErrNotExist means that dir is not
// the root of a repository, one that is ErrOutside that what it has is not for
// us to show.
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

	// By its standard input: then git opens no file, and follows no include.
	c := &run.Command{Args: []string{"config", "--no-includes", "--file", "-", "--get", "remote.origin.url"}, Stdin: bytes.NewReader(text)}
	out, err := c.Output(ctx)
	var failed *run.Failure
	if errors.As(err, &failed) && failed.Exit == 1 { // not set
		return l, nil
	}
	l.OriginURL = strings.TrimSuffix(string(out), "\n")
	return l, err
}

// plainOrigin finds remote.origin.url in a configuration that is written in the
// common way, so that a listing of thousands of directories need not start git
// for each. ok is false where git has to be asked: the section or the value is
// quoted, continued, commented or there twice.
//
//	[remote "origin"]
//		url = https://example.org/a.git
func plainOrigin(text []byte) (address string, ok bool) {
	if !strings.Contains(strings.ToLower(string(text)), "origin") {
		return "", !strings.Contains(string(text), `\`) // which may write it in another way
	}

	// found counts the values so far, inside says whether the line is in the section.
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

// LocalURL is the file:// address of a directory.
func LocalURL(dir string) string {
	return (&url.URL{Scheme: "file", Path: dir}).String()
}
