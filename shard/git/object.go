package git

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"github.com/shoalsearch/shoal/shard/git/pack"
)

// Starting git takes milliseconds, which is most of the cost in a small repository. So this file
// reads a few commits and tags directly from the packs, and callers ask git if that fails.

const (
	maxSmall = 16 << 20 // bytes of the largest object that readObject reads
	fewRefs  = 256      // greatest number of references that are read without git
)

// readObject reads an object of any kind and checks it against its id. The error is pack.ErrAskGit
// if git should read it.
func readObject(s *pack.Store, oid string) (kind pack.Kind, content []byte, err error) {
	id, err := hex.DecodeString(oid)
	if err != nil {
		return 0, nil, err
	}
	kind, content, err = s.Get(nil, id, maxSmall)
	if err == nil && !pack.HasID(kind, content, id) {
		err = pack.ErrAskGit
	}
	return kind, content, err
}

// headerLine returns the rest of the first line that begins with a word, in the head of a commit or
// tag. An empty line ends the head.
func headerLine(object []byte, word string) (string, bool) {
	head, _, _ := bytes.Cut(object, []byte("\n\n"))
	for line := range bytes.Lines(head) {
		if value, ok := strings.CutPrefix(string(bytes.TrimSuffix(line, newline)), word+" "); ok {
			return value, true
		}
	}
	return "", false
}

var newline = []byte{'\n'}

// commitSeconds returns the commit time of a commit, in seconds, as git prints it.
func commitSeconds(commit []byte) (string, bool) {
	line, ok := headerLine(commit, "committer")
	fields := strings.Fields(line[strings.LastIndexByte(line, '>')+1:])
	if !ok || len(fields) != 2 {
		return "", false
	}
	n, err := strconv.ParseInt(fields[0], 10, 64)
	return strings.Clone(fields[0]), err == nil && n >= 0
}

// treeOf returns the id of the tree of a commit.
func treeOf(commit []byte) (tree string, ok bool) {
	line, _, _ := bytes.Cut(commit, newline)
	tree, ok = strings.CutPrefix(string(line), "tree ")
	return tree, ok && pack.IsID(tree)
}

// hasFewCommits reports whether some commits together with all their ancestors are at most limit
// commits.
func hasFewCommits(s *pack.Store, tips []string, limit int) bool {
	seen := map[string]bool{}
	for len(tips) > 0 {
		tip := tips[len(tips)-1]
		tips = tips[:len(tips)-1]
		if seen[tip] {
			continue
		}
		seen[tip] = true

		kind, content, err := readObject(s, tip)
		if err != nil || kind != pack.Commit || len(seen) > limit {
			return false
		}

		// Search only the head for parents; the message may contain lines like them.
		head, _, _ := bytes.Cut(content, []byte("\n\n"))
		for line := range bytes.Lines(head) {
			if parent, ok := strings.CutPrefix(strings.TrimSpace(string(line)), "parent "); ok {
				tips = append(tips, parent)
			}
		}
	}
	return true
}

// checkCommit returns an error unless the text is a commit id as Resolve returns it.
func checkCommit(commit string) error {
	if !pack.IsID(commit) {
		return fmt.Errorf("%.80q is not a commit id: %w", commit, ErrBadRef)
	}
	return nil
}

// countHexDigits counts the hexadecimal digits at the start of s.
func countHexDigits(s string) int {
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') && (c < 'A' || c > 'F') {
			return i
		}
	}
	return len(s)
}

// appendLower appends a text with its ASCII letters in lower case.
func appendLower(dst, text []byte) []byte {
	at := len(dst)
	dst = append(dst, text...)
	for i, c := range dst[at:] {
		if c-'A' < 26 {
			dst[at+i] = c + 'a' - 'A'
		}
	}
	return dst
}
