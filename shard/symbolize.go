package shard

import (
	"context"
	"fmt"

	"github.com/shoalsearch/shoal/shard/symbols"
)

// Definition is a symbol that a tagger found, with the line that defines it.
type Definition = symbols.Definition

// Untagged is a text in which a tagger looks for definitions.
type Untagged = symbols.Untagged

// Tagger finds the definitions in texts.
type Tagger = symbols.Tagger

// Symbolize writes the symbols file of a part and returns the part with it. It does not add the
// file to the set: the caller must first make sure that Retain keeps it, and then call Add.
//
// It copies the symbols of documents that a known part has, and calls tag for all other documents.
// For a document for which tag failed before, it calls tag again only if again is set. If tag fails
// for a text, the symbols of that text stay unknown.
func (s *Set) Symbolize(ctx context.Context, p Part, known []Part, again bool, tag Tagger) (Part, error) {
	p.Symbols = FileID{}

	v, missing := s.Acquire([]Part{p})
	defer v.Release()
	if len(missing) > 0 {
		return p, fmt.Errorf("symbolize: shard %s is not here", p.Shard.Name(KindShard))
	}

	m := v.members[0]
	if err := m.ready(); err != nil {
		s.report(m, err)
		return p, fmt.Errorf("symbolize: %w", err)
	}

	// Do not copy from files of an earlier version, which lack some symbols.
	old, _ := s.Acquire(known)
	defer old.Release()

	var knownSymbols []symbols.Known
	for _, m := range old.members {
		if m.ready() == nil && m.sym != nil && !m.sym.f.Older(s.versions()) {
			knownSymbols = append(knownSymbols, symbols.Known{File: m.sym.sym, Texts: m.texts()})
		}
	}

	texts := m.texts()
	texts.Versions = s.versions()
	id, err := symbols.Write(ctx, s.dir, texts, knownSymbols, again, tag)
	if err != nil {
		return p, fmt.Errorf("symbolize: %w", err)
	}

	p.Symbols = id
	return p, nil
}

// texts returns the documents of a member for tagging.
func (m *member) texts() symbols.Texts {
	return symbols.Texts{
		Shard: m.sh.f.Name(), Count: m.sh.m.documents, Bytes: m.sh.m.textBytes,
		Key: m.symbolsKey, Reader: m.textReader,
	}
}

// symbolsKey returns the language and the blob id of a document, on which its symbols depend; false
// if the document has no text.
func (m *member) symbolsKey(doc int) (symbols.Key, bool) {
	sh := m.sh
	o := int(sh.docOccur.At(doc))
	if o == int(sh.docOccur.At(doc+1)) || sh.docUnit.At(doc) == sh.docUnit.At(doc+1) {
		return symbols.Key{}, false
	}
	return symbols.Key{Language: sh.m.languages[sh.occLang.At(o)], OID: sh.oid(doc)}, true
}

// textReader returns a function that appends the text of a document to dst, and returns it with the
// first path of the document. Only one goroutine may use it.
func (m *member) textReader() func(doc int, dst []byte) ([]byte, string, error) {
	var t text
	return func(doc int, dst []byte) ([]byte, string, error) {
		t.moveTo(m.sh, doc)
		if err := t.decodeUnits(0, t.units-1); err != nil {
			return nil, "", err
		}
		o := int(m.sh.docOccur.At(doc)) // first occurrence of the document
		return append(dst, t.buf...), string(m.sh.path(int(m.sh.occPath.At(o)))), nil
	}
}

// UnknownSymbols returns how many documents of a part have unknown symbols because the tagger
// failed, and the least number of failed attempts for one of them. It returns 0 for a part without
// a symbols file.
func (s *Set) UnknownSymbols(p Part) (documents, tries int) {
	v, _ := s.Acquire([]Part{p})
	defer v.Release()
	for _, m := range v.members {
		// Check the symbols before m.ready, which is slow for a pack of thousands of repositories.
		if m.sym == nil || m.openSymbols() != nil || len(m.sym.sym.Unknown()) == 0 || m.ready() != nil {
			continue
		}
		unknown := m.sym.sym.Unknown()

		// Count only the repository of the part, not others in its file.
		alive, _ := m.alive()
		for _, u := range unknown {
			if !alive.has(u.Doc) {
				continue
			}
			if documents++; tries == 0 || u.Tries < tries {
				tries = u.Tries
			}
		}
	}
	return documents, tries
}
