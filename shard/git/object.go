package git

import (
	"bytes"
	"encoding/hex"
	"errors"
	"strconv"
	"strings"
)

// Starting git costs milliseconds, and most repositories are so small that
// this is most of what they cost. So a few commits, tags and trees are read
// straight from the packs here, and git is asked where that does not do.

const (
	maxSmall  = 16 << 20 // bytes of one object
	maxDeltas = 64       // upon each other
	fewBlobs  = 2000     // files of a repository that is small
	fewRefs   = 256      // references of one
)

// whole reads an object of any kind, and believes nothing but its id. It reports
// false where git had better be asked: the object is in no pack, too large, or
// damaged.
func (p *packs) whole(oid string) (kind string, content []byte, ok bool) {
	id, o, err := p.tell(oid)
	if err != nil || o.size > maxSmall || o.root > maxSmall || o.deltas > maxDeltas {
		return "", nil, false
	}
	content, ok, err = p.get(nil, o.kind, id)
	return kindNames[o.kind], content, ok && err == nil && hasID(o.kind, content, id)
}

// tell is info of an object by its name; errUnsuited for one that is in no pack.
func (p *packs) tell(oid string) (id []byte, o told, err error) {
	if id, err = hex.DecodeString(oid); err != nil {
		return nil, o, err
	}
	err = faultless(func() error {
		one, i := p.lookup(id)
		if one == nil {
			return errUnsuited
		}
		o, err = p.info(one, i)
		return err
	})
	return id, o, err
}

var errUnsuited = errors.New("git had better be asked")

// blobSize is the size of a blob; false where git had better be asked.
func (p *packs) blobSize(oid string) (size int64, ok bool) {
	_, o, err := p.tell(oid)
	return int64(o.size), err == nil && o.kind == packBlob
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
	return fields[0], err == nil && n >= 0
}

// trees reads trees as catFile does. What it does not have is errUnsuited.
func (p *packs) trees(oids []string, use func(i int, entries []treeEntry) error) error {
	for i, oid := range oids {
		kind, content, ok := p.whole(oid)
		if !ok || kind != "tree" {
			return errUnsuited
		}
		entries, err := parseTree(content, len(oid)/2)
		if err != nil {
			return err
		}
		if err := use(i, entries); err != nil {
			return err
		}
	}
	return nil
}

// treeOf is the tree that a commit names in its first line.
func treeOf(commit []byte) (tree string, ok bool) {
	line, _, _ := bytes.Cut(commit, newline)
	tree, ok = strings.CutPrefix(string(line), "tree ")
	return tree, ok && isHex(tree)
}

// rootTree is the tree of a commit.
func (p *packs) rootTree(commit string) (string, error) {
	kind, content, ok := p.whole(commit)
	tree, has := treeOf(content)
	if !ok || kind != "commit" || !has {
		return "", errUnsuited
	}
	return tree, nil
}

// fewCommits tells that some commits and all before them are at most so many.
func (p *packs) fewCommits(tips []string, most int) bool {
	seen := map[string]bool{}
	for len(tips) > 0 {
		tip := tips[len(tips)-1]
		tips = tips[:len(tips)-1]
		if seen[tip] {
			continue
		}
		seen[tip] = true
		kind, content, ok := p.whole(tip)
		if !ok || kind != "commit" || len(seen) > most {
			return false
		}
		head, _, _ := bytes.Cut(content, []byte("\n\n"))
		for line := range bytes.Lines(head) {
			if parent, ok := strings.CutPrefix(strings.TrimSpace(string(line)), "parent "); ok {
				tips = append(tips, parent)
			}
		}
	}
	return true
}
