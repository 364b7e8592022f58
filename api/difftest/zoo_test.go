package difftest

import (
	"encoding/binary"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/shoalsearch/shoal/node/nodetest"
)

// maxFileSize is the node's setting, in bytes. It is small, so that the scan of a larger file is
// fast.
const maxFileSize = 40_000

// day is a day of the histories.
func day(n int) time.Time { return time.Date(2024, 3, 1, 10, 0, 0, 0, time.UTC).AddDate(0, 0, n) }

// animals are the repositories of the zoo by name, each made by a stream.
var animals = map[string]func(s *nodetest.Stream){
	"text":      texts,
	"ends":      lineEnds,
	"names":     names,
	"odd.names": oddNames,
	"kinds":     kinds,
	"refs":      refs,
	"code":      code,
	"clock":     clocks,
	"messages":  messages,
	"merged":    merged,
	"bulk":      bulk,
	"Code":      func(s *nodetest.Stream) { put(s, "a.go", "package a\n\nfunc upperTwin() {}\n") },
}

// build makes the zoo below dir, and returns the names of its repositories.
func build(t testing.TB, dir string) (all []string) {
	t.Helper()
	for name, fill := range animals {
		s := &nodetest.Stream{}
		fill(s)
		s.Import(t, filepath.Join(dir, name))
		all = append(all, name)
	}

	// Only a clone can be shallow.
	out, err := exec.Command("git", "clone", "-q", "--bare", "--depth", "3", "file://"+filepath.Join(dir, "clock"), filepath.Join(dir, "shallow")).CombinedOutput()
	if err != nil {
		t.Fatalf("git clone: %v: %s", err, out)
	}
	return append(all, "shallow")
}

// put commits files, pairs of path and content, to main.
func put(s *nodetest.Stream, files ...string) {
	c := nodetest.Commit{When: day(0), Message: "begin\n"}
	for i := 0; i+1 < len(files); i += 2 {
		c.Put = append(c.Put, nodetest.Entry{Path: files[i], Content: files[i+1]})
	}
	s.Commit(c)
}

// prose is the text of the files in each encoding.
const prose = "first line with needle\nfunc größe(x int) { return naïve }\n\n  indented Café crème, C++ and #include\nМосква 検索 する ﬁn\nlast alpha beta\n"

// texts has the same text in each encoding.
func texts(s *nodetest.Stream) {
	dos := strings.ReplaceAll(prose, "\n", "\r\n")
	narrow := "first line with needle\nfunc gr\xf6\xdfe(x int) { return na\xefve }\n  indented Caf\xe9 cr\xe8me, C++\nlast alpha beta\n"
	put(s,
		"utf8.txt", prose, "utf8-bom.txt", "\xef\xbb\xbf"+prose, "utf8-bom-dos.txt", "\xef\xbb\xbf"+dos, "bom-only.txt", "\xef\xbb\xbf", "bom-inside.txt", "alpha \xef\xbb\xbfneedle\n\xef\xbb\xbfbeta\n",
		"utf16le.txt", wide16(prose, binary.LittleEndian), "utf16be.txt", wide16(prose, binary.BigEndian), "utf16le-dos.txt", wide16(dos, binary.LittleEndian),
		"utf16le-odd.txt", wide16("needle alpha\nbeta", binary.LittleEndian)+"x", "utf16-mark-only.txt", "\xff\xfe", "utf16-pair.txt", wide16("needle 😀 alpha\n", binary.BigEndian),
		"utf32le.txt", wide32(prose, binary.LittleEndian), "utf32be.txt", wide32(dos, binary.BigEndian),
		"utf16-no-mark.txt", wide16(prose, binary.LittleEndian)[2:],
		"latin1.txt", narrow, "cp1252.txt", "needle \x93quoted\x94 \x80 50 alpha\n", "sjis.txt", "needle \x8c\x9f\x8d\xf5 \x82\xb7\x82\xe9 beta\n", "gbk.txt", "needle \xcb\xd1\xcb\xf7 alpha\n",
		"mixed.txt", prose+narrow, "nul-early.txt", "needle\x00alpha\n", "nul-late.txt", strings.Repeat("needle alpha beta\n", 500)+"tail\x00needle\n",
		"replacement.txt", "needle � alpha\n", "kelvin.txt", "K kelvin ſ long s straße STRASSE needle\n", "controls.txt", "needle\x0calpha\x1b[31mbeta\x07\n", "nfc.txt", "Caf\u00e9 needle\n", "nfd.txt", "Cafe\u0301 needle\n",
		"words.txt", "un café noir\n#include <x>\nC++ rules C++11\nfoo() called foo()x\n検索 する検索\nGröße Gr größer\nneedle_x needle needles x_needle\n$cost a$cost\n->next a->next\n",
	)
}

