package change

import (
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/shoalsearch/shoal/shard"
	"github.com/shoalsearch/shoal/shard/charset"
	"github.com/shoalsearch/shoal/shard/file"
	"github.com/shoalsearch/shoal/shard/git"
)

// contents is the header of a file of changes.
type contents struct {
	Commits   int      `json:"commits"`
	Files     int      `json:"files"`
	IDBytes   int      `json:"idBytes"`
	Named     int      `json:"named"`  // files of which only the name is known
	Text      int64    `json:"text"`   // bytes of changed lines and messages
	Unread    []int    `json:"unread"` // commits whose patches could not be read
	Languages []string `json:"languages"`

	// Numbers of paths. A search of files needs them, see [Log.Paths].
	Moved   [][2]uint32 `json:"moved"`   // by a merge: from where, in one of its parents, and to where
	Encoded []uint32    `json:"encoded"` // of files that begin with a byte order mark: a search decodes them

	MessageSegments, LineSegments int
}

// recorder writes one file of changes. It receives commits, parents before children; it implements
// [git.PatchReader].
type recorder struct {
	out    *file.Writer
	base   int // commits of the repository in the files before
	parent func(id string) (number uint32, ok bool)
	m      contents

	own                  map[string]uint32 // numbers of the commits of this file, by id
	ids                  []string
	times, who           []byte
	parents, parentEnds  []byte
	fileEnds, files      []byte
	people, paths, langs table
	pathLangs            []byte
	messages, lines      *pages
	buf                  []byte
}

// table assigns numbers to texts.
type table struct {
	numbers map[string]uint32
	bytes   []byte
	ends    []byte
}

// number returns the number of a text, and whether it is new.
func (t *table) number(text string) (n uint32, fresh bool) {
	if n, ok := t.numbers[text]; ok {
		return n, false
	}
	if t.numbers == nil {
		t.numbers = map[string]uint32{}
	}
	n = uint32(len(t.numbers))
	t.numbers[text] = n
	t.bytes = append(t.bytes, text...)
	t.ends = append32(t.ends, uint32(len(t.bytes)))
	return n, true
}

func append32(b []byte, v uint32) []byte { return binary.LittleEndian.AppendUint32(b, v) }

// newRecorder begins a file in dir. base is the number of commits in earlier files, and parent
// finds their numbers. The caller must call Finish or Abort.
func newRecorder(dir string, base int, parent func(id string) (uint32, bool)) (*recorder, error) {
	out, err := file.NewWriter(dir, file.KindChanges, file.Release.Written(1))
	if err != nil {
		return nil, err
	}
	w := &recorder{out: out, base: base, parent: parent, own: map[string]uint32{}, messages: newPages(out, fewMessages), lines: newPages(out, fewLines)}
	out.Begin(secBlocks)
	return w, nil
}

// Commits returns the number of recorded commits.
func (w *recorder) Commits() int { return len(w.ids) }

// Text returns the number of bytes of all texts so far.
func (w *recorder) Text() int64 { return w.messages.bytes + w.lines.bytes }

// Commit records the head of the next commit.
func (w *recorder) Commit(c *git.PatchCommit) error {
	if w.m.IDBytes == 0 {
		w.m.IDBytes = len(c.ID) / 2
	}
	for _, id := range c.Parents {
		n, ok := w.own[id]
		if !ok {
			n, ok = w.parent(id)
		}
		if !ok {
			n = none
		}
		w.parents = append32(w.parents, n)
	}
	if c.Unread {
		w.m.Unread = append(w.m.Unread, len(w.ids))
	}

	w.own[c.ID] = uint32(w.base + len(w.ids))
	w.ids = append(w.ids, c.ID)
	w.times = binary.LittleEndian.AppendUint64(w.times, uint64(c.AuthorTime))
	w.times = binary.LittleEndian.AppendUint64(w.times, uint64(c.CommitTime))
	author, _ := w.people.number(c.Author)
	committer, _ := w.people.number(c.Committer)
	w.who = append32(append32(w.who, author), committer)
	w.parentEnds = append32(w.parentEnds, uint32(len(w.parents)/4))
	w.fileEnds = append32(w.fileEnds, uint32(w.m.Files))

	w.buf = append(append(w.buf[:0], c.Message...), '\n')
	w.messages.add(nil, w.buf, []git.PatchHunk{{Added: len(w.buf)}})
	return w.out.Err()
}

