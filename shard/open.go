package shard

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"sort"
	"sync"
	"sync/atomic"

	"github.com/shoalsearch/shoal/shard/file"
	"github.com/shoalsearch/shoal/trigram"
)

// shard is an open shard file. Its columns are read on first use, so that a node
// with thousands of files starts at once.
type shard struct {
	f *file.File

	once sync.Once // guards the fields below
	err  error
	m    *meta

	blockEnd, unitLine         file.Column32
	docUnit, docSize, docOccur file.Column32
	docSkip, docID             []byte
	occPath, occMask           file.Column32
	occRepo, occLang           file.Column16
	occKind                    []byte
	masks                      file.Column64
	pathEnd                    file.Column32
	paths                      []byte
	post                       *trigram.Index
	dict                       []byte         // decodes the blocks
	segStart                   []int          // first unit row of each segment, then the number of rows
	content                    []file.Section // by segment
	base                       []repoView     // by repository, as the file was written
	repoIndexes                map[uint32]int // index of each repository by its id; nil if there are few

	groupViews     groupViewCache // cached views of the groups that were searched last
	groupViewBytes *atomic.Int64  // bytes of the cached views of all files of the set

	found candidates // candidate units of earlier searches

	stemOnce sync.Once // guards the field below
	stems    []uint32  // see stemsByDocument

	pathBytes *atomic.Int64 // bytes of the path indexes of all files of the set
	pathMu    sync.Mutex    // guards the field below, and is held while the index is built
	pathPost  *pathIndex    // nil before the first use

	skipOnce sync.Once // guards the field below
	skips    []uint32  // see skippedDocs

	listOnce sync.Once // guards the field below
	list     *skipList
}

// skippedDocs returns the documents without content in the index, in ascending order. They are few.
// The caller must not change the list.
func (s *shard) skippedDocs() []uint32 {
	s.skipOnce.Do(func() {
		for d, why := range s.docSkip {
			if formOf(why).skip != indexed {
				s.skips = append(s.skips, uint32(d))
			}
		}
	})
	return s.skips
}

// ready reads and checks the columns once. Every use of the shard calls it first.
func (s *shard) ready() error {
	s.once.Do(func() {
		s.err = s.f.Blame(s.readSections())
	})
	return s.err
}

// readSections reads and checks the sections of the shard. Only ready calls it, once.
func (s *shard) readSections() error {
	b, err := s.f.Bytes(secMeta)
	if err != nil {
		return err
	}
	if s.m, err = parseMeta(b); err != nil {
		return err
	}

	// Columns are mapped, not copied: check only their lengths.
	for _, c := range s.listColumns() {
		if *c.to, err = s.f.Bytes(c.id); err != nil {
			return err
		}
		if len(*c.to) != c.width*c.rows {
			return fmt.Errorf("%w: section %d has %d bytes, not %d", ErrDamaged, c.id, len(*c.to), c.width*c.rows)
		}
	}

	if s.masks, err = s.f.Bytes(secMasks); err != nil {
		return err
	}
	if s.paths, err = s.f.Bytes(secPaths); err != nil {
		return err
	}

	if err := s.checkColumns(); err != nil {
		return err
	}
	return s.openPostings()
}

// columnTarget says which field a column goes to, and how long it must be.
type columnTarget struct {
	id    file.SectionID
	to    *[]byte
	width int
	rows  int
}

// listColumns lists the columns whose length follows from the counts in meta.
func (s *shard) listColumns() []columnTarget {
	m := s.m
	return []columnTarget{
		// By unit.
		{secBlockEnd, (*[]byte)(&s.blockEnd), 4, m.units},
		{secUnitLine, (*[]byte)(&s.unitLine), 4, m.units},

		// By document.
		{secDocUnit, (*[]byte)(&s.docUnit), 4, m.documents + 1},
		{secDocSize, (*[]byte)(&s.docSize), 4, m.documents},
		{secDocOccur, (*[]byte)(&s.docOccur), 4, m.documents + 1},
		{secDocSkip, &s.docSkip, 1, m.documents},
		{secDocID, &s.docID, m.oidBytes, m.documents},

		// By occurrence: a document at a path of a repository.
		{secOccPath, (*[]byte)(&s.occPath), 4, m.occurs},
		{secOccMask, (*[]byte)(&s.occMask), 4, m.occurs},
		{secOccRepo, (*[]byte)(&s.occRepo), 2, m.occurs},
		{secOccLang, (*[]byte)(&s.occLang), 2, m.occurs},
		{secOccKind, &s.occKind, 1, m.occurs},

		// By path.
		{secPathEnd, (*[]byte)(&s.pathEnd), 4, m.paths},
	}
}