func wide16(text string, order binary.AppendByteOrder) string {
	out := order.AppendUint16(nil, 0xfeff)
	for _, u := range utf16.Encode([]rune(text)) {
		out = order.AppendUint16(out, u)
	}
	return string(out)
}

func wide32(text string, order binary.AppendByteOrder) string {
	out := order.AppendUint32(nil, 0xfeff)
	for _, r := range text {
		out = order.AppendUint32(out, uint32(r))
	}
	return string(out)
}

// lineEnds has all kinds of line ends.
func lineEnds(s *nodetest.Stream) {
	lines := []string{"alpha one", "beta two needle", "", "\tgamma three", "alpha needle four"}
	join := func(end string) string { return strings.Join(lines, end) + end }
	put(s,
		"lf.txt", join("\n"), "crlf.txt", join("\r\n"), "cr.txt", join("\r")+"end", "none.txt", strings.Join(lines, "\n"), "crlf-none.txt", strings.Join(lines, "\r\n"),
		"mixed.txt", "alpha one\r\nbeta two needle\n\rgamma\r\r\nalpha needle\n\n\r\n", "empty.txt", "", "newline.txt", "\n", "crlf-only.txt", "\r\n", "cr-only.txt", "\r", "blank.txt", "\n\n \n\t\n",
		"block.txt", "begin {\n  inner needle\n}\nbegin {\n  other\n}\n", "block-dos.txt", "begin {\r\n  inner needle\r\n}\r\nbegin {\r\n  other\r\n}\r\n",
		"huge-line.js", strings.Repeat("a(needle);", 2_000)+"\nalpha\n", "two-huge.css", strings.Repeat("x", 9_000)+" needle\n"+strings.Repeat("alpha ", 1_500)+"beta",
		"separators.txt", "needle\u2028alpha\u2029beta\u0085gamma\vdelta\n",
	)
}

// names has file names that are hard for queries.
func names(s *nodetest.Stream) {
	var files []string
	for i, path := range []string{
		"with space.txt", "a b/c d.txt", "[brackets].txt", "[a]/[b].go", "star*.txt", "quest?.txt", "curly{a,b}.txt", "plus+.txt", "paren(1).txt", "dollar$.txt", "caret^.txt", "pipe|.txt", "hash#1.txt", "percent%20.txt", "amp&.txt", "semi;colon.txt",
		"comma,a.txt", "colon:1.txt", "at@v1.txt", "tilde~.txt", "back\\slash.txt", "quote'.txt", "double\".txt", "`tick`.txt", "!bang.txt", "-dash.txt", "--flag", "-", ".hidden", ".config/x.yml", "..dots", "trailing.", "UPPER/File.TXT", "upper/file.txt",
		"größe.txt", "Caf\u00e9.txt", "Cafe\u0301.txt", "検索/する.md", "emoji😀.txt", strings.Repeat("long", 60) + ".txt", strings.Repeat("deep/", 30) + "leaf.txt", "no-extension", "Makefile", "a.b.c.d", "file", "file.txt/inner.txt", "src/main.go", "src/main_test.go", "test/data.txt", "vendor/x/y.go", "docs/README.md",
		"or", "repo:x", "file:y.txt", "a/-/b.txt", "blob/main.txt", "refs/heads/x",
	} {
		files = append(files, path, fmt.Sprintf("needle %d\nalpha in %q\n", i, path))
	}
	put(s, files...)
}

