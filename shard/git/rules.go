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

// Files at the root of the default branch that say how to read the history. A file longer than
// maxRules bytes counts as missing.
const (
	mailmapFile = ".mailmap"
	ignoreFile  = ".git-blame-ignore-revs"
	maxRules    = 1 << 20
)

// rules is the content of the files mailmapFile and ignoreFile.
type rules struct {
	mailmap *Mailmap
	ignored map[string]bool // ids of commits that blame skips
}

// rulesReader reads the rules and caches them.
type rulesReader struct {
	*base
	files  *files
	cached *lru.Cache[string, rules] // by commit of HEAD
}

// rules reads the rules of the default branch. They apply to all revisions, as in a bare repository
// of git, because an old revision lacks later corrections.
func (h *rulesReader) rules(ctx context.Context) (r rules, err error) {
	s, err := h.refs(ctx)
	if err != nil || s.head == "" {
		return r, err
	}
	if known, ok := h.cached.Get(s.head); ok {
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
	h.cached.Put(s.head, r, 1)
	return r, nil
}

// rulesFile reads the file of rules at a path, and returns its id; nil if there is none or it is too
// long.
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

// parseIgnored reads ids of commits, one per line; a # begins a comment. It skips a line that is no
// full id, for which git would refuse the file.
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

// Mailmap maps the authors named in commits to people, as the file .mailmap says. nil changes
// nothing. Several goroutines may use it.
type Mailmap struct {
	oid     string                   // of the file
	byEmail map[string]*addressOwner // by the address in commits, lower case
}

// addressOwner says who uses an address.
type addressOwner struct {
	identity
	byName map[string]identity // by the name in commits, lower case; it takes precedence over identity
}

// identity is the name and the address of an author; "" means the one in the commit.
type identity struct{ name, email string }

// Mailmap reads the file .mailmap of the default branch; nil if there is none.
func (h *rulesReader) Mailmap(ctx context.Context) (*Mailmap, error) {
	r, err := h.rules(ctx)
	return r.mailmap, err
}

// Author returns who wrote a commit with this name and this address.
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

// parseMailmap reads a file .mailmap. Each line has one of these forms:
//
//	Proper Name <commit@example.org>
//	<proper@example.org> <commit@example.org>
//	Proper Name <proper@example.org> <commit@example.org>
//	Proper Name <proper@example.org> Commit Name <commit@example.org>
func parseMailmap(oid string, text []byte) *Mailmap {
	m := &Mailmap{oid: oid, byEmail: map[string]*addressOwner{}}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		const emptyEmail = true
		person, rest, ok := cutIdentity(line, !emptyEmail)
		if !ok {
			continue
		}

		// With a single identity the line gives the proper name for an address.
		author, _, ok := cutIdentity(rest, emptyEmail)
		if !ok {
			author, person.email = identity{email: person.email}, ""
		}
		m.addRule(person, author)
	}
	if len(m.byEmail) == 0 {
		return nil
	}
	return m
}

// cutIdentity cuts `Name <address>` off the start of a line. The address may be empty if emptyEmail
// is set.
func cutIdentity(line string, emptyEmail bool) (who identity, rest string, ok bool) {
	name, after, open := strings.Cut(line, "<")
	email, rest, closed := strings.Cut(after, ">")
	if !open || !closed || email == "" && !emptyEmail {
		return who, "", false
	}
	return identity{strings.TrimSpace(name), email}, rest, true
}

// addRule adds a rule: the author in a commit is the person. It replaces an earlier rule for the same
// author.
func (m *Mailmap) addRule(person, author identity) {
	key := asciiLower(author.email)
	e := m.byEmail[key]
	if e == nil {
		e = &addressOwner{}
		m.byEmail[key] = e
	}
	if author.name != "" {
		if e.byName == nil {
			e.byName = map[string]identity{}
		}
		e.byName[asciiLower(author.name)] = person
		return
	}
	if person.name != "" {
		e.name = person.name
	}
	if person.email != "" {
		e.email = person.email
	}
}

func asciiLower(s string) string { return string(appendLower(nil, []byte(s))) }
