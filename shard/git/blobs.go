package git

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"iter"
	"os"
	"os/exec"
	"sync"
)

// Blobs reads many blobs, fast, in the order asked. Not for concurrent use.
//
//	b, err := m.Blobs(ctx, oids)
//	defer b.Close()
//	for {
//	    buf, err = b.Next(buf[:0])   // io.EOF after the last
//	}
type Blobs struct {
	ctx       context.Context
	cancel    context.CancelFunc
	cmd       *exec.Cmd
	complaint *tail
	in        io.WriteCloser
	out       *bufio.Reader
	fed       chan struct{} // closed when no more ids are sent
	feedErr   error         // read after fed
	closing   sync.Once
}

// Blobs starts reading the blobs of oids, which is drawn from in another
// goroutine while Next is called, some thousand ahead.
func (m *Mirror) Blobs(ctx context.Context, oids iter.Seq[string]) (*Blobs, error) {
	k := m.git("cat-file", "--batch=%(objecttype) %(objectsize)", "--buffer")
	ctx, cancel := context.WithCancel(ctx)
	b := &Blobs{ctx: ctx, cancel: cancel, fed: make(chan struct{})}
	b.cmd, b.complaint = k.process(ctx)
	in, err := b.cmd.StdinPipe()
	if err != nil {
		cancel()
		return nil, err
	}
	out, err := b.cmd.StdoutPipe()
	if err != nil {
		cancel()
		return nil, err
	}
	if err := b.cmd.Start(); err != nil {
		cancel()
		return nil, fmt.Errorf("git cat-file: %w", err)
	}
	if f, ok := out.(*os.File); ok {
		widen(f)
	}
	b.in, b.out = in, bufio.NewReaderSize(out, 256<<10)
	go b.feed(oids)
	return b, nil
}

// feed writes the ids; when the process is gone, writing fails and it ends.
func (b *Blobs) feed(oids iter.Seq[string]) {
	defer close(b.fed)
	defer b.in.Close()
	w := bufio.NewWriterSize(b.in, 32<<10)
	for oid := range oids {
		if !isHex(oid) {
			b.feedErr = fmt.Errorf("%.80q is no object id", oid)
			break
		}
		w.WriteString(oid)
		if w.WriteByte('\n') != nil {
			return
		}
	}
	w.Flush()
}

// header reads the line before a blob.
func (b *Blobs) header() (size int, err error) {
	line, err := b.out.ReadSlice('\n')
	if err == io.EOF && len(line) == 0 {
		return 0, b.finished()
	}
	if err != nil {
		return 0, b.fail(err)
	}
	const kind = "blob "
	if len(line) < len(kind)+2 || string(line[:len(kind)]) != kind {
		return 0, fmt.Errorf("git cat-file: not a blob: %s", line[:len(line)-1])
	}
	for _, d := range line[len(kind) : len(line)-1] {
		if d < '0' || d > '9' || size > 1<<31 {
			return 0, fmt.Errorf("git cat-file said %q", line)
		}
		size = size*10 + int(d-'0')
	}
	return size, nil
}

// finished tells the end of all from the end of the process.
func (b *Blobs) finished() error {
	select {
	case <-b.fed:
		if b.feedErr != nil {
			return b.feedErr
		}
	default:
		return b.fail(io.ErrUnexpectedEOF)
	}
	if err := b.cmd.Wait(); err != nil {
		return b.fail(err)
	}
	return io.EOF
}

func (b *Blobs) fail(err error) error {
	if b.ctx.Err() != nil {
		return context.Cause(b.ctx)
	}
	if said := clean(b.complaint.String(), nil); said != "" {
		return fmt.Errorf("git cat-file: %s: %w", said, err)
	}
	return fmt.Errorf("git cat-file: %w", err)
}

// Next appends the next blob to dst and returns it; io.EOF after the last.
// It allocates only when dst is too small. A missing object is an error.
func (b *Blobs) Next(dst []byte) ([]byte, error) {
	size, err := b.header()
	if err != nil {
		return dst, err
	}
	n := len(dst)
	if cap(dst)-n < size {
		dst = append(make([]byte, 0, max(n+size, 2*cap(dst))), dst...)
	}
	dst = dst[:n+size]
	if _, err := io.ReadFull(b.out, dst[n:]); err != nil {
		return dst[:n], b.fail(err)
	}
	if _, err := b.out.Discard(1); err != nil {
		return dst[:n], b.fail(err)
	}
	return dst, nil
}

// Skip passes over the next blob without keeping it.
func (b *Blobs) Skip() error {
	size, err := b.header()
	if err != nil {
		return err
	}
	if _, err := b.out.Discard(size + 1); err != nil {
		return b.fail(err)
	}
	return nil
}

// Close ends the reading. It must be called, also after an error.
func (b *Blobs) Close() error {
	b.closing.Do(func() {
		b.cancel()
		b.cmd.Wait()
		<-b.fed
	})
	return nil
}

// isHex reports whether s is a whole object id.
func isHex(s string) bool {
	return (len(s) == 40 || len(s) == 64) && hexPrefix(s) == len(s)
}

// hexPrefix is how many bytes at the start of s are hexadecimal digits.
func hexPrefix(s string) int {
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') && (c < 'A' || c > 'F') {
			return i
		}
	}
	return len(s)
}
