package change

import (
	"encoding/hex"
	"encoding/json"
	"path/filepath"
	"slices"
	"sort"
	"sync"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/shoalsearch/shoal/shard/file"
	"github.com/shoalsearch/shoal/trigram"
)

// index is an open file of changes. It is safe for concurrent use.
type index struct {
	f    *file.File
	m    contents
	base uint32 // commits of the repository in the files before

	ids                 []byte
	order               file.Column32
	times               file.Column64
	who                 file.Column32
	parents, parentEnds file.Column32
	fileEnds, files     file.Column32
	people, paths       column
	pathLangs           file.Column16
	messages, lines     pageColumn

	derive sync.Once // of the fields below, at the first search
	named  *roaring.Bitmap
	pieces []piece
}

// column is a list of texts, by number.
type column struct {
	bytes []byte
	ends  file.Column32
}

func (c column) at(i uint32) []byte { return file.Entry(c.bytes, c.ends, int(i)) }

// openIndex opens a file in dir. base is the number of commits in the files before it. The caller
// must close the index.
func openIndex(dir string, id file.ID, base uint32) (*index, error) {
	f, err := file.Open(filepath.Join(dir, id.Name(file.KindChanges)), file.KindChanges, &file.Release)
	if err != nil {
		return nil, err
	}
	x := &index{f: f, base: base}
	if err := file.Guard(x.read); err != nil {
		f.Close()
		return nil, err
	}
	return x, nil
}

// read checks and loads all columns. A search needs most of them, and they are much smaller than
// the texts.
func (x *index) read() error {
	head, err := x.f.Bytes(secMeta)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(head, &x.m); err != nil {
		return x.f.Damaged("meta: %v", err)
	}

	for _, s := range []struct {
		id   file.SectionID
		to   *[]byte
		size int
	}{
		{secIDs, &x.ids, x.m.Commits * x.m.IDBytes}, {secOrder, (*[]byte)(&x.order), 4 * x.m.Commits},
		{secTimes, (*[]byte)(&x.times), 16 * x.m.Commits}, {secWho, (*[]byte)(&x.who), 8 * x.m.Commits},
		{secParents, (*[]byte)(&x.parents), -1}, {secParentEnds, (*[]byte)(&x.parentEnds), 4 * x.m.Commits},
		{secFileEnds, (*[]byte)(&x.fileEnds), 4 * x.m.Commits}, {secFiles, (*[]byte)(&x.files), 20 * x.m.Files},
		{secPeople, &x.people.bytes, -1}, {secPeopleEnds, (*[]byte)(&x.people.ends), -1},
		{secPaths, &x.paths.bytes, -1}, {secPathEnds, (*[]byte)(&x.paths.ends), -1}, {secPathLangs, (*[]byte)(&x.pathLangs), -1},
		{secMessagePages, &x.messages.table, -1}, {secMessageBlocks, (*[]byte)(&x.messages.blocks), -1}, {secMessageDict, &x.messages.dict, -1},
		{secLinePages, &x.lines.table, -1}, {secLineBlocks, (*[]byte)(&x.lines.blocks), -1}, {secLineDict, &x.lines.dict, -1},
	} {
		if *s.to, err = x.f.Bytes(s.id); err != nil {
			return err
		}
		if s.size >= 0 && len(*s.to) != s.size {
			return x.f.Damaged("section %d has %d bytes, not %d", s.id, len(*s.to), s.size)
		}
	}

	x.messages.texts, x.lines.texts = x.m.Commits, x.m.Files
	for _, p := range []struct {
		column     *pageColumn
		sets, text file.SectionID
		segments   int
	}{
		{&x.messages, secMessageSets, secMessageText, x.m.MessageSegments},
		{&x.lines, secLineSets, secLineText, x.m.LineSegments},
	} {
		if p.column.sets, err = x.f.Bytes(p.sets); err != nil {
			return err
		}
		if p.column.post, err = x.postings(p.text, p.segments); err != nil {
			return err
		}
	}
	return nil
}

// postings opens segments. Their bytes are checked at their first use.
func (x *index) postings(first file.SectionID, segments int) (*trigram.Index, error) {
	raw, at := make([][]byte, segments), make([]int64, segments)
	for i := range raw {
		s := x.f.Find(first + file.SectionID(i))
		raw[i], at[i] = x.f.Raw(s), s.Offset
	}
	return trigram.Open(raw, func(seg, from, n int) error { return x.f.Touch(at[seg]+int64(from), int64(n)) })
}

func (x *index) close() { x.f.Close() }

// find returns the number of a commit in the repository.
func (x *index) find(id []byte) (uint32, bool) {
	n := x.m.IDBytes
	at := func(i int) []byte { c := int(x.order.At(i)); return x.ids[c*n : (c+1)*n] }
	i, ok := sort.Find(x.m.Commits, func(i int) int { return slices.Compare(id, at(i)) })
	if !ok {
		return 0, false
	}
	return x.base + x.order.At(i), true
}

// id returns the id of a commit in this file.
func (x *index) id(c uint32) string {
	n := uint32(x.m.IDBytes)
	return hex.EncodeToString(x.ids[c*n : (c+1)*n])
}

// filesOf returns the numbers of the files of a commit, from and up to.
func (x *index) filesOf(c uint32) (from, to uint32) {
	if c > 0 {
		from = x.fileEnds.At(int(c) - 1)
	}
	return from, x.fileEnds.At(int(c))
}

// commitFrom returns the commit of a changed file, which is not in a commit before from.
func (x *index) commitFrom(f, from uint32) uint32 {
	for range 8 { // it often is in the next one
		if x.fileEnds.At(int(from)) > f {
			return from
		}
		from++
		if int(from) == x.m.Commits {
			break
		}
	}
	n := x.m.Commits - int(from)
	return from + uint32(sort.Search(n, func(i int) bool { return x.fileEnds.At(int(from)+i) > f }))
}

// numParents returns how many parents a commit has.
func (x *index) numParents(c uint32) uint32 {
	from := uint32(0)
	if c > 0 {
		from = x.parentEnds.At(int(c) - 1)
	}
	return x.parentEnds.At(int(c)) - from
}

// parentsOf returns the numbers of a commit's parents in the repository, or none.
func (x *index) parentsOf(c uint32) []uint32 {
	from := uint32(0)
	if c > 0 {
		from = x.parentEnds.At(int(c) - 1)
	}
	var out []uint32
	for i := from; i < x.parentEnds.At(int(c)); i++ {
		out = append(out, x.parents.At(int(i)))
	}
	return out
}

// fileRow is the row of a changed file.
type fileRow struct {
	path, from     uint32
	removed, added int
	flags          uint32
}

func (x *index) entry(f uint32) fileRow {
	at := func(i int) uint32 { return x.files.At(5*int(f) + i) }
	return fileRow{at(0), at(1), int(at(2)), int(at(3)), at(4)}
}

// pathsOf returns the path of a changed file, and the one before a rename.
func (x *index) pathsOf(f uint32) (path, from uint32) {
	return x.files.At(5 * int(f)), x.files.At(5*int(f) + 1)
}

func (e fileRow) named() bool { return e.flags&(flagBinary|flagHuge) != 0 }
