package shard

import (
	"encoding/binary"
	"slices"
)

// columns writes everything behind the content and the postings.
func (b *builder) columns() {
	le := binary.LittleEndian
	b.docUnit = le.AppendUint32(b.docUnit, uint32(b.m.units))
	b.docOccur = le.AppendUint32(b.docOccur, uint32(len(b.occPath)))
	b.m.occurs = len(b.occPath)
	b.out.add(secBlockEnd, b.blockEnd)
	b.out.add(secUnitLine, b.unitLine)
	b.out.add(secDocUnit, b.docUnit)
	b.out.add(secDocSize, b.docSize)
	b.out.add(secDocSkip, b.docSkip)
	b.out.add(secDocOccur, b.docOccur)
	b.out.add(secDocID, b.docID)

	paths := b.pathTable()
	var path, mask []byte
	var repo, lang []byte
	kind := make([]byte, 0, len(b.occPath))
	for _, o := range b.occPath {
		path = le.AppendUint32(path, uint32(paths[o.path]))
		repo = le.AppendUint16(repo, uint16(o.repo))
		mask = le.AppendUint32(mask, uint32(o.mask))
		lang = le.AppendUint16(lang, uint16(o.lang))
		kind = append(kind, byte(o.kind))
	}
	b.out.add(secOccPath, path)
	b.out.add(secOccRepo, repo)
	b.out.add(secOccMask, mask)
	b.out.add(secOccLang, lang)
	b.out.add(secOccKind, kind)
	var masks []byte
	for _, m := range b.maskList {
		masks = le.AppendUint64(masks, m)
	}
	b.out.add(secMasks, masks)
	b.out.add(secMeta, b.m.append(nil))
}

// pathTable writes the distinct paths in order and gives their numbers.
func (b *builder) pathTable() map[string]int {
	all := make([]string, len(b.occPath))
	for i, o := range b.occPath {
		all[i] = o.path
	}
	slices.Sort(all)
	all = slices.Compact(all)
	b.m.paths = len(all)
	numbers := make(map[string]int, len(all))
	var ends, text []byte
	for i, p := range all {
		numbers[p] = i
		text = append(text, p...)
		ends = binary.LittleEndian.AppendUint32(ends, uint32(len(text)))
	}
	b.out.add(secPathEnd, ends)
	b.out.add(secPaths, text)
	return numbers
}
