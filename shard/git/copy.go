package git

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/shoalsearch/shoal/shard/git/pack"
	"github.com/shoalsearch/shoal/shard/git/run"
)

// A copy of a mirror travels as text lines and then a pack:
//
//	shoal mirror 1
//	sha1
//	ref: refs/heads/main          or a commit, or nothing
//	2
//	<oid> refs/heads/main
//	<oid> refs/tags/v1
//	PACK...                       objects that the receiver lacks, to the end
//
// The copy of a shallow repository has version 2. Between the references and the pack it has the
// number of commits whose parents are missing, and their ids, one a line.
//
// The pack ends with its checksum, so a truncated stream is noticed. Before the references move,
// the receiver checks that all objects are there that they lead to.
const (
	copyMagic    = "shoal mirror 1"
	shallowMagic = "shoal mirror 2" // for a shallow repository; older nodes refuse it, and would otherwise fail at its pack
)

// copier sends a mirror to another node, and receives one.
type copier struct{ *updater }

const copyTime = 2 * time.Hour

// Tips returns the sorted ids of the objects that the references lead to. Another node may leave
// out of its stream what they reach. An empty or missing mirror has none. A shallow mirror lacks
// the history before its boundary, so it adds a mark of the boundary: only a mirror with the same
// boundary may leave out what it has.
func (k *copier) Tips(ctx context.Context) ([]string, error) {
	if format, err := formatOf(k.dir); err != nil || format == "" {
		return nil, err
	}
	refs, err := k.heads(ctx)
	if err != nil {
		return nil, err
	}
	tips := slices.Compact(slices.Sorted(maps.Values(refs)))

	cut, err := shallowOf(k.dir)
	if err == nil && len(cut) > 0 {
		tips = append(tips, cut.mark())
	}
	return tips, err
}

// Export writes the whole state of the mirror as a stream for Import: all references, HEAD, and the
// objects that have does not reach. It ignores ids that the mirror does not know.
func (k *copier) Export(ctx context.Context, have []string, w io.Writer) error {
	format, err := formatOf(k.dir)
	if err != nil {
		return err
	}
	if format == "" {
		return fmt.Errorf("the mirror was never fetched: %w", ErrEmpty)
	}

	refs, err := k.heads(ctx)
	if err != nil {
		return err
	}
	head, err := os.ReadFile(filepath.Join(k.dir, "HEAD"))
	if err != nil {
		return err
	}

	// The header lists all references. The pack has what lies between the tips of the other side
	// and these.
	cut, err := shallowOf(k.dir)
	if err != nil {
		return err
	}
	known, err := k.present(ctx, have, cut)
	if err != nil {
		return err
	}

	magic := copyMagic
	if len(cut) > 0 {
		magic = shallowMagic
	}
	var header, want bytes.Buffer // want is the input of pack-objects: ids, then --not and ids
	fmt.Fprintf(&header, "%s\n%s\n%s\n%d\n", magic, format, strings.TrimSpace(string(head)), len(refs))
	for _, name := range slices.Sorted(maps.Keys(refs)) {
		fmt.Fprintf(&header, "%s %s\n", refs[name], name)
		fmt.Fprintf(&want, "%s\n", refs[name])
	}
	if len(cut) > 0 {
		fmt.Fprintf(&header, "%d\n%s", len(cut), cut.text())
	}
	if len(known) > 0 {
		fmt.Fprintf(&want, "--not\n%s\n", strings.Join(known, "\n"))
	}

	if _, err := w.Write(header.Bytes()); err != nil {
		return err
	}

	c := k.git("pack-objects", "--revs", "--stdout", "--thin", "--delta-base-offset", "--quiet")
	c.Config = []string{"pack.window", "0"} // reuse existing deltas, look for no new ones
	c.Stdin, c.Timeout, c.Limit = &want, copyTime, 1<<50
	return c.Stream(ctx, func(r io.Reader) error {
		_, err := io.Copy(w, r)
		return err
	})
}

