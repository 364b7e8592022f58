package difftest

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf16"
	"unicode/utf8"
)

// The twin answers calls from the output of git, without an index. It is slow and simple on
// purpose.

// twin knows the zoo. It is read-only except for the cache of git's output.
type twin struct {
	dir   string
	repos []*animal // by name

	mu     sync.Mutex
	asked  map[string]string // output of git by arguments
	failed map[string]bool
}

// animal is one repository.
type animal struct {
	name string // name at the node
	dir  string
	refs []ref // indexed ones; HEAD is the first
}

// ref is an indexed revision with its files.
type ref struct {
	name   string // full name
	commit string
	files  []*file // by path
}

// file is a file of a revision. Files with the same blob and path are one value.
type file struct {
	repo      *animal
	path      string // bytes
	mode, oid string
	raw       []byte
	text      string // as searched and shown; "" if not searchable
	encoding  string // "" for unchanged bytes
	mark      int    // bytes of a UTF-8 byte order mark, which positions count
	binary    bool
	large     bool // above maxFileSize
	symlink   bool
	tags      []string
	plain     string // text with \n for each \r\n
	ends      []int  // their offsets in plain
}

// searchable reports whether the index has the text of the file.
func (f *file) searchable() bool { return !f.binary && !f.large }

// scan reads the zoo.
func scan(t testing.TB, dir string, names []string) *twin {
	t.Helper()
	w := &twin{dir: dir, asked: map[string]string{}, failed: map[string]bool{}}
	for _, name := range names {
		a := &animal{name: "local/" + name, dir: filepath.Join(dir, name)}
		w.repos = append(w.repos, a)
		same := map[string]*file{}
		for _, line := range lines(w.must(t, a, "for-each-ref", "--format=%(refname) %(objectname) %(*objectname)")) {
			part := strings.Fields(line)
			r := ref{name: part[0], commit: part[len(part)-1]}
			w.readTree(t, a, &r, same)
			a.refs = append(a.refs, r)
		}
		head := strings.TrimSpace(w.must(t, a, "symbolic-ref", "HEAD"))
		slices.SortStableFunc(a.refs, func(x, y ref) int { return cmp.Compare(btoi(x.name != head), btoi(y.name != head)) })
	}
	slices.SortFunc(w.repos, func(a, b *animal) int { return strings.Compare(a.name, b.name) })
	return w
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// readTree lists the files of a revision.
func (w *twin) readTree(t testing.TB, a *animal, r *ref, same map[string]*file) {
	for entry := range strings.SplitSeq(w.must(t, a, "ls-tree", "-r", "-z", "--full-tree", r.commit), "\x00") {
		head, path, ok := strings.Cut(entry, "\t")
		part := strings.Fields(head)
		if !ok || part[1] != "blob" {
			continue
		}
		key := part[2] + path
		if same[key] == nil {
			same[key] = w.newFile(a, path, part[0], part[2], []byte(w.must(t, a, "cat-file", "blob", part[2])))
		}
		r.files = append(r.files, same[key])
	}
}

func (w *twin) newFile(a *animal, path, mode, oid string, raw []byte) *file {
	f := &file{repo: a, path: path, mode: mode, oid: oid, raw: raw, large: len(raw) > maxFileSize, symlink: mode == "120000"}
	f.text, f.encoding, f.binary = decode(raw)
	if rest, ok := strings.CutPrefix(f.text, "\ufeff"); ok {
		f.text = rest
		if f.encoding == "" {
			f.mark = 3
		}
	}
	for i := range f.text {
		if strings.HasPrefix(f.text[i:], "\r\n") {
			f.ends = append(f.ends, i-len(f.ends))
		}
	}
	f.plain = strings.ReplaceAll(f.text, "\r\n", "\n")

	for tag, is := range map[string]bool{
		"utf-16": f.encoding != "", "bom": f.mark > 0, "crlf": strings.Contains(f.text, "\r\n"), "cr": strings.Contains(strings.ReplaceAll(f.text, "\r\n", ""), "\r"), "bytes": !utf8.ValidString(f.text),
		"name": !utf8.ValidString(path) || strings.ContainsAny(path, "\n\r\t"), "kept": !f.searchable(), "symlink": f.symlink,
	} {
		if is {
			f.tags = append(f.tags, tag)
		}
	}
	slices.Sort(f.tags)
	return f
}

// decode returns the text of a file, by §4a of the decisions. A file is binary if it has a NUL in
// its first 8,000 bytes and no byte order mark.
func decode(raw []byte) (text, encoding string, isBinary bool) {
	switch {
	case bytes.HasPrefix(raw, []byte{0xff, 0xfe, 0, 0}):
		return units32(raw, binary.LittleEndian), "utf-32le", false
	case bytes.HasPrefix(raw, []byte{0, 0, 0xfe, 0xff}):
		return units32(raw, binary.BigEndian), "utf-32be", false
	case bytes.HasPrefix(raw, []byte{0xff, 0xfe}):
		return units16(raw, binary.LittleEndian), "utf-16le", false
	case bytes.HasPrefix(raw, []byte{0xfe, 0xff}):
		return units16(raw, binary.BigEndian), "utf-16be", false
	}
	if bytes.IndexByte(raw[:min(len(raw), 8_000)], 0) >= 0 {
		return "", "", true
	}
	return string(raw), "", false
}

func units16(raw []byte, order binary.ByteOrder) string {
	var units []uint16
	for ; len(raw) >= 2; raw = raw[2:] {
		units = append(units, order.Uint16(raw))
	}
	if len(raw) > 0 {
		units = append(units, 0xfffd) // half a character at the end
	}
	return string(utf16.Decode(units))
}

func units32(raw []byte, order binary.ByteOrder) string {
	var out []rune
	for ; len(raw) >= 4; raw = raw[4:] {
		out = append(out, rune(order.Uint32(raw)))
	}
	return string(out)
}

// shown returns bytes as in JSON: invalid UTF-8 becomes replacement characters.
func shown(s string) string { return string([]rune(s)) }

// span is a match, in offsets of the text with its original line ends.
type span struct{ from, to int }

// find returns where an expression matches in a search: ^ and $ match at line ends, a line break
// is \n or \r\n, and empty matches do not count.
func (f *file) find(re *regexp.Regexp) (out []span) {
	for _, m := range re.FindAllStringIndex(f.plain, -1) {
		if m[0] < m[1] {
			out = append(out, span{f.back(m[0]), f.back(m[1])})
		}
	}
	return out
}

// back converts an offset of plain into one of text.
func (f *file) back(at int) int {
	if f.ends == nil {
		return at
	}
	n, _ := slices.BinarySearch(f.ends, at)
	return at + n
}

// line returns the line number at an offset, from 1.
func (f *file) line(at int) int { return 1 + strings.Count(f.text[:at], "\n") }

// column returns the column at an offset, from 1, in characters.
func (f *file) column(at int) int {
	start := strings.LastIndexByte(f.text[:at], '\n') + 1
	return 1 + utf8.RuneCountInString(f.text[start:at])
}

// lineTexts returns the lines of the file, without line ends. Text after the last line end is a
// line unless it is empty.
func (f *file) lineTexts() []string {
	if f.text == "" {
		return nil
	}
	all := strings.Split(strings.TrimSuffix(f.text, "\n"), "\n")
	for i := range all {
		all[i] = strings.TrimSuffix(all[i], "\r")
	}
	return all
}

// git runs git in a repository, once for the same arguments.
func (w *twin) git(a *animal, args ...string) (string, bool) {
	key := a.name + "\x00" + strings.Join(args, "\x00")
	w.mu.Lock()
	out, ok := w.asked[key]
	failed := w.failed[key]
	w.mu.Unlock()
	if ok {
		return out, !failed
	}

	cmd := exec.Command("git", append([]string{"-C", a.dir, "-c", "i18n.logOutputEncoding=UTF-8", "-c", "core.quotePath=false"}, args...)...)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "LC_ALL=C.UTF-8")
	raw, err := cmd.Output()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked[key], w.failed[key] = string(raw), err != nil
	return string(raw), err == nil
}

func (w *twin) must(t testing.TB, a *animal, args ...string) string {
	t.Helper()
	out, ok := w.git(a, args...)
	if !ok {
		t.Fatalf("%s: git %v failed", a.name, args)
	}
	return out
}

// lines splits a text into lines with their ends; none for "".
func lines(text string) []string {
	if text = strings.TrimSuffix(text, "\n"); text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}

// fileAt returns the file of a path in the default revision, nil for none.
func (r *ref) fileAt(path string) *file {
	for _, f := range r.files {
		if f.path == path {
			return f
		}
	}
	return nil
}

// named returns the repository of a name, nil for none.
func (w *twin) named(name string) *animal {
	for _, a := range w.repos {
		if a.name == name {
			return a
		}
	}
	return nil
}

func (f *file) String() string { return fmt.Sprintf("%s %q", f.repo.name, f.path) }
