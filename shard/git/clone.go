package git

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A repository in a directory of this machine is looked at, and copied for
// the first time, without the dozen processes with which git talks to itself:
//
//	nothing new    none: the files of the references of both sides are compared
//	first copy     one: its packs are copied and looked through, or what has no
//	               pack is packed, out of its directory into the mirror
//
// Whatever is out of the ordinary is left to git.

// quick is a fetch in that way. It reports false when it did nothing.
func (m *Mirror) quick(ctx context.Context, remote Remote) (Fetched, bool) {
	source, there, ok := glance(remote)
	if !ok {
		return Fetched{}, false
	}
	have, err := formatOf(m.dir)
	if err != nil || have != "" && have != there.format() {
		return Fetched{}, false
	}
	symref := there.defaultRef()
	head, want := "ref: "+symref, maps.Clone(there.refs)
	if symref == "" {
		if there.head == "" {
			return Fetched{}, false
		}
		head, want[headRef] = there.head, there.head
	}
	f := Fetched{Refs: len(there.refs), DefaultBranch: strings.TrimPrefix(symref, "refs/heads/")}
	if have != "" {
		return f, m.shows(want, head)
	}
	if _, err := m.prepare(ctx, there.format()); err != nil {
		return Fetched{}, false
	}
	defer m.forget()
	if err := m.clone(ctx, source, want, head); err != nil {
		_ = m.discard()
		return Fetched{}, false
	}
	f.Changed = true
	return f, true
}

// glance reads the references of a remote from its files.
func glance(remote Remote) (source string, there *listing, ok bool) {
	source, ok = seedable(remote.URL)
	if !ok || !ordinaryConfig(source) {
		return "", nil, false
	}
	if _, err := os.Lstat(filepath.Join(source, "commondir")); err == nil {
		return "", nil, false
	}
	all, ok := refFiles(source)
	if !ok {
		return "", nil, false
	}
	there = &listing{refs: map[string]string{}}
	for name, oid := range all {
		if strings.HasPrefix(name, "refs/heads/") || strings.HasPrefix(name, "refs/tags/") {
			there.refs[name] = oid
		}
	}
	if len(there.refs) == 0 || len(there.refs) > maxRefs {
		return "", nil, false
	}
	info, err := os.Lstat(filepath.Join(source, "HEAD"))
	if err != nil || !info.Mode().IsRegular() || info.Size() > 4096 {
		return "", nil, false
	}
	text, err := os.ReadFile(filepath.Join(source, "HEAD"))
	if err != nil {
		return "", nil, false
	}
	value := strings.TrimSpace(string(text))
	to, symbolic := strings.CutPrefix(value, "ref: ")
	switch {
	case symbolic && there.refs[to] != "":
		there.symref, there.head = to, there.refs[to]
	case symbolic: // unborn
	case isHex(value):
		there.head = value
	default:
		return "", nil, false
	}
	return source, there, true
}

// shows tells that the mirror has exactly these references, and HEAD.
func (m *Mirror) shows(want map[string]string, head string) bool {
	if m.sweep() != nil {
		return false
	}
	here, ok := m.refFiles()
	if !ok || !maps.Equal(here, want) {
		return false
	}
	text, err := os.ReadFile(filepath.Join(m.dir, "HEAD"))
	return err == nil && strings.TrimSpace(string(text)) == head
}

// clone fills a new mirror.
func (m *Mirror) clone(ctx context.Context, source string, refs map[string]string, head string) error {
	packs, err := m.copied(ctx, source)
	if err != nil {
		return err
	}
	loose, err := looseObjects(source)
	if err != nil {
		return err
	}
	if packs == 0 || loose {
		if err := m.packFrom(ctx, source, refs, packs > 0); err != nil {
			return err
		}
	}
	// What was packed as a whole is whole; what was copied is looked through.
	if packs > 0 {
		if err := m.connected(ctx, refs); err != nil {
			return err
		}
	}
	return m.writeRefs(refs, head)
}

// copied copies the packs of a directory and counts them.
func (m *Mirror) copied(ctx context.Context, source string) (int, error) {
	if err := copyPacks(ctx, filepath.Join(source, "objects", "pack"), filepath.Join(m.dir, "objects", "pack")); err != nil {
		return 0, err
	}
	packs, err := m.packs()
	return len(packs), err
}

// looseObjects tells whether a repository may have objects in no pack.
func looseObjects(dir string) (bool, error) {
	entries, err := os.ReadDir(filepath.Join(dir, "objects"))
	return slices.ContainsFunc(entries, func(e os.DirEntry) bool { return len(e.Name()) == 2 }), err
}

// packFrom packs what references of another directory lead to into the
// mirror; with rest only what is in no pack there.
func (m *Mirror) packFrom(ctx context.Context, source string, refs map[string]string, rest bool) error {
	if strings.ContainsAny(source, ":\"\n") { // the list of directories has no place for these
		return errUnsuited
	}
	c := m.git("pack-objects", "--quiet", "--revs", "--non-empty", "--window=0", "--delta-base-offset", "--compression=1")
	if rest {
		c.args = append(c.args, "--incremental")
	}
	c.args = append(c.args, filepath.Join(m.dir, "objects", "pack", "pack"))
	c.env = []string{"GIT_ALTERNATE_OBJECT_DIRECTORIES=" + filepath.Join(source, "objects")}
	var tips bytes.Buffer
	for _, oid := range slices.Compact(slices.Sorted(maps.Values(refs))) {
		fmt.Fprintln(&tips, oid)
	}
	c.stdin, c.timeout, c.writes = &tips, copyTime, true
	return c.run(ctx)
}
