package git

import (
	"bufio"
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/shoalsearch/shoal/shard/git/pack"
	"github.com/shoalsearch/shoal/shard/git/run"
)

// MaxPatch is the greatest number of bytes of changed lines of one file in one commit. If a change is
// larger, Patches passes only the path of the file.
const MaxPatch = 1 << 20

// PatchCommit is the head of a commit whose patches are read.
type PatchCommit struct {
	ID                     string
	Parents                []string
	Author, Committer      string // as "Ann <ann@example.com>"
	AuthorTime, CommitTime int64  // seconds since 1970
	Message                string
	Unread                 bool // its patches could not be read: no file of it follows
}

// PatchFile is what a commit changed in one file. The bytes are valid until the callback returns.
type PatchFile struct {
	Path           string
	From           string // where a renamed file was before; "" for others
	Status         byte   // A added, M modified, D deleted, R renamed
	Binary, Huge   bool   // its lines are not known
	Hunks          []PatchHunk
	Removed, Added []byte // the lines of all hunks, each with a newline
}

// PatchHunk is the place of a run of changed lines, and how many bytes they have.
type PatchHunk struct {
	Old, New       DiffRange
	Removed, Added int
}

// PatchReader takes commits one after the other, each with its files. An error ends the reading.
type PatchReader interface {
	Commit(c *PatchCommit) error
	File(f *PatchFile) error
	// Moved says that the commit is a merge that has a file at to, which a parent has at from.
	Moved(from, to string) error
}

// patchFormat is the head of a commit. It begins with a NUL, with which no line of a patch begins.
const patchFormat = "--format=%x00%H%x00%P%x00%an <%ae>%x00%at%x00%cn <%ce>%x00%ct%x00%B%x00"

const (
	patchTime    = 30 * time.Minute // of one run
	patchBytes   = 64 << 30         // of its output, which is streamed
	patchMessage = 1 << 20          // greatest number of bytes of a message
)

// Ancestry lists tips and their ancestors, parents before children, without the commits in exclude
// and their ancestors. If limit is not 0, it lists only that many of the newest commits. If since is
// not zero, it lists only commits from that time on. It returns an error if the mirror lacks a tip,
// and ignores a commit of exclude that the mirror lacks.
func (h *traces) Ancestry(ctx context.Context, tips, exclude []string, limit int, since time.Time) (ids []string, err error) {
	// A process takes as long as reading the whole history of a small repository.
	if since.IsZero() && (limit == 0 || limit >= shortHistory) {
		if ids, ok := h.ancestryWithoutGit(ctx, tips, exclude); ok {
			return ids, nil
		}
	}

	c := h.git("rev-list", "--date-order", "--ignore-missing", "--stdin")
	if limit > 0 {
		c.Args = append(c.Args, "--max-count="+strconv.Itoa(limit))
	}
	if !since.IsZero() {
		c.Args = append(c.Args, "--since-as-filter="+gitTime(since))
	}
	for _, id := range tips {
		// With --ignore-missing git would silently ignore a missing tip.
		if err := h.checkHasCommit(ctx, id); err != nil {
			return nil, err
		}
	}

	c.Stdin = strings.NewReader(strings.Join(tips, "\n") + strings.Join(append([]string{""}, exclude...), "\n^") + "\n")
	c.Timeout, c.Limit = patchTime, 4<<30
	err = c.Stream(ctx, func(r io.Reader) error {
		in := bufio.NewReaderSize(r, 64<<10)
		for {
			id, err := readLine(in)
			if err != nil {
				return ignoreEOF(err)
			}
			ids = append(ids, id)
		}
	})
	slices.Reverse(ids)
	return ids, err
}

// shortHistory is the greatest number of commits that ancestryWithoutGit reads.
const shortHistory = 500

