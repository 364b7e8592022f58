package shard

import (
	"encoding/binary"
	"slices"
)

// writeColumns writes everything after the content and the postings.
func (b *builder) writeColumns() {
	// The columns docUnit and docOccur have one more entry: the end of the last document.
	le := binary.LittleEndian
	b.docUnit = le.AppendUint32(b.docUnit, uint32(b.m.units))
	b.docOccur = le.AppendUint32(b.docOccur, uint32(len(b.occPath)))
	b.m.occurs = len(b.occPath)

	// Columns by unit and by document.
	b.out.Add(secBlockEnd, b.blockEnd)
	b.out.Add(secUnitLine, b.unitLine)
	b.out.Add(secDocUnit, b.docUnit)
	b.out.Add(secDocSize, b.docSize)
	b.out.Add(secDocSkip, b.docSkip)
	b.out.Add(secDocOccur, b.docOccur)
	b.out.Add(secDocID, b.docID)

	// Paths, and columns by occurrence.
	paths := b.writePaths()
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

	b.out.Add(secOccPath, path)
	b.out.Add(secOccRepo, repo)
	b.out.Add(secOccMask, mask)
	b.out.Add(secOccLang, lang)
	b.out.Add(secOccKind, kind)

	// Write the sets of revisions, and the facts about the whole file.
	var masks []byte
	for _, m := range b.maskList {
		masks = le.AppendUint64(masks, m)
	}
	b.out.Add(secMasks, masks)
	b.out.Add(secMeta, b.m.append(nil))
}

// writePaths writes the distinct paths, sorted, and returns their numbers.
func (b *builder) writePaths() map[string]int {
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

	b.out.Add(secPathEnd, ends)
	b.out.Add(secPaths, text)
	return numbers
}