// oddNames has names that are not valid text, and names that no line can show.
func oddNames(s *nodetest.Stream) {
	var files []string
	for i, path := range []string{
		"new\nline.txt", "d/new\n\nlines.txt", "tab\there.txt", "cr\rhere.txt", "bell\x07.txt", "esc\x1b[31m.txt", "del\x7f.txt", "bad\xff.txt", "bad\xff\xfename.txt", "lat\xefn.txt", "dir\xff/inside.txt", "half\xe2\x82.txt", "sep\u2028name.txt", "rtl\u202ename.txt", "zero\u200bwidth.txt", "bom\ufeff.txt", "replacement\ufffd.txt", "nbsp\u00a0.txt", " leading", "trailing ", "new\n", "\nnew",
	} {
		files = append(files, path, fmt.Sprintf("needle %d\nbeta odd\n", i))
	}
	put(s, files...)
}

// kinds has everything but plain text files.
func kinds(s *nodetest.Stream) {
	c := nodetest.Commit{When: day(0), Message: "begin\n", Put: []nodetest.Entry{
		{Path: "target.txt", Content: "needle in the target\n"}, {Path: "link", Content: "target.txt", Mode: "120000"}, {Path: "d/up", Content: "../target.txt", Mode: "120000"}, {Path: "dangling", Content: "nothing/needle", Mode: "120000"}, {Path: "loop", Content: "loop", Mode: "120000"},
		{Path: "run.sh", Content: "#!/bin/sh\necho needle\n", Mode: "100755"},
		{Path: "module", Content: strings.Repeat("12", 20), Mode: "160000"}, {Path: "deps/lib", Content: strings.Repeat("ab", 20), Mode: "160000"}, {Path: ".gitmodules", Content: "[submodule \"module\"]\n\tpath = module\n\turl = ../text\n"},
		{Path: "big.bin.lfs", Content: "version https://git-lfs.github.com/spec/v1\noid sha256:" + strings.Repeat("a", 64) + "\nsize 12345\n"},
		{Path: "picture.png", Content: "\x89PNG\r\n\x1a\n\x00\x00needle"}, {Path: "above.txt", Content: strings.Repeat("alpha needle above the size\n", 2_000)}, {Path: "above16.txt", Content: wide16(strings.Repeat("needle wide\n", 2_000), binary.LittleEndian)},
		{Path: "above-dos.txt", Content: strings.Repeat("alpha needle above\r\n", 2_500)}, {Path: "exact.txt", Content: strings.Repeat("beta\n", maxFileSize/5)}, {Path: "one-more.txt", Content: strings.Repeat("beta\n", maxFileSize/5) + "\n"},
		{Path: "same-a.txt", Content: "same needle\n"}, {Path: "same-b.txt", Content: "same needle\n"},
	}}
	s.Commit(c)
}

// refs has branches and tags with odd names, and a branch and a tag with the same name.
func refs(s *nodetest.Stream) {
	word := func(w string) []nodetest.Entry {
		return []nodetest.Entry{{Path: "f.txt", Content: "needle " + w + "\n"}, {Path: w + ".txt", Content: "alpha only on " + w + "\n"}}
	}
	first := s.Commit(nodetest.Commit{When: day(0), Message: "one\n", Put: word("mainword")})
	s.Ref("refs/tags/1.x", first)
	s.Ref("refs/tags/v1.0.0", first)
	for i, name := range []string{"1.x", "feature/a", "feature/a.b", "release-2", "weird#name", "größe", "UPPER", "refs/heads/x", "a@b", "x+y", "100%", "HEAD-like", "-dash", "quote'"} {
		fmt.Fprintf(s, "reset refs/heads/%s\nfrom :%d\n\n", name, first)
		s.Commit(nodetest.Commit{Branch: name, When: day(i + 1), Message: "on " + name + "\n", Put: word(fmt.Sprintf("branch%d", i))})
	}
	last := s.Commit(nodetest.Commit{When: day(20), Message: "two\n", Put: word("secondword"), Delete: []string{"mainword.txt"}})
	s.Ref("refs/tags/v2.0.0", last)
	s.Ref("refs/tags/same", last)
	s.Ref("refs/heads/same", last)
}