// present returns those ids from another copy that are also in this mirror, which has a boundary of
// its own. With another boundary nothing is known about the history of an id.
func (k *copier) present(ctx context.Context, ids []string, cut boundary) ([]string, error) {
	theirs := boundary(nil).mark()
	for _, id := range ids {
		if strings.HasPrefix(id, "shallow ") {
			theirs = id
		}
	}
	if theirs != cut.mark() {
		return nil, nil
	}

	var out []string
	err := k.with(ctx, func(c reader) error {
		// Ask many questions at once. The answers come in their order.
		for first := 0; first < len(ids); first += askAhead {
			part := slices.Clone(ids[first:min(len(ids), first+askAhead)])
			part = slices.DeleteFunc(part, func(id string) bool { return !pack.IsID(id) })

			if err := c.Ask("info", part...); err != nil {
				return err
			}

			for _, id := range part {
				info, err := c.Answer()
				if err != nil && !errors.Is(err, ErrAmbiguous) {
					return err
				}
				if info.Kind != "" {
					out = append(out, id)
				}
			}

			c.Aligned = c.Asked == 0
		}
		return nil
	})
	return out, err
}

// Import makes the mirror equal to the one that wrote the stream, with moved and deleted
// references. On an error the references stay as they were. Only a stream with another hash
// algorithm replaces the mirror first, and a mirror that turns out to be damaged is removed.
func (k *copier) Import(ctx context.Context, r io.Reader) error {
	release, err := k.acquire(ctx)
	if err != nil {
		return err
	}
	defer release()

	if err := k.take(ctx, r); err != nil {
		// A broken stream may have left damage. If ctx has ended, git cannot be asked.
		if ctx.Err() == nil && !k.Sound(ctx) {
			err = errors.Join(err, k.discard())
		}
		return err
	}
	return nil
}

// take reads a copy of a mirror, as Export wrote it, into this mirror. The caller must hold the
// lock of the mirror for writing.
func (k *copier) take(ctx context.Context, r io.Reader) error {
	in := bufio.NewReaderSize(r, 64<<10)
	to, err := readHeader(in)
	if err != nil {
		return fmt.Errorf("read the copy of a mirror: %w", err)
	}

	if _, err := k.prepare(ctx, to.format); err != nil {
		return fmt.Errorf("prepare mirror: %w", err)
	}
	defer k.forget()

	// Move no reference before all objects are there that they lead to.
	if err := k.takePack(ctx, in); err != nil {
		return fmt.Errorf("read the pack of a copy: %w", err)
	}
	cut, err := shallowOf(k.dir)
	if err != nil {
		return err
	}
	if maps.Equal(cut, to.cut) {
		err = k.checkConnected(ctx, to.refs)
	} else {
		err = k.connectedTo(ctx, to.refs, to.cut)
	}
	if err != nil {
		return fmt.Errorf("the copy lacks objects: %w", err)
	}

	// While the references move, both boundaries apply, so that git misses no parents.
	both := maps.Clone(to.cut)
	maps.Copy(both, cut)
	if err := both.write(filepath.Join(k.dir, shallowFile)); err != nil {
		return err
	}
	if err := k.move(ctx, to.refs); err != nil {
		return fmt.Errorf("move references: %w", err)
	}
	if err := to.cut.write(filepath.Join(k.dir, shallowFile)); err != nil {
		return err
	}

	symref, isRef := strings.CutPrefix(to.head, "ref: ")
	if !isRef {
		symref = ""
	}
	_, err = k.point(ctx, symref, to.head)
	return err
}

// copyHeader is the part of a stream before the pack.
type copyHeader struct {
	format string            // hash algorithm
	head   string            // text of the file HEAD
	refs   map[string]string // id by full name
	cut    boundary
}

// readHeader reads and checks the part of a stream before the pack.
func readHeader(in *bufio.Reader) (to copyHeader, err error) {
	var lines [4]string // magic, hash algorithm, HEAD, number of references
	for i := range lines {
		if lines[i], err = shortLine(in); err != nil {
			return to, err
		}
	}

	// Check each line: a copy may come from anywhere.
	to.format, to.head = lines[1], lines[2]
	n, err := strconv.Atoi(lines[3])
	known := lines[0] == copyMagic || lines[0] == shallowMagic
	if !known || to.format != "sha1" && to.format != "sha256" || err != nil || n < 0 || n > pack.MaxRefs {
		return to, errors.New("not a copy of a mirror, or one of another version")
	}

	if ref, ok := strings.CutPrefix(to.head, "ref: "); ok && !strings.HasPrefix(ref, "refs/heads/") || !ok && !pack.IsID(to.head) {
		return to, fmt.Errorf("HEAD is %.80q", to.head)
	}

	// Read the references, one a line: the id and the full name.
	to.refs = make(map[string]string, min(n, 1<<16))
	for range n {
		line, err := shortLine(in)
		if err != nil {
			return to, err
		}

		oid, name, _ := strings.Cut(line, " ")
		mine := strings.HasPrefix(name, "refs/heads/") || strings.HasPrefix(name, "refs/tags/") || name == headRef

		// Accept only branches, tags and our own reference.
		if !pack.IsID(oid) || !mine {
			return to, fmt.Errorf("a reference is %.80q", line)
		}
		to.refs[name] = oid
	}

	to.cut = boundary{}
	if lines[0] == shallowMagic {
		err = readBoundary(in, to.cut)
	}
	return to, err
}

