package shard

import (
	"context"
	"fmt"

	"github.com/shoalsearch/shoal/shard/symbols"
)

// Definition is a symbol and the line that defines it, on its way from the
// tagger.
type Definition = symbols.Definition

// Untagged is a text whose definitions are wanted.
type Untagged = symbols.Untagged

// Tagger finds the definitions in texts.
type Tagger = symbols.Tagger

// Symbolize writes the symbols file of a part and returns the part with it. The
// file is not in the set yet: the caller first makes sure that something keeps it,
// then calls Add. An error of tag for one text leaves its symbols unknown; only the end
// of ctx ends the whole. The symbols of documents that known parts have are copied.
// Those that known parts do not know are looked for with again alone.
func (s *Set) Symbolize(ctx context.Context, p Part, known []Part, again bool, tag Tagger) (Part, error) {
	p.Symbols = FileID{}

	// The shard, whose documents are read once more.
	v, missing := s.Acquire([]Part{p})
	defer v.Release()
	if len(missing) > 0 {
		return p, fmt.Errorf("symbolize: shard %s is not here", p.Shard.Name(KindShard))
	}

	m := v.members[0]
	if err := m.ready(); err != nil {
		s.quarantine(m.culprit(err), err)
		return p, fmt.Errorf("symbolize: %w", err)
	}

	// Other parts may have tagged the same bytes already.
	old, _ := s.Acquire(known)
	defer old.Release()

	var have []symbols.Known
	for _, m := range old.members {
		if m.ready() == nil && m.sym != nil {
			have = append(have, symbols.Known{File: m.sym.sym, Texts: m.texts()})
		}
	}

	texts := m.texts()
	texts.Versions = s.versions()
	id, err := symbols.Write(ctx, s.dir, texts, have, again, tag)
	if err != nil {
		return p, fmt.Errorf("symbolize: %w", err)
	}

	p.Symbols = id
	return p, nil
}

// texts returns the documents of a member, to be tagged.
func (m *member) texts() symbols.Texts {
	return symbols.Texts{
		Shard: m.sh.f.Name(), Count: m.sh.m.documents, Bytes: m.sh.m.textBytes,
		Key: m.symbolsKey, Reader: m.textReader,
	}
}

// symbolsKey returns the language and the blob of a document, on which its symbols
// depend; false if the document has no text.
func (m *member) symbolsKey(doc int) (symbols.Key, bool) {
	sh := m.sh
	o := int(sh.docOccur.At(doc))
	if o == int(sh.docOccur.At(doc+1)) || sh.docUnit.At(doc) == sh.docUnit.At(doc+1) {
		return symbols.Key{}, false
	}
	return symbols.Key{Language: sh.m.languages[sh.occLang.At(o)], OID: sh.oid(doc)}, true
}

// textReader returns a function that reads whole documents, for one goroutine.
func (m *member) textReader() func(doc int, dst []byte) ([]byte, string, error) {
	var t text
	return func(doc int, dst []byte) ([]byte, string, error) {
		t.open(m.sh, doc)
		if err := t.load(0, t.units-1); err != nil {
			return nil, "", err
		}
		o := int(m.sh.docOccur.At(doc)) // the first path of the document
		return append(dst, t.buf...), string(m.sh.path(int(m.sh.occPath.At(o)))), nil
	}
}

// UnknownSymbols is how many documents of a part have symbols that are not known since the
// program that finds them failed, and the least number of attempts that failed of one. A part
// whose symbols nobody has looked for yet has none.
func (s *Set) UnknownSymbols(p Part) (documents, tries int) {
	v, _ := s.Acquire([]Part{p})
	defer v.Release()
	for _, m := range v.members {
		if m.ready() != nil || m.sym == nil {
			continue
		}
		unknown := m.sym.sym.Unknown()
		if len(unknown) == 0 {
			continue
		}

		// Of a file with several repositories, those of the part alone.
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