// code has definitions in several languages, nested namespaces, and a language that ctags does
// not know.
func code(s *nodetest.Stream) {
	put(s,
		"store/store.go", "package store\n\n// Store keeps values.\ntype Store struct{ needle int }\n\n// Open opens.\nfunc Open() *Store { return &Store{} }\n\nfunc (s *Store) Get(key string) int {\n\treturn s.needle\n}\n",
		"store/store_test.go", "package store\n\nfunc TestOpen() { Open().Get(\"alpha\") }\n",
		"deep.cpp", "namespace a { namespace b { namespace c { namespace d { namespace e {\nclass Deepest {\n public:\n  int deepMethod(int x) { return x; }\n};\nint deepFunction() { return 1; }\n}}}}}\n",
		"Bag.m", "@implementation Bag\n- (void)setX:(int)x { }\n+ (id)bagWith:(id)a and:(id)b { return a; }\n- (void)go:(int)a\n{\n}\n@end\n",
		"lib/mod.py", "class Outer:\n    class Inner:\n        def method_one(self):\n            return needle\n\ndef top_level():\n    return Outer.Inner()\n",
		"api.rb", "module Side\n  module Kiq\n    class Client\n      def push(item)\n        needle\n      end\n    end\n  end\nend\n",
		"main.rs", "pub struct Shape { side: u32 }\nimpl Shape {\n    pub fn scale(&mut self, by: u32) { self.side *= by; }\n}\nmacro_rules! doc_mut { () => {} }\n",
		"a.zig", "pub fn zigFunction() void { needle(); }\n", "b.nim", "proc nimProc(x: int): int = x\n", "c.unknownlang", "define thing needle\n",
		"evict.c", "#include \"evict.h\"\nint evict(struct pool *p, int limit) {\n\treturn free_one(p) + limit;\n}\nstatic int free_one(struct pool *p) { return 0; }\n", "evict.h", "struct pool { int used; };\nint evict(struct pool *p, int limit);\n",
		"wide.c", wide16("int wide_function(void) {\r\n\treturn 1;\r\n}\r\n", binary.LittleEndian), "marked.go", "\xef\xbb\xbfpackage marked\n\nfunc markedFunction() {}\n", "dos.py", "def dos_function():\r\n    return 1\r\n",
		"kin/Kin.java", "interface Kin {}\nclass One extends Other\n    implements Kin {\n}\n// class No implements Kin {\n", "kin/Two.java", wide16("class Two implements Kin {}\n", binary.LittleEndian),
		"kin/three.kt", "class Three(\r\n  val kin: Kin,\r\n) : Base(),\r\n  Kin\r\n", "kin/four.kt", "\xef\xbb\xbfobject Four : Kin {}\n",
	)
}

// clocks has commits whose dates do not increase.
func clocks(s *nodetest.Stream) {
	at := func(y int) time.Time { return time.Date(y, 5, 1, 12, 0, 0, 0, time.UTC) }
	for i, c := range []nodetest.Commit{
		{Author: "Ada Bell", When: at(2024), Message: "one needle\n"},
		{Author: "Ben Cole", When: at(2001), Message: "clock is wrong\n"},
		{Author: "Ada Bell", When: at(2025), Message: "two\n"},
		{Author: "Cem Öz", When: at(2025), Entered: at(2020), Message: "rebased long ago\n\nThe body has a needle.\n"},
		{Author: "Ben Cole", When: at(2038), Message: "from the future\n"},
		{Author: "Ada Bell", When: at(2025).AddDate(0, 0, 1), Message: "three\n"},
		{Author: "Ada Bell", When: time.Unix(0, 0), Message: "epoch\n"},
		{Author: "Cem Öz", When: at(2025).AddDate(0, 0, 2), Message: "last\n"},
	} {
		c.Put = []nodetest.Entry{{Path: []string{"f.txt", "d/g.txt"}[i%2], Content: fmt.Sprintf("alpha %d\nneedle\n%s", i, strings.Repeat("same\n", i))}}
		s.Commit(c)
	}
}