// File records the next file of the latest commit.
func (w *recorder) File(f *git.PatchFile) error {
	from := uint32(none)
	if f.From != "" {
		from = w.path(f.From)
	}
	flags := uint32(f.Status)
	if f.Binary {
		flags |= flagBinary
	}
	if f.Huge {
		flags |= flagHuge
	}

	path := w.path(f.Path)
	if charset.Of(f.Added) != charset.None {
		w.m.Encoded = append(w.m.Encoded, path)
	}
	w.files = append32(w.files, path)
	for _, v := range []uint32{from, uint32(len(f.Removed)), uint32(len(f.Added)), flags} {
		w.files = append32(w.files, v)
	}
	if f.Binary || f.Huge {
		w.m.Named++
	}
	w.m.Files++
	binary.LittleEndian.PutUint32(w.fileEnds[len(w.fileEnds)-4:], uint32(w.m.Files))
	w.lines.add(f.Removed, f.Added, f.Hunks)
	return w.out.Err()
}

// Moved records that the latest commit, a merge, has a file that was elsewhere in a parent.
func (w *recorder) Moved(from, to string) error {
	w.m.Moved = append(w.m.Moved, [2]uint32{w.path(from), w.path(to)})
	return nil
}

// path returns the number of a path.
func (w *recorder) path(path string) uint32 {
	n, fresh := w.paths.number(path)
	if fresh {
		lang, _ := w.langs.number(shard.LanguageOfPath(path))
		w.pathLangs = binary.LittleEndian.AppendUint16(w.pathLangs, uint16(lang))
	}
	return n
}

// Finish writes the columns, and renames the file to its final name.
func (w *recorder) Finish() (id file.ID, size int64, err error) {
	err = w.finish()
	if err != nil {
		w.Abort()
		return id, 0, err
	}
	w.close()
	return w.out.Finish()
}

func (w *recorder) finish() error {
	if err := errors.Join(w.messages.finish(), w.lines.finish()); err != nil {
		return fmt.Errorf("index of changes: %w", err)
	}
	w.out.End()
	for _, p := range []struct {
		pages                     *pages
		table, blocks, dict, sets file.SectionID
		text                      file.SectionID
		count                     *int
	}{
		{w.messages, secMessagePages, secMessageBlocks, secMessageDict, secMessageSets, secMessageText, &w.m.MessageSegments},
		{w.lines, secLinePages, secLineBlocks, secLineDict, secLineSets, secLineText, &w.m.LineSegments},
	} {
		w.out.Add(p.table, p.pages.table)
		w.out.Add(p.blocks, p.pages.blocks)
		w.out.Add(p.dict, p.pages.dict)
		w.out.Add(p.sets, p.pages.sets)
		for i, s := range p.pages.segments {
			w.out.Add(p.text+file.SectionID(i), s)
		}
		*p.count = len(p.pages.segments)
	}

	w.m.Commits, w.m.Text = len(w.ids), w.Text()
	w.m.Languages = make([]string, len(w.langs.numbers))
	for lang, n := range w.langs.numbers {
		w.m.Languages[n] = lang
	}
	ids, order := w.sortedIDs()
	for _, s := range []struct {
		id    file.SectionID
		bytes []byte
	}{
		{secIDs, ids}, {secOrder, order}, {secTimes, w.times}, {secWho, w.who}, {secParents, w.parents}, {secParentEnds, w.parentEnds},
		{secFileEnds, w.fileEnds}, {secFiles, w.files}, {secPeople, w.people.bytes}, {secPeopleEnds, w.people.ends},
		{secPaths, w.paths.bytes}, {secPathEnds, w.paths.ends}, {secPathLangs, w.pathLangs},
	} {
		w.out.Add(s.id, s.bytes)
	}

	head, err := json.Marshal(&w.m)
	if err != nil {
		return err
	}
	w.out.Add(secMeta, head)
	return w.out.Err()
}

// sortedIDs returns the ids, and their order.
func (w *recorder) sortedIDs() (ids, order []byte) {
	numbers := make([]uint32, len(w.ids))
	for i, id := range w.ids {
		numbers[i] = uint32(i)
		b, _ := hex.DecodeString(id) // git printed it
		ids = append(ids, b...)
	}
	slices.SortFunc(numbers, func(a, b uint32) int { return cmp.Compare(w.ids[a], w.ids[b]) })
	for _, n := range numbers {
		order = append32(order, n)
	}
	return ids, order
}

// Abort removes the unfinished file.
func (w *recorder) Abort() {
	w.close()
	w.out.Abort()
}

func (w *recorder) close() {
	w.messages.close()
	w.lines.close()
}