// checkColumns checks that no number in a column points outside of another column, so that searches
// can index with them unchecked. The rules are
//
//	docUnit[0] = 0    docUnit[d+1] = docUnit[d] + units of document d     docUnit[documents] = units
//	docOccur[0] = 0   docOccur[d+1] >= docOccur[d]                        docOccur[documents] = occurs
//	pathEnd[p+1] >= pathEnd[p]                                            pathEnd[paths-1] = len(paths)
func (s *shard) checkColumns() error {
	m := s.m
	damaged := func(what string) error { return fmt.Errorf("%w: %s", ErrDamaged, what) }

	unit, occ := uint32(0), uint32(0) // where the units and occurrences of the next document must begin
	for d := range m.documents {
		from, to := s.docUnit.At(d), s.docUnit.At(d+1)
		units := uint32(0)
		if size := s.docSize.At(d); formOf(s.docSkip[d]).skip == indexed && size > 0 {
			if size > maxDocument {
				return damaged("document size")
			}
			units = trigram.Units(int(size))
		}

		if from != unit || to != from+units {
			return damaged("units of a document")
		}
		unit = to

		if s.docOccur.At(d) != occ || s.docOccur.At(d+1) < occ {
			return damaged("occurrences of a document")
		}
		occ = s.docOccur.At(d + 1)
	}

	if int(unit) != m.units || int(occ) != m.occurs {
		return damaged("number of units or occurrences")
	}

	end := uint32(0)
	for p := range m.paths {
		if s.pathEnd.At(p) < end {
			return damaged("ends of paths")
		}
		end = s.pathEnd.At(p)
	}

	if int(end) != len(s.paths) {
		return damaged("length of paths")
	}
	return s.checkOccurrences()
}

// checkOccurrences checks the columns of occurrences. It also sets s.base: for each repository, the
// revisions that all of its occurrences have (always), and those that any has (ever).
func (s *shard) checkOccurrences() error {
	m := s.m
	masks := make([]uint64, s.masks.Len())
	for i := range masks {
		masks[i] = s.masks.At(i)
	}

	s.base = make([]repoView, len(m.repos))
	for i, r := range m.repos {
		s.base[i] = repoView{id: r.ID, name: r.Name, revisions: r.Revisions, masks: masks, always: ^uint64(0)}
	}

	for o := range m.occurs {
		repo, mask := int(s.occRepo.At(o)), int(s.occMask.At(o))

		if int(s.occPath.At(o)) >= m.paths || mask >= len(masks) || repo >= len(m.repos) ||
			int(s.occLang.At(o)) >= len(m.languages) {
			return fmt.Errorf("%w: occurrence %d", ErrDamaged, o)
		}

		s.base[repo].always &= masks[mask]
		s.base[repo].ever |= masks[mask]
	}

	// For few repositories a linear search beats a map.
	if len(m.repos) > fewRepos {
		s.repoIndexes = make(map[uint32]int, len(m.repos))
		for i, r := range m.repos {
			s.repoIndexes[r.ID] = i
		}
	}
	return nil
}

// fewRepos is the number of repositories up to which a linear search beats a map.
const fewRepos = 4

// repoIndex returns the index of a repository in the file.
func (s *shard) repoIndex(repo uint32) (int, bool) {
	if s.repoIndexes != nil {
		i, ok := s.repoIndexes[repo]
		return i, ok
	}
	i := slices.IndexFunc(s.m.repos, func(r Repository) bool { return r.ID == repo })
	return i, i >= 0
}