// messages has messages in other encodings, and of odd shapes.
func messages(s *nodetest.Stream) {
	for i, c := range []nodetest.Commit{
		{Message: "Pr\xfcfung der Gr\xf6\xdfe\n", Encoding: "ISO-8859-1"}, {Message: "\x8c\x9f\x8d\xf5 needle\n", Encoding: "SHIFT_JIS"}, {Message: "Prüfung in UTF-8\n"}, {Message: "bytes \xff\xfe that no encoding has\n"},
		{Message: ""}, {Message: "\n\nblank lines first\n"}, {Message: "subject\nsecond line of subject\n\nbody alpha\n"}, {Message: "crlf subject\r\n\r\nbody beta\r\n"}, {Message: strings.Repeat("long subject ", 40) + "\n"},
		{Message: "body\n\n" + strings.Repeat("line of the body\n", 100) + "needle at the end\n"}, {Message: "[brackets] (x) a.b*c\n"}, {Message: "\"quoted words\" here\n"}, {Message: "Cafe\u0301 combined\n"}, {Message: "\xd0\xcf\xf3\xeb\xf7\xe1\n", Encoding: "KOI8-R"}, {Message: "tab\there \x1b[31mred\n"},
		{Message: "unknown encoding \xe9\n", Encoding: "x-nothing"},
	} {
		c.When, c.Author = day(i), []string{"Ada Bell", "Ben Cole", "Jürgen Größe"}[i%3]
		c.Put = []nodetest.Entry{{Path: fmt.Sprintf("m%d.txt", i%4), Content: fmt.Sprintf("alpha %d\n", i)}}
		s.Commit(c)
	}
}

// merged has merged branches, a file that moved and one that came back.
func merged(s *nodetest.Stream) {
	entry := func(path, text string) nodetest.Entry { return nodetest.Entry{Path: path, Content: text} }
	base := s.Commit(nodetest.Commit{When: day(0), Message: "base\n", Put: []nodetest.Entry{entry("a.txt", "alpha\nbeta\n"), entry("b.txt", "needle\n"), entry("gone.txt", "here once\n")}})
	fmt.Fprintf(s, "reset refs/heads/side\nfrom :%d\n\n", base)
	side := s.Commit(nodetest.Commit{Branch: "side", Author: "Ben Cole", When: day(1), Message: "side work\n", Put: []nodetest.Entry{entry("b.txt", "needle\nside\n")}})
	s.Commit(nodetest.Commit{When: day(2), Message: "main work\n", Put: []nodetest.Entry{entry("a.txt", "alpha\nbeta\ngamma\n")}})
	s.Commit(nodetest.Commit{When: day(3), Message: "Merge branch side\n", Merge: []int{side}, Put: []nodetest.Entry{entry("b.txt", "needle\nside\n")}})
	s.Commit(nodetest.Commit{When: day(4), Message: "move\n", Delete: []string{"a.txt", "gone.txt"}, Put: []nodetest.Entry{entry("moved/a.txt", "alpha\nbeta\ngamma\n")}})
	s.Commit(nodetest.Commit{When: day(5), Message: "line ends\n", Put: []nodetest.Entry{entry("b.txt", "needle\r\nside\r\n")}})
	s.Commit(nodetest.Commit{When: day(6), Message: "again\n", Put: []nodetest.Entry{entry("gone.txt", "here once\n"), entry("no-end.txt", "last line")}})
}

// bulk has many files without a match, and a few with one.
func bulk(s *nodetest.Stream) {
	c := nodetest.Commit{When: day(0), Message: "many\n"}
	for i := range 300 {
		text := fmt.Sprintf("file %d of many\nnothing to be found\n", i)
		if i%97 == 0 {
			text += "a rare needle\n"
		}
		c.Put = append(c.Put, nodetest.Entry{Path: fmt.Sprintf("dir%d/f%d.txt", i%7, i), Content: text})
	}
	s.Commit(c)
}