// ancestryWithoutGit is Ancestry without its limits, and without starting git. ok is false if the
// caller must use git: for a long or shallow history, and for commits in no pack.
func (h *traces) ancestryWithoutGit(ctx context.Context, tips, exclude []string) (ids []string, ok bool) {
	err := h.inHistory(ctx, patchTime, func(c *chronicle, shallow boundary, _ func() error) error {
		if len(shallow) > 0 {
			return pack.ErrAskGit
		}
		visited := map[uint32]bool{}
		for _, id := range exclude {
			if err := c.visitParentsFirst(id, visited, func(uint32) {}); err != nil {
				return err
			}
		}
		for _, id := range tips {
			if err := c.visitParentsFirst(id, visited, func(pos uint32) { ids = append(ids, hex.EncodeToString(c.id(pos))) }); err != nil {
				return err
			}
		}
		return nil
	})
	return ids, err == nil
}

// visitParentsFirst calls use for a commit and its ancestors, parents first, and adds them to
// visited. It skips commits that visited has already. If visited would get more than shortHistory
// commits, it returns [pack.ErrAskGit].
func (c *chronicle) visitParentsFirst(commit string, visited map[uint32]bool, use func(pos uint32)) error {
	id, err := hex.DecodeString(commit)
	if err != nil {
		return err
	}
	tip, err := c.position(id)
	if err != nil {
		return err
	}

	// path leads from the commit to the current one. Its commits count as visited: no commit is its
	// own ancestor.
	type step struct {
		pos  uint32
		left []uint32 // its parents that were not visited yet
	}
	var path []step
	enter := func(pos uint32) error {
		if visited[pos] {
			return nil
		}
		if len(visited) == shortHistory {
			return pack.ErrAskGit
		}
		visited[pos] = true
		parents, err := c.parents(nil, pos)
		path = append(path, step{pos, parents})
		return err
	}
	if err := enter(tip); err != nil {
		return err
	}
	for len(path) > 0 {
		last := &path[len(path)-1]
		if len(last.left) == 0 {
			use(last.pos)
			path = path[:len(path)-1]
			continue
		}
		next := last.left[0]
		last.left = last.left[1:]
		if err := enter(next); err != nil {
			return err
		}
	}
	return nil
}

// checkHasCommit returns an error if the mirror lacks a commit. It needs no process for a small
// commit in a pack.
func (h *traces) checkHasCommit(ctx context.Context, id string) error {
	return h.with(ctx, func(r reader) error {
		return r.Contents(id, func(o run.ObjectInfo, _ io.Reader) error {
			if o.Kind == "" {
				return fmt.Errorf("commit %s: %w", id, ErrNoRef)
			}
			return nil
		})
	})
}