// openPostings opens the segments of postings and finds the content section of each. The lists are
// large, so their checksums are checked page by page when they are read.
func (s *shard) openPostings() error {
	m := s.m
	if m.segments > maxSegments {
		return fmt.Errorf("%w: number of segments", ErrDamaged)
	}

	// Each segment has a section of postings and one of content.
	segments, offsets := make([][]byte, m.segments), make([]int64, m.segments)
	s.content = make([]file.Section, m.segments)
	for i := range segments {
		lists := s.f.Find(secText + file.SectionID(i))
		segments[i], offsets[i] = s.f.Raw(lists), lists.Offset
		s.content[i] = s.f.Find(secBlocks + file.SectionID(i))
	}

	if d := s.f.Find(secDict); d.Length > 0 {
		if _, err := s.f.Bytes(secDict); err != nil {
			return err
		}

		// Keep the capacity of the slice: the decoder may read a little past its end.
		s.dict = s.f.Data()[d.Offset : d.Offset+d.Length]
	}

	post, err := trigram.Open(segments, func(segment, from, n int) error {
		return s.f.Touch(offsets[segment]+int64(from), int64(n))
	})
	if errors.Is(err, ErrDamaged) {
		return err
	}

	if err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}

	s.post = post

	// segStart[i] <= row < segStart[i+1] for the units of segment i.
	s.segStart = make([]int, m.segments+1)
	for i := range m.segments {
		s.segStart[i+1] = s.segStart[i] + post.Units(i)
	}

	if s.segStart[m.segments] != m.units {
		return fmt.Errorf("%w: postings have %d units, documents %d", ErrDamaged, s.segStart[m.segments], m.units)
	}
	return nil
}

// path returns the bytes of a path by its number.
func (s *shard) path(p int) []byte {
	from := uint32(0)
	if p > 0 {
		from = s.pathEnd.At(p - 1)
	}
	return s.paths[from:s.pathEnd.At(p)]
}

// shareOf returns how much of the file belongs to the repository with index repo.
func (s *shard) shareOf(repo int) share {
	// A single repository has all of it.
	if len(s.m.repos) == 1 {
		return share{s.m.textBytes, s.m.documents}
	}
	return s.shareWith(func(o int) bool { return int(s.occRepo.At(o)) == repo })
}

// shareWith returns how much of the file the documents are of which an occurrence is wanted.
func (s *shard) shareWith(wanted func(o int) bool) share {
	var sum share
	for d := range s.m.documents {
		for o := s.docOccur.At(d); o < s.docOccur.At(d+1); o++ {
			if !wanted(int(o)) {
				continue
			}

			// A document counts once, however many paths the repository has for it.
			text := int64(0)
			if formOf(s.docSkip[d]).skip == indexed {
				text = int64(s.docSize.At(d))
			}

			sum.add(text)
			break
		}
	}
	return sum
}

// findDocument returns the document that has a unit row, which must be document d or a later one.
// It is probably near d: steps of 1, 2, 4 and so on find an upper bound, then binary search finds
// the document.
func (s *shard) findDocument(d, row int) int {
	step := 1
	for d+step < s.m.documents && int(s.docUnit.At(d+step)) <= row {
		d += step
		step *= 2
	}
	return d + sort.Search(min(step, s.m.documents-d), func(i int) bool { return int(s.docUnit.At(d+i+1)) > row })
}

// segmentOf returns the segment of a unit row.
func (s *shard) segmentOf(row int) int {
	for i := 1; ; i++ {
		if row < s.segStart[i] {
			return i - 1
		}
	}
}

// oid returns the blob id of a document in hex.
func (s *shard) oid(doc int) string {
	w := s.m.oidBytes
	id := s.docID[doc*w : doc*w+w]

	// Zeros fill up a SHA-1 among SHA-256 ids.
	if w == 32 && bytes.Equal(id[20:], make([]byte, 12)) {
		id = id[:20]
	}
	return hex.EncodeToString(id)
}

// skipList lists the occurrences of a shard whose document has no content in the index. Each is a
// row. Rows with the same repository and the same mask are a class. In a set of rows, which has a
// bit for each row, each class begins at a whole word.
//
//	class    repo 0, mask 0        repo 0, mask 3    repo 2, mask 0
//	rows     0 ... 69              70 71             72
//	words    0 and 1               2                 3
//
// It is immutable.
type skipList struct {
	rows    []uint32 // occurrence of each row
	classes []skipClass
	words   int // number of words in a set of rows
}

// skipClass is the rows of one repository and one mask, both as the shard numbers them.
type skipClass struct {
	repo, mask  int
	first, rows int // in skipList.rows
	word        int // where its bits begin in a set of rows
}

// words returns how many words of a set belong to the class.
func (k *skipClass) words() int { return (k.rows + 63) / 64 }

// lastWordMask returns a mask of the bits in the last word of the class that stand for rows.
func (k *skipClass) lastWordMask() uint64 { return ^uint64(0) >> (-k.rows & 63) }