// readBoundary reads the ids of the commits whose parents are missing.
func readBoundary(in *bufio.Reader, cut boundary) error {
	line, err := shortLine(in)
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(line)
	if err != nil || n < 1 || n > maxShallow/40 {
		return fmt.Errorf("the number of commits without parents is %.80q", line)
	}
	for range n {
		id, err := shortLine(in)
		if err != nil {
			return err
		}
		if !pack.IsID(id) {
			return fmt.Errorf("a commit without parents is %.80q", id)
		}
		cut[id] = true
	}
	return nil
}

// shortLine reads a line that must fit into the buffer.
func shortLine(in *bufio.Reader) (string, error) {
	line, err := in.ReadSlice('\n')
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return "", err
	}
	return string(line[:len(line)-1]), nil
}

// takePack adds the objects of a pack, which may have none.
func (k *copier) takePack(ctx context.Context, in *bufio.Reader) error {
	start, err := in.Peek(12)
	if err != nil {
		return io.ErrUnexpectedEOF
	}
	if string(start[:4]) != "PACK" {
		return errors.New("no pack")
	}

	count := binary.BigEndian.Uint32(start[8:])
	if count == 0 {
		_, err := io.Copy(io.Discard, in)
		return err
	}

	// The count can be trusted: one of our nodes has read these objects before.
	c := k.git("index-pack", "--stdin", "--fix-thin")
	c.Stdin, c.Timeout, c.Writes = in, copyTime, true
	c.Memory = c.Allowance() + run.ObjectMemory*int64(count)
	return c.Run(ctx)
}

// checkConnected checks that all objects are there that the references lead to.
func (u *updater) checkConnected(ctx context.Context, refs map[string]string) error {
	return u.walkObjects(ctx, refs, nil, "--not", "--all")
}

// connectedTo checks that the mirror has all history of refs, down to the boundary cut instead of
// its own. It also checks the mirror's own references, because another boundary may need more
// history.
func (k *copier) connectedTo(ctx context.Context, refs map[string]string, cut boundary) error {
	there := filepath.Join(k.dir, "shallow.copied")
	if err := cut.write(there); err != nil {
		return err
	}
	defer os.Remove(there)
	return k.walkObjects(ctx, refs, []string{"GIT_SHALLOW_FILE=" + there}) // a missing file means all of the history to git
}

// walkObjects makes git walk all objects that references lead to. It fails if one is missing. but has
// further arguments of rev-list, which leave objects out.
func (u *updater) walkObjects(ctx context.Context, refs map[string]string, env []string, but ...string) error {
	if len(refs) == 0 {
		return nil
	}
	var tips bytes.Buffer
	for _, oid := range refs {
		tips.WriteString(oid + "\n")
	}

	c := u.git("rev-list", "--objects", "--stdin", "--quiet")
	c.Args = append(c.Args, but...)
	c.Stdin, c.Env, c.Timeout = &tips, env, copyTime
	return c.Run(ctx)
}

// move sets the references. It deletes old ones first: a/b cannot be made while there is an a.
func (k *copier) move(ctx context.Context, refs map[string]string) error {
	here, err := k.heads(ctx)
	if err != nil {
		return err
	}

	var gone, moved bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(here)) {
		if refs[name] == "" {
			fmt.Fprintf(&gone, "delete %s\x00\x00", name)
		}
	}

	for _, name := range slices.Sorted(maps.Keys(refs)) {
		if here[name] != refs[name] {
			fmt.Fprintf(&moved, "update %s\x00%s\x00\x00", name, refs[name])
		}
	}

	// Run git twice: in one run the old names would still be in the way.
	for _, script := range []*bytes.Buffer{&gone, &moved} {
		if script.Len() == 0 {
			continue
		}

		c := k.git("update-ref", "-z", "--stdin")
		c.Stdin, c.Writes, c.Timeout = script, true, 10*time.Minute
		if err := c.Run(ctx); err != nil {
			return err
		}
	}
	return nil
}
