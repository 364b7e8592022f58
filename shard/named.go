package shard

import (
	"bytes"
	"hash/maphash"
	"slices"

	"github.com/shoalsearch/shoal/shard/query"
	"github.com/shoalsearch/shoal/shard/symbols"
)

// stemSeed seeds the hashes of stems, which are never stored.
var stemSeed = maphash.MakeSeed()

// stemsByDocument returns for each document the hash of its stem: the letters and digits of its
// file name without extension, in lower case. The first call computes them, in 30 ns a document.
func (s *shard) stemsByDocument() []uint32 {
	s.stemOnce.Do(func() {
		s.stems = make([]uint32, s.m.documents)
		var buf []byte

		// A document is named by the first of its paths.
		for d := range s.stems {
			if o := int(s.docOccur.At(d)); o < int(s.docOccur.At(d+1)) {
				buf = appendStem(buf[:0], s.path(int(s.occPath.At(o))))
				s.stems[d] = stemHash(buf)
			}
		}
	})
	return s.stems
}

func stemHash(stem []byte) uint32 { return uint32(maphash.Bytes(stemSeed, stem)) }

// appendStem appends the stem of a path: that of "kernel/Mutex-Lock.h" is "mutexlock".
func appendStem(dst, path []byte) []byte {
	base := path[bytes.LastIndexByte(path, '/')+1:]
	if i := bytes.IndexByte(base, '.'); i > 0 {
		base = base[:i]
	}

	// Ignore case and signs: MutexLock and mutex_lock are one stem.
	for _, c := range base {
		if letter := c | 0x20; letter >= 'a' && letter <= 'z' {
			dst = append(dst, letter)
		} else if c >= '0' && c <= '9' || c >= 0x80 {
			dst = append(dst, c)
		}
	}
	return dst
}

// Limits of stemsOf.
const (
	stemShortest = 3  // bytes of the shortest stem
	stemParts    = 12 // greatest number of parts of a literal; stemsOf ignores further ones
)

// stemsOf returns the hashes of the file stems that a literal suggests: of every run of its parts.
// Parts lie between underscores, other signs and the humps of camel case. Mutex_lock_slow suggests
// mutex, mutexlock, mutexlockslow, lock, lockslow and slow.
func stemsOf(literal string) []uint32 {
	var parts [][]byte
	for i := 0; i < len(literal); i++ {
		c := literal[i]
		if c == '_' || !symbols.IsWord(c) {
			continue
		}

		// A part begins at the start, after a sign, and at a hump.
		hump := i > 0 && c >= 'A' && c <= 'Z' && literal[i-1] >= 'a' && literal[i-1] <= 'z'
		if i == 0 || hump || literal[i-1] == '_' || !symbols.IsWord(literal[i-1]) {
			if len(parts) == stemParts {
				break
			}
			parts = append(parts, nil)
		}

		// Stems are in lower case.
		if c >= 'A' && c <= 'Z' {
			c |= 0x20
		}
		parts[len(parts)-1] = append(parts[len(parts)-1], c)
	}

	// Hash every run of parts.
	var hashes []uint32
	for from := range parts {
		var run []byte
		for _, p := range parts[from:] {
			if run = append(run, p...); len(run) >= stemShortest {
				hashes = append(hashes, stemHash(run))
			}
		}
	}
	return hashes
}

// moveNamedFirst moves the documents whose stems a literal of the query suggests to the front of
// b.docs, after those that define a word of the query. Where no symbols are known, these documents
// most likely have the definition, and a search that stops early must not miss them.
func (b *bound) moveNamedFirst() {
	var stems []uint32
	for _, p := range b.p.patterns {
		if p.text.Field == query.Content && !p.text.Regexp && p.positive {
			stems = append(stems, stemsOf(p.text.Pattern)...)
		}
	}

	if len(stems) == 0 || len(b.docs) <= 1 {
		return
	}

	// A Bloom filter of 256 bits with one hash rejects most documents.
	var filter [4]uint64
	for _, h := range stems {
		filter[h>>6&3] |= 1 << (h & 63)
	}

	// Skip the documents that define a word of the query, which are at the front.
	byDoc := b.s.stemsByDocument()
	to := 0
	if b.defs != nil {
		for to < len(b.docs) && b.defs.has(int(b.docs[to])) {
			to++
		}
	}

	var named []uint32
	docs := b.docs[to:]
	others := docs[:0]
	for _, d := range docs {
		if h := byDoc[d]; filter[h>>6&3]>>(h&63)&1 != 0 && slices.Contains(stems, h) {
			named = append(named, d)
		} else {
			others = append(others, d)
		}
	}

	// others shares the memory of docs: move it back to make room for named.
	if len(named) > 0 {
		copy(docs[len(named):], others)
		copy(docs, named)
	}
}
