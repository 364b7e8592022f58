package pack

import (
	"bytes"
	"compress/zlib"
	"fmt"
	"math/rand"
	"testing"
)

// deflated returns test texts, and streams of every kind that contain them.
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

func TestInflate_undoesDeflate(t *testing.T) {
	t.Parallel()
	streams, texts := deflated(t)
	for _, room := range []int{0, 64, fastOut} { // capacity after the text, for steps that go too far
		var f inflater
		for i, s := range streams {
			f.check(t, fmt.Sprintf("stream %d of %d bytes, room %d", i, len(s), room), s, texts[i], room)
		}
	}
}

// check decompresses a stream: complete, truncated, and into texts of other sizes.
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

// FuzzInflate_agreesWithTheStandardLibrary compares the inflater with the decoder of the standard
// library.
func FuzzInflate_agreesWithTheStandardLibrary(f *testing.F) {
	streams, texts := deflated(f)
	for i, s := range streams {
		if len(s) < 3000 {
			f.Add(s, len(texts[i]), i%7*60)
		}
	}
	f.Fuzz(func(t *testing.T, stream []byte, size, room int) {
		size, room = max(0, min(size, 1<<17)), max(0, min(room, 1000))
		var inf inflater
		buf := bytes.Repeat([]byte{0xee}, size+room+64)
		n, err := inf.inflate(buf[:size:size+room], stream)
		if bytes.Count(buf[size+room:], []byte{0xee}) != 64 {
			t.Fatal("written beyond")
		}
		if err != nil {
			return
		}
		// Everything except the checksum must be right, which the inflater does not check.
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

// BenchmarkInflate decompresses the text of a source file.
func BenchmarkInflate(b *testing.B) {
	streams, texts := deflated(b)
	best, size := 0, 0
	for i := range streams {
		if i%5 == 2 && len(texts[i]) > size && len(streams[i]) < len(texts[i])*3/4 {
			best, size = i, len(texts[i])
		}
	}
	var f inflater
	dst := make([]byte, size, size+fastOut)
	b.SetBytes(int64(size))
	for b.Loop() {
		if _, err := f.inflate(dst, streams[best]); err != nil {
			b.Fatal(err)
		}
	}
}
