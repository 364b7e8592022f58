package api

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
)

// A page that is sent in parts is compressed in parts: each part can be read before the next.
func TestStreamedPage_isCompressedPartByPart(t *testing.T) {
	t.Parallel()
	var sent bytes.Buffer
	long := strings.Repeat("rest ", 20_000)
	err := compressStream(func(w *bufio.Writer) error {
		if _, err := w.WriteString("head"); err != nil {
			return err
		}
		if err := w.Flush(); err != nil {
			return err
		}

		z, err := gzip.NewReader(bytes.NewReader(sent.Bytes()))
		if err != nil {
			return err
		}
		var head [4]byte
		if _, err := io.ReadFull(z, head[:]); err != nil || string(head[:]) != "head" {
			t.Errorf("after the flush there is %q, %v", head, err)
		}
		_, err = w.WriteString(long)
		return errors.Join(err, w.Flush())
	})(bufio.NewWriter(&sent))
	if err != nil {
		t.Fatal(err)
	}

	z, err := gzip.NewReader(&sent)
	if err != nil {
		t.Fatal(err)
	}
	if all, err := io.ReadAll(z); err != nil || string(all) != "head"+long {
		t.Errorf("%d bytes, %v", len(all), err)
	}
}

// Code in a page needs fewer bytes than with the fastest compression.
func TestPageCompression_beatsTheFastestLevel(t *testing.T) {
	t.Parallel()
	code, err := os.ReadFile("server.go")
	if err != nil {
		t.Fatal(err)
	}
	var page []byte
	for i, line := range strings.Split(string(code), "\n") {
		page = fmt.Appendf(page, `<div class="line"><a href="/browse/local/shoal/-/blob/api/server.go#L%d">%d</a>%s</div>`, i, i, line)
	}

	size := func(w *gzip.Writer, b *bytes.Buffer) int {
		_, err := w.Write(page)
		if err := errors.Join(err, w.Close()); err != nil {
			t.Fatal(err)
		}
		return b.Len()
	}
	var fast, ours bytes.Buffer
	w, err := gzip.NewWriterLevel(&fast, gzip.BestSpeed)
	if err != nil {
		t.Fatal(err)
	}
	if a, b := size(w, &fast), size(newCompressor(&ours), &ours); b > a*92/100 {
		t.Errorf("%d bytes, the fastest makes %d", b, a)
	}
}
