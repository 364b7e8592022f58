package git

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"strings"

	"github.com/shoalsearch/shoal/node/lru"
	"github.com/shoalsearch/shoal/shard/git/pack"
)

// The files at the root of the default branch that say how history is to be read, and how
// many bytes of one are read: a longer one counts as missing.
const (
	mailmapFile = ".mailmap"
	ignoreFile  = ".git-blame-ignore-revs"
	maxRules    = 1 << 20
)

// rules is what those files say.
type rules struct {
	mailmap *Mailmap
	ignored map[string]bool // ids of commits that blame looks past
}

// rulesReader reads them, and remembers them.
type rulesReader struct {
	*base
	files *files
	known *lru.Cache[string, rules] // by commit of HEAD
}

// rules reads how history is to be read. As in git of a bare repository the default branch
// says so, for all revisions: an old one does not know its later corrections.
func (h *rulesReader) rules(ctx context.Context) (r rules, err error) {
	s, err := h.refs(ctx)
	if err != nil || s.head == "" {
		return r, err
	}
	if known, ok := h.known.Get(s.head); ok {
		return known, nil
	}

	text, oid, err := h.rulesFile(ctx, s.head, mailmapFile)
	if err != nil {
		return r, err
	}
	r.mailmap = parseMailmap(oid, text)
	if text, _, err = h.rulesFile(ctx, s.head, ignoreFile); err != nil {
		return r, err
	}
	r.ignored = parseIgnored(text)
	h.known.Put(s.head, r, 1)
	return r, nil
}

// rulesFile reads one of the files; nil where there is none.
func (h *rulesReader) rulesFile(ctx context.Context, commit, path string) (text []byte, oid string, err error) {
	src, err := h.files.Source(ctx, commit, path, SourceOptions{MaxBytes: maxRules})
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrIsDir) || errors.Is(err, ErrNotDir) {
		return nil, "", nil
	}
	if err != nil || src.Cut || src.Kind == Symlink {
		return nil, "", err
	}
	return src.Content, src.OID, nil
}

// parseIgnored reads ids of commits, one a line; a # begins a comment. What is no whole id
// is passed over: git would refuse the file.
func parseIgnored(text []byte) map[string]bool {
	out := map[string]bool{}
	for line := range bytes.Lines(text) {
		line, _, _ = bytes.Cut(line, []byte("#"))
		if id := strings.ToLower(string(bytes.TrimSpace(line))); pack.IsID(id) {
			out[id] = true
		}
	}
	return out
}

// Mailmap is who the authors of commits are, by the file .mailmap of a repository. nil
// leaves all as their commits have it. It may be used by several goroutines.
type Mailmap struct {
	oid     string                // of the file
	byEmail map[string]*mailEntry // by the address in commits, in lower case
}

// mailEntry is who stands behind an address.
type mailEntry struct {
	identity
	byName map[string]identity // by the name in commits, in lower case: it comes first
}

// identity is the name and the address of an author; "" where that of the commit stays.
type identity struct{ name, email string }

// Mailmap reads the file .mailmap of the default branch; nil where there is none.
func (h *rulesReader) Mailmap(ctx context.Context) (*Mailmap, error) {
	r, err := h.rules(ctx)
	return r.mailmap, err
}

// Author is who wrote a commit with this name and this address.
func (m *Mailmap) Author(name, email string) (string, string) {
	if m == nil {
		return name, email
	}
	e := m.byEmail[asciiLower(email)]
	if e == nil {
		return name, email
	}

	to := e.identity
	if named, ok := e.byName[asciiLower(name)]; ok {
		to = named
	}
	if to.name != "" {
		name = to.name
	}
	if to.email != "" {
		email = to.email
	}
	return name, email
}

// parseMailmap reads a file .mailmap, whose lines are one of
//
//	Proper Name <commit@example.org>
//	<proper@example.org> <commit@example.org>
//	Proper Name <proper@example.org> <commit@example.org>
//	Proper Name <proper@example.org> Commit Name <commit@example.org>
func parseMailmap(oid string, text []byte) *Mailmap {
	m := &Mailmap{oid: oid, byEmail: map[string]*mailEntry{}}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		to, rest, ok := cutIdentity(line, false)
		if !ok {
			continue
		}

		// One identity alone is that of the commit with its proper name.
		of, _, both := cutIdentity(rest, true)
		if !both {
			of, to.email = identity{email: to.email}, ""
		}
		m.add(to, of)
	}
	if len(m.byEmail) == 0 {
		return nil
	}
	return m
}

// cutIdentity cuts `Name <address>` off a line.
func cutIdentity(line string, empty bool) (who identity, rest string, ok bool) {
	name, after, open := strings.Cut(line, "<")
	email, rest, closed := strings.Cut(after, ">")
	if !open || !closed || email == "" && !empty {
		return who, "", false
	}
	return identity{strings.TrimSpace(name), email}, rest, true
}

// add takes one rule. A later one for the same replaces what it says.
func (m *Mailmap) add(to, of identity) {
	key := asciiLower(of.email)
	e := m.byEmail[key]
	if e == nil {
		e = &mailEntry{}
		m.byEmail[key] = e
	}
	if of.name != "" {
		if e.byName == nil {
			e.byName = map[string]identity{}
		}
		e.byName[asciiLower(of.name)] = to
		return
	}
	if to.name != "" {
		e.name = to.name
	}
	if to.email != "" {
		e.email = to.email
	}
}

func asciiLower(s string) string { return string(lower(nil, []byte(s))) }
