package git

import (
	"bytes"
	"compress/zlib"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// deflated is the texts of a test in streams of every kind.
func deflated(t testing.TB) (streams, texts [][]byte) {
	r := rand.New(rand.NewSource(3))
	add := func(text []byte) {
		for _, level := range []int{zlib.NoCompression, zlib.BestSpeed, zlib.DefaultCompression, zlib.BestCompression, zlib.HuffmanOnly} {
			var out bytes.Buffer
			w, err := zlib.NewWriterLevel(&out, level)
			if err != nil {
				t.Fatal(err)
			}
			w.Write(text)
			w.Close()
			streams, texts = append(streams, out.Bytes()), append(texts, text)
		}
	}
	add(nil)
	add([]byte("a"))
	add(bytes.Repeat([]byte("a"), 70000))
	for d := 2; d < 34; d++ { // matches at each short distance
		add(bytes.Repeat([]byte("abcdefghijklmnopqrstuvwxyz0123456789")[:d], 3000/d))
	}
	noise := make([]byte, 100000)
	r.Read(noise)
	add(noise)
	add(noise[:1000])
	for range 20 {
		var b []byte
		for want := r.Intn(60000); len(b) < want; {
			switch r.Intn(4) {
			case 0:
				b = fmt.Appendf(b, "static int function_%d(struct foo *p)\n", r.Intn(500))
			case 1:
				b = append(b, byte(r.ExpFloat64()*20))
			case 2:
				b = append(b, bytes.Repeat([]byte{byte(r.Intn(256))}, r.Intn(300))...)
			default:
				if n := len(b); n > 0 {
					at := r.Intn(n)
					b = append(b, b[at:min(n, at+r.Intn(400))]...)
				}
			}
		}
		add(b)
	}
	return streams, texts
}

func TestInflateGivesWhatWasDeflated(t *testing.T) {
	t.Parallel()
	streams, texts := deflated(t)
	for _, plain := range []bool{false, true} {
		for _, room := range []int{0, 64, fastOut} { // behind the text, for steps that go too far
			f := inflater{plain: plain}
			for i, s := range streams {
				f.check(t, fmt.Sprintf("stream %d of %d bytes, plain %v, room %d", i, len(s), plain, room), s, texts[i], room)
			}
		}
	}
}

// check decompresses a stream whole, cut short, and into texts of other sizes.
func (f *inflater) check(t *testing.T, what string, stream, text []byte, room int) {
	t.Helper()
	end := len(text) + 1 + room
	buf := bytes.Repeat([]byte{0xee}, end+64)
	into := func(size int) []byte { return buf[: size : size+room] }
	n, err := f.inflate(into(len(text)), append(bytes.Clone(stream), "what follows"...))
	if err != nil || n != len(stream) || !bytes.Equal(buf[:len(text)], text) {
		t.Fatalf("%s: %d, %v", what, n, err)
	}
	if len(text) > 0 {
		if _, err := f.inflate(into(len(text)-1), stream); err == nil {
			t.Fatalf("%s: fits a smaller text", what)
		}
	}
	if _, err := f.inflate(into(len(text)+1), stream); err == nil {
		t.Fatalf("%s: fits a larger text", what)
	}
	for _, cut := range []int{0, 1, 2, len(stream) / 2, len(stream) - 5, len(stream) - 1} {
		if _, err := f.inflate(into(len(text)), stream[:cut:cut]); err == nil {
			t.Fatalf("%s: %d are enough", what, cut)
		}
	}
	if bytes.Count(buf[end:], []byte{0xee}) != 64 {
		t.Fatalf("%s: written beyond", what)
	}
}

// FuzzInflate compares with the decoder of the standard library.
func FuzzInflate(f *testing.F) {
	streams, texts := deflated(f)
	for i, s := range streams {
		if len(s) < 3000 {
			f.Add(s, len(texts[i]), i%7*60)
		}
	}
	f.Fuzz(func(t *testing.T, stream []byte, size, room int) {
		size, room = max(0, min(size, 1<<17)), max(0, min(room, 1000))
		var inf inflater
		plain := inflater{plain: true}
		buf, other := bytes.Repeat([]byte{0xee}, size+room+64), make([]byte, size)
		n, err := inf.inflate(buf[:size:size+room], stream)
		if bytes.Count(buf[size+room:], []byte{0xee}) != 64 {
			t.Fatal("written beyond")
		}
		if m, failed := plain.inflate(other, stream); (err == nil) != (failed == nil) || m != n || err == nil && !bytes.Equal(other, buf[:size]) {
			t.Fatalf("%d, %v; plain %d, %v", n, err, m, failed)
		}
		if err != nil {
			return
		}
		// All but the checksum, which is not looked at here, must be right.
		want := make([]byte, size+1)
		r, err := zlib.NewReader(bytes.NewReader(stream[:n]))
		if err != nil {
			t.Fatalf("accepted what zlib refuses: %v", err)
		}
		got := 0
		for got < len(want) && err == nil {
			var k int
			k, err = r.Read(want[got:])
			got += k
		}
		if got != size || !bytes.Equal(want[:size], buf[:size]) {
			t.Fatalf("%d bytes, %v; want %d", got, err, size)
		}
	})
}

// deltas is a mirror whose pack has long chains of deltas, and its blobs.
func deltas(t *testing.T, format string) (*repo, *Mirror, map[string]string) {
	r := newRepo(t, "--object-format="+format)
	var h history
	rnd := rand.New(rand.NewSource(5))
	lines := strings.Split(strings.Repeat("a line of the text that changes\nanother one\n\n", 300), "\n")
	for i := range 60 {
		lines[rnd.Intn(len(lines))] = fmt.Sprintf("line %d of %d", rnd.Intn(1e6), i)
		h.commit("refs/heads/main", i, "Ann", "change", "a.txt", strings.Join(lines, "\n"), fmt.Sprintf("b%d", i%7), strings.Join(lines[i:], "\n"), "empty", "")
	}
	run(t, r.dir, h.Bytes(), "fast-import", "--quiet")
	r.git("repack", "-adfq", "--depth=50", "--window=50")
	blobs := map[string]string{}
	for _, line := range strings.Split(r.git("cat-file", "--batch-check", "--batch-all-objects"), "\n") {
		if oid, rest, _ := strings.Cut(line, " "); strings.HasPrefix(rest, "blob") {
			blobs[oid] = run(t, r.dir, nil, "cat-file", "blob", oid)
		}
	}
	return r, Open(r.dir), blobs
}

func TestPacksHoldWhatGitSays(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"sha1", "sha256"} {
		r, m, blobs := deltas(t, format)
		p, err := openPacks(m.Dir())
		if err != nil || len(p.list) != 1 {
			t.Fatalf("%d packs, %v", len(p.list), err)
		}
		chains := 0
		for oid, want := range blobs {
			got, ok, err := p.read([]byte("before"), oid)
			if !ok || err != nil || strings.TrimRight(string(got), "\n") != "before"+want {
				t.Fatalf("%s: %v, %v, %d bytes, want %d", oid, ok, err, len(got), len(want))
			}
			chains = max(chains, len(p.chain))
			if len(p.bases.order)%3 == 0 {
				p.bases = bases{} // so that some chains are long
			}
		}
		if chains < 8 {
			t.Errorf("the longest chain has %d deltas, which proves little", chains)
		}
		if _, ok, err := p.read(nil, r.git("rev-parse", "HEAD")); !ok || err == nil {
			t.Errorf("a commit was read as a blob: %v, %v", ok, err)
		}
		if _, ok, err := p.read(nil, strings.Repeat("ab", len(p.list[0].index[:p.list[0].idBytes]))); ok || err != nil {
			t.Errorf("an object that is not there: %v, %v", ok, err)
		}
		p.close()
	}
}

