package git

import (
	"bytes"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
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

// objectKinds are the kinds of whole objects in a pack.
var objectKinds = [...]string{1: "commit", 2: "tree", 3: "blob", 4: "tag"}

// whole reads an object of any kind. It reports false where git had better be
// asked: the object is in no pack, too large, or damaged.
func (p *packs) whole(oid string) (kind string, content []byte, ok bool) {
	id, one, at := p.locate(oid)
	if one == nil {
		return "", nil, false
	}
	err := faultless(func() (err error) {
		kind, content, err = p.wholeAt(one, at, 0)
		return err
	})
	if err != nil {
		return "", nil, false
	}
	var sum hash.Hash = sha1.New()
	if len(id) == sha256.Size {
		sum = sha256.New()
	}
	fmt.Fprintf(sum, "%s %d\x00", kind, len(content))
	sum.Write(content)
	return kind, content, bytes.Equal(sum.Sum(nil), id)
}

// locate finds the pack that has an object, and where in it.
func (p *packs) locate(oid string) (id []byte, one *pack, at int) {
	id, err := hex.DecodeString(oid)
	if err != nil {
		return nil, nil, 0
	}
	err = faultless(func() error {
		for _, pk := range p.list {
			if len(id) != pk.idBytes {
				continue
			}
			if i, found := pk.find(id); found {
				one = pk
				at, err = pk.offset(i)
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, nil, 0
	}
	return id, one, at
}

var errUnsuited = errors.New("git had better be asked")

func (p *packs) wholeAt(one *pack, at, depth int) (kind string, content []byte, err error) {
	o, err := one.header(at)
	if err != nil {
		return "", nil, err
	}
	if o.size > maxSmall || depth > maxDeltas {
		return "", nil, errUnsuited
	}
	if o.kind >= 1 && o.kind < len(objectKinds) {
		content, _, err = p.inflate(nil, one, o)
		return objectKinds[o.kind], content, err
	}
	if o.kind != packOffDelta && o.kind != packRefDelta {
		return "", nil, errPack
	}
	kind, base, err := p.wholeAt(one, o.base, depth+1)
	if err != nil {
		return "", nil, err
	}
	content, err = p.apply(nil, base, one, o)
	return kind, content, err
}

// blobSize is the size of an object that a tree says is a blob; false where
// git had better be asked.
func (p *packs) blobSize(oid string) (size int64, ok bool) {
	_, one, at := p.locate(oid)
	if one == nil {
		return 0, false
	}
	err := faultless(func() error {
		o, err := one.header(at)
		switch {
		case err != nil:
			return err
		case o.kind == packBlob:
			size = int64(o.size)
			return nil
		case o.kind != packOffDelta && o.kind != packRefDelta || o.size > maxSmall:
			return errUnsuited
		}
		if p.delta, _, err = p.inflate(p.delta[:0], one, o); err != nil {
			return err
		}
		// A delta begins with the sizes of its base and of what it makes.
		_, n := binary.Uvarint(p.delta)
		if n <= 0 {
			return errPack
		}
		made, n := binary.Uvarint(p.delta[n:])
		if n <= 0 || made > maxObject {
			return errPack
		}
		size = int64(made)
		return nil
	})
	return size, err == nil
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

// rootTree is the tree of a commit.
func (p *packs) rootTree(commit string) (string, error) {
	kind, content, ok := p.whole(commit)
	tree, has := headerLine(content, "tree")
	if !ok || kind != "commit" || !has || !isHex(tree) {
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
