package git

import (
	"bytes"
	"strings"
	"sync"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"

	"github.com/shoalsearch/shoal/shard/git/pack"
)

// charmaps are the encodings with one byte a letter, by their plain names: "iso88591",
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

// plainName is the name of an encoding as its letters and digits: many are written in
// several ways.
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

// inUTF8 is a commit as git shows it, in UTF-8, whatever its header encoding says. The
// error is ErrAskGit for what only git can read. A commit without that header is left as
// it is.
func inUTF8(text []byte) ([]byte, error) {
	name := plainName(encodingOf(text))
	if name == "" || name == "utf8" {
		return text, nil
	}
	m := charmaps()[name]
	if m == nil {
		return nil, pack.ErrAskGit
	}

	// Git leaves a text as it is that has a byte without a meaning.
	out, err := m.NewDecoder().Bytes(text)
	if err != nil || bytes.ContainsRune(out, utf8.RuneError) || !bytes.HasPrefix(out, []byte("tree ")) {
		return nil, pack.ErrAskGit
	}
	return out, nil
}

// encodingOf is the value of the header encoding of a commit; "" for none.
func encodingOf(text []byte) string {
	head, _, _ := bytes.Cut(text, []byte("\n\n"))
	_, value, ok := bytes.Cut(head, []byte("\nencoding "))
	if !ok {
		return ""
	}
	value, _, _ = bytes.Cut(value, newline)
	return string(value)
}
