package api

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"strings"
	"testing"
)

// A page that is sent in parts is compressed in parts: what it flushes can be read
// before it goes on.
func TestAStreamIsCompressedInParts(t *testing.T) {
	t.Parallel()
	var sent bytes.Buffer
	long := strings.Repeat("rest ", 20_000)
	err := packed(func(w *bufio.Writer) error {
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
