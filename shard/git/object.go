package git

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"github.com/shoalsearch/shoal/shard/git/pack"
)

// Starting git costs milliseconds, and most repositories are so small that
// this is most of what they cost. So a few commits and tags are read
// straight from the packs here, and git is asked where that does not do.

const (
	maxSmall = 16 << 20 // bytes of one object
	fewRefs  = 256      // references of one
)

// whole reads an object of any kind, and believes nothing but its id.
// pack.ErrAskGit where git had better be asked.
func whole(s *pack.Store, oid string) (kind pack.Kind, content []byte, err error) {
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

// headerLine is the value of the first line of a commit or tag that begins
// with a word, before the empty line that ends its head.
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

// committed is the time at which a commit says that it was made, in seconds
// as git prints it.
func committed(commit []byte) (string, bool) {
	line, ok := headerLine(commit, "committer")
	fields := strings.Fields(line[strings.LastIndexByte(line, '>')+1:])
	if !ok || len(fields) != 2 {
		return "", false
	}
	n, err := strconv.ParseInt(fields[0], 10, 64)
	return strings.Clone(fields[0]), err == nil && n >= 0
}

// treeOf is the tree that a commit names in its first line.
func treeOf(commit []byte) (tree string, ok bool) {
	line, _, _ := bytes.Cut(commit, newline)
	tree, ok = strings.CutPrefix(string(line), "tree ")
	return tree, ok && pack.IsID(tree)
}

// fewCommits reports whether some commits and all their ancestors are at most
// most commits.
func fewCommits(s *pack.Store, tips []string, most int) bool {
	seen := map[string]bool{}
	for len(tips) > 0 {
		tip := tips[len(tips)-1]
		tips = tips[:len(tips)-1]
		if seen[tip] {
			continue
		}
		seen[tip] = true

		kind, content, err := whole(s, tip)
		if err != nil || kind != pack.Commit || len(seen) > most {
			return false
		}

		// Parents are in the head; the message may have lines like them.
		head, _, _ := bytes.Cut(content, []byte("\n\n"))
		for line := range bytes.Lines(head) {
			if parent, ok := strings.CutPrefix(strings.TrimSpace(string(line)), "parent "); ok {
				tips = append(tips, parent)
			}
		}
	}
	return true
}

// checkCommit refuses what is not a commit id as Resolve gives it.
func checkCommit(commit string) error {
	if !pack.IsID(commit) {
		return fmt.Errorf("%.80q is not a commit id: %w", commit, ErrBadRef)
	}
	return nil
}

// hexPrefix is how many bytes at the start of s are hexadecimal digits.
func hexPrefix(s string) int {
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') && (c < 'A' || c > 'F') {
			return i
		}
	}
	return len(s)
}

// lower appends a text with the letters of ASCII in lower case.
func lower(dst, text []byte) []byte {
	at := len(dst)
	dst = append(dst, text...)
	for i, c := range dst[at:] {
		if c-'A' < 26 {
			dst[at+i] = c + 'a' - 'A'
		}
	}
	return dst
}