// Patches reads the changes of commits against their first parents, in order, without context
// lines. For a merge it reads the lines that no parent has, and the removed lines that all parents
// have. It needs memory for one patch.
//
// Git compares all commits in one run. After an error, for example about a tree that needs too much
// memory, the caller may try again with alone set: Patches then reads each commit separately, and
// sets Unread for a commit that it cannot read.
func (h *traces) Patches(ctx context.Context, ids []string, alone bool, to PatchReader) error {
	cut, err := shallowOf(h.dir)
	if err != nil {
		return err
	}
	// Do not read the files of a commit whose parents are missing: to git it adds all of its files.
	if i := slices.IndexFunc(ids, func(id string) bool { return cut[id] }); i >= 0 {
		if err := h.Patches(ctx, ids[:i], alone, to); err != nil {
			return err
		}
		if err := h.readPatches(ctx, ids[i:i+1], unreadReader{to}, headsOnly); err != nil {
			return err
		}
		return h.Patches(ctx, ids[i+1:], alone, to)
	}
	if !alone {
		return h.readPatches(ctx, ids, to, withFiles)
	}

	// Read each commit twice: first only to find out whether it can be read.
	for i := range ids {
		one := ids[i : i+1]
		err := h.readPatches(ctx, one, discardPatches{}, withFiles)
		switch {
		case err == nil:
			err = h.readPatches(ctx, one, to, withFiles)
		case ctx.Err() == nil:
			err = h.readPatches(ctx, one, unreadReader{to}, headsOnly)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// discardPatches ignores all parts of a patch. Patches uses it to test whether a commit can be read.
type discardPatches struct{}

func (discardPatches) Commit(*PatchCommit) error { return nil }
func (discardPatches) File(*PatchFile) error     { return nil }
func (discardPatches) Moved(_, _ string) error   { return nil }

// unreadReader passes commits on with Unread set.
type unreadReader struct{ PatchReader }

// Commit passes on a commit with Unread set.
func (r unreadReader) Commit(c *PatchCommit) error {
	c.Unread = true
	return r.PatchReader.Commit(c)
}

// patchParser reads what git diff-tree prints: heads of commits, each with its patches.
//
//	NUL <commit> NUL <parents> NUL ... <message> NUL
//
//	diff --git a/src/a.c b/src/a.c
//	index <oid>..<oid> 100644
//	--- a/src/a.c
//	+++ b/src/a.c
//	@@ -1 +1,2 @@
//	-one
//	+two
type patchParser struct {
	in *records
	to PatchReader

	line    []byte // the current line, without its newline
	cut     bool   // its end is missing, as it is longer than MaxPatch
	f       PatchFile
	open    bool // f is the current file, of which more lines may follow
	inHunk  bool
	parents int // of the merge whose combined patch is read; 0 for another commit
	old     int // in a hunk of a merge: number of the next line in the parents
	now     int // and in the merge
}

// readCommit reads the next commit with its files and passes them on.
func (p *patchParser) readCommit() error {
	if err := p.readHead(); err != nil {
		return err
	}
	for {
		switch first, err := p.in.src.Peek(1); {
		case err == io.EOF || err == nil && first[0] == 0:
			return p.endFile()
		case err != nil:
			return err
		}
		if err := p.readLine(); err != nil {
			return err
		}
		if err := p.parseLine(); err != nil {
			return err
		}
	}
}

// readHead reads the head of a commit and passes it on. Its error is io.EOF if no commit follows.
func (p *patchParser) readHead() error {
	switch first, err := p.in.src.ReadByte(); {
	case err != nil:
		return err
	case first != 0:
		return errors.New("git diff-tree printed no commit where one begins")
	}

	*p.in.room = answerTexts // the limit is for each commit
	var c PatchCommit
	var seconds [2]string
	var err error
	if c.ID, err = p.in.readInnerField(maxField); err != nil {
		return err
	}
	if c.Parents, err = p.in.readParents(); err != nil {
		return err
	}
	for _, f := range []struct {
		to       *string
		maxBytes int
	}{{&c.Author, 2 * maxPerson}, {&seconds[0], maxField}, {&c.Committer, 2 * maxPerson}, {&seconds[1], maxField}, {&c.Message, patchMessage}} {
		if *f.to, err = p.in.readInnerField(f.maxBytes); err != nil {
			return err
		}
	}
	c.AuthorTime, c.CommitTime = unixTime(seconds[0]).Unix(), unixTime(seconds[1]).Unix()
	c.Message = strings.TrimRight(c.Message, "\n")
	return p.to.Commit(&c)
}

// readLine reads the next line into p.line. It keeps only a little more than MaxPatch bytes.
func (p *patchParser) readLine() error {
	p.line, p.cut = p.line[:0], false
	for {
		part, err := p.in.src.ReadSlice('\n')
		if len(p.line)+len(part) <= MaxPatch+4096 {
			p.line = append(p.line, part...)
		} else {
			p.cut = true
		}
		if err != bufio.ErrBufferFull {
			p.line = bytes.TrimSuffix(p.line, newline)
			return ignoreEOF(err)
		}
	}
}

// parseLine parses the current line, which is not in the head of a commit.
func (p *patchParser) parseLine() error {
	line := p.line
	switch {
	case bytes.HasPrefix(line, []byte("diff --git ")):
		return p.beginFile(diffPath(string(line[len("diff --git "):])), 0)
	case bytes.HasPrefix(line, []byte("diff --combined ")):
		return p.beginFile(unquote(string(line[len("diff --combined "):])), 1)
	case !p.open:
		if bytes.HasPrefix(line, []byte("::")) {
			return p.passMoved(string(line))
		}
		return nil // the list of changed files, and the empty lines around it
	case bytes.HasPrefix(line, []byte("@@")):
		return p.beginHunk(string(line[:min(len(line), 1<<10)]))
	case p.inHunk:
		p.addHunkLine(line)
	default:
		p.parseHeader(string(line[:min(len(line), maxPath)]))
	}
	return nil
}

// passMoved reads a file of a merge in the list of changed files, and passes on from where it was
// moved:
//
//	::100644 100644 100644 <oid> <oid> <oid> RM<tab>path in the first parent<tab>path in the second<tab>path
func (p *patchParser) passMoved(line string) error {
	fields := strings.Split(line, "\t")
	to := unquote(fields[len(fields)-1])
	for _, path := range fields[1 : len(fields)-1] {
		if from := unquote(path); from != to {
			if err := p.to.Moved(from, to); err != nil {
				return err
			}
		}
	}
	return nil
}

// beginFile ends the current file and begins another. parents is 0, or 1 in a merge, as long as the
// number of its parents is unknown.
func (p *patchParser) beginFile(path string, parents int) error {
	if err := p.endFile(); err != nil {
		return err
	}
	p.f = PatchFile{Path: path, Status: 'M', Hunks: p.f.Hunks[:0], Removed: p.f.Removed[:0], Added: p.f.Added[:0]}
	p.open, p.inHunk, p.parents = true, false, parents
	return nil
}

// endFile passes on the current file, if there is one. It omits a file in which a merge changed no
// lines itself.
func (p *patchParser) endFile() error {
	if !p.open {
		return nil
	}
	p.open, p.inHunk = false, false
	if p.f.Huge || p.f.Binary {
		p.f.Hunks, p.f.Removed, p.f.Added = p.f.Hunks[:0], p.f.Removed[:0], p.f.Added[:0]
	} else if p.parents > 0 && len(p.f.Hunks) == 0 {
		return nil
	}
	if p.parents > 0 {
		for i := range p.f.Hunks {
			p.f.Hunks[i].setEmptyStarts()
		}
	}
	return p.to.File(&p.f)
}

// setEmptyStarts sets the start of a side without lines to the line before the hunk, as git does for
// commits with one parent.
func (h *PatchHunk) setEmptyStarts() {
	for _, side := range []*DiffRange{&h.Old, &h.New} {
		if side.Lines == 0 {
			side.Start--
		}
	}
}

// parseHeader parses a line between the name of a file and its hunks: the file's mode, a rename, or
// that it is binary.
func (p *patchParser) parseHeader(line string) {
	switch {
	case strings.HasPrefix(line, "new file mode "):
		p.f.Status = 'A'
	case strings.HasPrefix(line, "deleted file mode "):
		p.f.Status = 'D'
	case strings.HasPrefix(line, "rename from "):
		p.f.From, p.f.Status = unquote(line[len("rename from "):]), 'R'
	case strings.HasPrefix(line, "rename to "):
		p.f.Path = unquote(line[len("rename to "):])
	case strings.HasPrefix(line, "Binary files "):
		p.f.Binary = true
	}
}

// beginHunk parses the line that begins a hunk.
func (p *patchParser) beginHunk(line string) error {
	p.inHunk = true
	if p.parents == 0 {
		h, err := parseHunkHeader(line)
		if err != nil {
			return err
		}
		p.f.Hunks = append(p.f.Hunks, PatchHunk{Old: h.Old, New: h.New})
		return nil
	}

	// "@@@ -1,2 -3 +1,4 @@@" has one more @ than the merge has parents. addMergeLine makes the
	// hunks.
	ranges := strings.Fields(line)
	p.parents = len(ranges[0]) - 1
	if p.parents < 2 || len(ranges) < p.parents+2 {
		return fmt.Errorf("git diff-tree said %.80q", line)
	}
	// Ignore the numbers of lines: for a file that a merge deletes, git prints
	// +1,18446744073709551615.
	var err error
	for i, to := range map[int]*int{1: &p.old, 1 + p.parents: &p.now} {
		start, _, _ := strings.Cut(ranges[i][1:], ",")
		if *to, err = strconv.Atoi(start); err != nil {
			return fmt.Errorf("git diff-tree said %.80q", line)
		}
	}
	return nil
}

// addHunkLine adds a line of a hunk to the file, unless the file is huge.
func (p *patchParser) addHunkLine(line []byte) {
	if p.cut || len(p.f.Added)+len(p.f.Removed)+len(line) > MaxPatch {
		p.f.Huge = true
	}
	signs := max(1, p.parents)
	if len(line) < signs || line[0] == '\\' || p.f.Huge && p.parents == 0 {
		return
	}
	if p.parents > 0 {
		p.addMergeLine(line[:signs], line[signs:])
		return
	}
	h := &p.f.Hunks[len(p.f.Hunks)-1]
	p.addLine(h, line[0], line[1:])
}

// addLine adds an added or removed line to the file, and counts it in the hunk.
func (p *patchParser) addLine(h *PatchHunk, sign byte, text []byte) {
	switch sign {
	case '+':
		p.f.Added = append(append(p.f.Added, text...), '\n')
		h.Added += len(text) + 1
	case '-':
		p.f.Removed = append(append(p.f.Removed, text...), '\n')
		h.Removed += len(text) + 1
	}
}

// addMergeLine takes a line of a merge, with a sign for each parent:
//
//	++  no parent has the line: the merge added it
//	--  all parents have the line: the merge removed it
//	+   only the second parent has it
//	 -  only the second parent has it, and the merge lacks it
//
// Only lines of the first two kinds are lines of the merge's own hunks.
func (p *patchParser) addMergeLine(signs, text []byte) {
	own := len(bytes.Trim(signs, string(signs[:1]))) == 0 && signs[0] != ' '
	removed := bytes.IndexByte(signs, '-') >= 0 // the merge lacks the line
	if own && !p.f.Huge {
		h := p.ownHunk()
		p.addLine(h, signs[0], text)
		if removed {
			h.Old.Lines++
		} else {
			h.New.Lines++
		}
	}
	// The first parent counts for the numbers of old lines.
	if removed && signs[0] == '-' || !removed && signs[0] == ' ' {
		p.old++
	}
	if !removed {
		p.now++
	}
}

// ownHunk returns the last hunk of a merge's own lines if it ends at the current line, or a new
// one.
func (p *patchParser) ownHunk() *PatchHunk {
	if n := len(p.f.Hunks); n > 0 {
		h := &p.f.Hunks[n-1]
		if h.Old.Start+h.Old.Lines == p.old && h.New.Start+h.New.Lines == p.now {
			return h
		}
	}
	p.f.Hunks = append(p.f.Hunks, PatchHunk{Old: DiffRange{Start: p.old}, New: DiffRange{Start: p.now}})
	return &p.f.Hunks[len(p.f.Hunks)-1]
}

// diffPath returns the path in "a/P b/P" or in the quoted form of it, where both have the same
// length. For a renamed file the result is wrong, but other lines name its paths.
func diffPath(names string) string {
	half := len(names) / 2
	if strings.HasPrefix(names, `"`) {
		return strings.TrimPrefix(unquote(names[:half]), "a/")
	}
	if half > 2 {
		return names[2:half]
	}
	return ""
}
