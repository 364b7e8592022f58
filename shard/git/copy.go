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

// A copy of a mirror is sent as text lines and then a pack:
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
// The pack ends with its checksum, so the receiver notices a truncated stream. Before it changes
// its references, it checks that it has all objects that they lead to.
const (
	copyMagic    = "shoal mirror 1"
	shallowMagic = "shoal mirror 2" // for a shallow repository; older nodes refuse it, and would otherwise fail at its pack
)

// copier sends a mirror to another node, and receives one.
type copier struct{ *updater }

const copyTime = 2 * time.Hour

// Tips returns the sorted ids of the objects that the references point to, for Export of another
// node, which leaves out all that is reachable from them. An empty or missing mirror has none. A
// shallow mirror adds a mark of its boundary, before which it lacks the history: Export ignores the
// ids if its mirror has another boundary.
func (k *copier) Tips(ctx context.Context) ([]string, error) {
	if format, err := formatOf(k.dir); err != nil || format == "" {
		return nil, err
	}
	refs, err := k.readRefNames(ctx)
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
// objects that the receiver lacks. have has the Tips of the receiver; Export ignores ids that the
// mirror does not know.
func (k *copier) Export(ctx context.Context, have []string, w io.Writer) error {
	format, err := formatOf(k.dir)
	if err != nil {
		return err
	}
	if format == "" {
		return fmt.Errorf("the mirror was never fetched: %w", ErrEmpty)
	}

	refs, err := k.readRefNames(ctx)
	if err != nil {
		return err
	}
	head, err := os.ReadFile(filepath.Join(k.dir, "HEAD"))
	if err != nil {
		return err
	}

	// The header lists all references. The pack has the objects that they reach and have does not.
	cut, err := shallowOf(k.dir)
	if err != nil {
		return err
	}
	known, err := k.knownIDs(ctx, have, cut)
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
		fmt.Fprintf(&header, "%d\n%s", len(cut), cut.lines())
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

// knownIDs returns the ids, from Tips of another node, that are also in this mirror. cut is the
// boundary of this mirror. If the other node has another boundary, knownIDs returns none, because
// that node may lack the history of an id.
func (k *copier) knownIDs(ctx context.Context, ids []string, cut boundary) ([]string, error) {
	otherMark := boundary(nil).mark()
	for _, id := range ids {
		if strings.HasPrefix(id, "shallow ") {
			otherMark = id
		}
	}
	if otherMark != cut.mark() {
		return nil, nil
	}

	var out []string
	err := k.with(ctx, func(c reader) error {
		// Ask about many ids at once. The answers come in the order of the ids.
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

// Import makes the mirror equal to the one that wrote the stream, also its changed and deleted
// references. After an error the references are as before, with two exceptions: a stream with
// another hash algorithm replaces the mirror first, and a mirror that turns out to be damaged is
// removed.
func (k *copier) Import(ctx context.Context, r io.Reader) error {
	release, err := k.acquire(ctx)
	if err != nil {
		return err
	}
	defer release()

	if err := k.receive(ctx, r); err != nil {
		// A broken stream may have damaged the mirror. Sound cannot check it if ctx has ended.
		if ctx.Err() == nil && !k.Sound(ctx) {
			err = errors.Join(err, k.discard())
		}
		return err
	}
	return nil
}

// receive reads a copy of a mirror, as Export wrote it, into this mirror. The caller must hold the
// lock of the mirror for writing.
func (k *copier) receive(ctx context.Context, r io.Reader) error {
	in := bufio.NewReaderSize(r, 64<<10)
	to, err := readHeader(in)
	if err != nil {
		return fmt.Errorf("read the copy of a mirror: %w", err)
	}

	if _, err := k.prepare(ctx, to.format); err != nil {
		return fmt.Errorf("prepare mirror: %w", err)
	}
	defer k.dropCachedRefs()

	// Receive and check all objects before any reference is changed.
	if err := k.receivePack(ctx, in); err != nil {
		return fmt.Errorf("read the pack of a copy: %w", err)
	}
	cut, err := shallowOf(k.dir)
	if err != nil {
		return err
	}
	if maps.Equal(cut, to.cut) {
		err = k.checkConnected(ctx, to.refs)
	} else {
		err = k.checkConnectedTo(ctx, to.refs, to.cut)
	}
	if err != nil {
		return fmt.Errorf("the copy lacks objects: %w", err)
	}

	// While the references change, use both boundaries, so that git does not look for missing
	// parents.
	both := maps.Clone(to.cut)
	maps.Copy(both, cut)
	if err := both.write(filepath.Join(k.dir, shallowFile)); err != nil {
		return err
	}
	if err := k.setRefs(ctx, to.refs); err != nil {
		return fmt.Errorf("move references: %w", err)
	}
	if err := to.cut.write(filepath.Join(k.dir, shallowFile)); err != nil {
		return err
	}

	symref, isRef := strings.CutPrefix(to.head, "ref: ")
	if !isRef {
		symref = ""
	}
	_, err = k.setHEAD(ctx, symref, to.head)
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
		ofMirror := strings.HasPrefix(name, "refs/heads/") || strings.HasPrefix(name, "refs/tags/") || name == headRef

		if !pack.IsID(oid) || !ofMirror {
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

// readBoundary reads the ids of the commits whose parents are missing, and adds them to cut.
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

// receivePack reads a pack and adds its objects to the mirror. The pack may have none.
func (k *copier) receivePack(ctx context.Context, in *bufio.Reader) error {
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

	// Use the count for the memory limit without a check, because another node of the cluster sends
	// it.
	c := k.git("index-pack", "--stdin", "--fix-thin")
	c.Stdin, c.Timeout, c.Writes = in, copyTime, true
	c.Memory = c.Allowance() + run.ObjectMemory*int64(count)
	return c.Run(ctx)
}

// checkConnected checks that the mirror has all objects that refs lead to.
func (u *updater) checkConnected(ctx context.Context, refs map[string]string) error {
	return u.walkObjects(ctx, refs, nil, "--not", "--all")
}

// checkConnectedTo checks that the mirror has all history of refs, down to the boundary cut instead
// of its own. It does not assume that the history of the mirror's own references is complete,
// because another boundary may need more of it.
func (k *copier) checkConnectedTo(ctx context.Context, refs map[string]string, cut boundary) error {
	file := filepath.Join(k.dir, "shallow.copied")
	if err := cut.write(file); err != nil {
		return err
	}
	defer os.Remove(file)
	return k.walkObjects(ctx, refs, []string{"GIT_SHALLOW_FILE=" + file}) // without the file, git walks all of the history
}

// walkObjects makes git walk all objects that refs lead to, and fails if one is missing. exclude
// has further arguments of rev-list, which exclude objects from the walk.
func (u *updater) walkObjects(ctx context.Context, refs map[string]string, env []string, exclude ...string) error {
	if len(refs) == 0 {
		return nil
	}
	var tips bytes.Buffer
	for _, oid := range refs {
		tips.WriteString(oid + "\n")
	}

	c := u.git("rev-list", "--objects", "--stdin", "--quiet")
	c.Args = append(c.Args, exclude...)
	c.Stdin, c.Env, c.Timeout = &tips, env, copyTime
	return c.Run(ctx)
}

// setRefs makes the references of the mirror equal to refs. It deletes old ones first, because git
// cannot make a/b while there is an a.
func (k *copier) setRefs(ctx context.Context, refs map[string]string) error {
	present, err := k.readRefNames(ctx)
	if err != nil {
		return err
	}

	var deletions, updates bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(present)) {
		if refs[name] == "" {
			fmt.Fprintf(&deletions, "delete %s\x00\x00", name)
		}
	}

	for _, name := range slices.Sorted(maps.Keys(refs)) {
		if present[name] != refs[name] {
			fmt.Fprintf(&updates, "update %s\x00%s\x00\x00", name, refs[name])
		}
	}

	// Run git twice, because in one run it would make new references before it deletes old ones.
	for _, script := range []*bytes.Buffer{&deletions, &updates} {
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
