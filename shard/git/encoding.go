package git

import (
	"bytes"
	"encoding/hex"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"

	"github.com/shoalsearch/shoal/shard/git/pack"
)

// charmaps are the encodings with one byte for each letter, by their plain names: "iso88591",
// "windows1252", "koi8r".
var charmaps = sync.OnceValue(func() map[string]*charmap.Charmap {
	all := map[string]*charmap.Charmap{}
	for _, e := range charmap.All {
		if m, ok := e.(*charmap.Charmap); ok {
			all[plainName(m.String())] = m
		}
	}
	return all
})

// plainName returns the name of an encoding as the keys of charmaps have it: its letters and digits
// in lower case. Commits write many names in several ways.
func plainName(name string) string {
	name = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, strings.ToLower(name))
	switch {
	case name == "latin1":
		return "iso88591"
	case strings.HasPrefix(name, "cp125"):
		return "windows" + name[len("cp"):]
	}
	return name
}

// decodeCommit converts a commit from the encoding that its header names to UTF-8, as git does. It
// returns a commit without such a header unchanged, and ErrAskGit for an encoding that it does not
// know.
func decodeCommit(text []byte) ([]byte, error) {
	name := plainName(encodingOf(text))
	if name == "" || name == "utf8" {
		return text, nil
	}
	m := charmaps()[name]
	if m == nil {
		return nil, pack.ErrAskGit
	}

	// Git does not convert a text with an invalid byte.
	out, err := m.NewDecoder().Bytes(text)
	if err != nil || bytes.ContainsRune(out, utf8.RuneError) || !bytes.HasPrefix(out, []byte("tree ")) {
		return nil, pack.ErrAskGit
	}
	return out, nil
}

// encodingOf returns the value of the header encoding of a commit; "" if there is none.
func encodingOf(text []byte) string {
	head, _, _ := bytes.Cut(text, []byte("\n\n"))
	_, value, ok := bytes.Cut(head, []byte("\nencoding "))
	if !ok {
		return ""
	}
	value, _, _ = bytes.Cut(value, newline)
	return string(value)
}

// parseCommit parses the object of a commit. ok is false if its encoding is unknown here: then the
// result has only the hash, and the caller must ask git.
func parseCommit(id, text []byte) (c Commit, ok bool) {
	c.Hash, c.Parents = hex.EncodeToString(id), []string{}
	text, err := decodeCommit(text)
	if err != nil {
		return c, false
	}
	head, message, _ := bytes.Cut(text, []byte("\n\n"))

	// A damaged commit may have no head, only a message.
	if bytes.HasPrefix(text, []byte("\n")) {
		head, message = nil, text[1:]
	}

	for line := range bytes.Lines(head) {
		key, value, _ := strings.Cut(strings.TrimSuffix(string(line), "\n"), " ")

		switch key {
		case "parent":
			if len(c.Parents) < maxParents {
				c.Parents = append(c.Parents, value)
			}
		case "author":
			c.AuthorName, c.AuthorEmail, c.AuthorTime = parseIdentity(value)
		case "committer":
			_, _, c.CommitTime = parseIdentity(value)
		}
	}
	c.Subject, c.Body = splitMessage(string(message))
	return c, true
}

// parseIdentity reads `Name <e-mail> seconds zone`.
func parseIdentity(line string) (name, email string, t time.Time) {
	open, end := strings.IndexByte(line, '<'), strings.LastIndexByte(line, '>')
	if open < 0 || end < open {
		return strings.TrimSpace(line), "", t
	}
	seconds, _, _ := strings.Cut(strings.TrimSpace(line[end+1:]), " ")
	return strings.TrimSpace(line[:open]), strings.TrimSpace(line[open+1 : end]), unixTime(seconds)
}

// splitMessage splits the message of a commit as git does: the subject is the first paragraph as
// one line, the body is the rest.
func splitMessage(message string) (subject, body string) {
	message = skipBlankLines(message)
	var lines []string
	for message != "" {
		line, after, _ := strings.Cut(message, "\n")
		if strings.TrimSpace(line) == "" {
			break
		}

		lines = append(lines, strings.TrimRight(line, " \t\r\f\v"))
		message = after
	}
	return strings.Join(lines, " "), strings.TrimRight(skipBlankLines(message), "\n")
}

// skipBlankLines returns s without the blank lines at its start.
func skipBlankLines(s string) string {
	for s != "" {
		line, after, _ := strings.Cut(s, "\n")
		if strings.TrimSpace(line) != "" {
			break
		}
		s = after
	}
	return s
}