// TestDamagedPacksAreNeverBelieved flips bytes of a pack and of its index:
// a blob comes out as it was, or not at all.
func TestDamagedPacksAreNeverBelieved(t *testing.T) {
	t.Parallel()
	r, m, blobs := deltas(t, "sha1")
	files, err := filepath.Glob(filepath.Join(r.dir, "objects/pack/pack-*"))
	if err != nil {
		t.Fatal(err)
	}
	rnd := rand.New(rand.NewSource(9))
	read := func() (good int) {
		p, err := openPacks(m.Dir())
		if err != nil {
			t.Fatal(err)
		}
		defer p.close()
		for oid, want := range blobs {
			got, ok, err := p.read(nil, oid)
			if !ok || err != nil {
				continue
			}
			if strings.TrimRight(string(got), "\n") != want {
				t.Fatalf("%s: wrong content", oid)
			}
			good++
		}
		return good
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(name, 0o644); err != nil {
			t.Fatal(err)
		}
		for range 150 {
			broken := bytes.Clone(data)
			broken[rnd.Intn(len(broken))] ^= 1 << rnd.Intn(8)
			if err := os.WriteFile(name, broken, 0o644); err != nil {
				t.Fatal(err)
			}
			read()
		}
		if err := os.WriteFile(name, data[:len(data)/2], 0o644); err != nil {
			t.Fatal(err)
		}
		read()
		if err := os.WriteFile(name, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if good := read(); good != len(blobs) {
		t.Errorf("%d blobs of %d after repair", good, len(blobs))
	}
}
