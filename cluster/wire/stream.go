package wire

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
)

// Stream calls a method with a long answer, on a connection of its own. It returns once the request
// is sent. The caller must close the reader. Read returns io.EOF after the whole answer, the
// handler's error, or an error that wraps ErrBroken if the answer was cut off. The stream ends when
// ctx does.
func (p *Port) Stream(ctx context.Context, t Target, method string, in []byte) (io.ReadCloser, error) {
	k := poolKey{Target: t, proto: Bulk}
	fail := func(err error) error {
		return fmt.Errorf("stream %s from %s: %w", method, targetName(t), err)
	}

	if err := checkCall(ctx, method, in); err != nil {
		return nil, fail(err)
	}

	// The stream's Close returns the slot.
	if err := p.pool.acquireSlot(ctx, k); err != nil {
		return nil, fail(err)
	}

	l, err := p.dial(ctx, t, Bulk)
	if err != nil {
		p.pool.releaseSlot(k)
		if ctx.Err() != nil {
			err = fmt.Errorf("%w: %w", context.Cause(ctx), err)
		}
		return nil, fail(err)
	}

	s := &stream{p: p, l: l, ctx: ctx, key: k, fail: fail}
	s.stop = context.AfterFunc(ctx, func() { l.Close() })
	s.r = bufio.NewReaderSize(&timed{c: l.Conn, wait: l.stall}, 32<<10)

	req := request{left: timeLeft(ctx), method: method}
	if err := l.send(requestFrame, 1, req.head(), in); err != nil {
		s.Close()
		return nil, s.brokenError(err)
	}
	return s, nil
}

// stream is the answer to a streaming call. Only one goroutine may read it; Close may run in
// another.
type stream struct {
	p    *Port
	l    *link
	ctx  context.Context
	key  poolKey
	fail func(error) error
	stop func() bool
	r    *bufio.Reader

	rest []byte // unread part of the last chunk
	err  error  // the final error
	once sync.Once
}

// Read returns the next bytes of the answer.
func (s *stream) Read(b []byte) (int, error) {
	for len(s.rest) == 0 {
		if s.err != nil {
			return 0, s.err
		}

		f, err := readFrame(s.r, maxChunk)
		switch {
		case err != nil:
			s.err = s.brokenError(err)
		case f.kind == chunkFrame:
			s.rest = f.body

		// Only this frame proves that the answer is complete.
		case f.kind == endFrame:
			s.err = io.EOF

		case f.kind == errorFrame:
			s.err = s.fail(s.p.kinds.decodeError(s.l.peer, f.body))
		default:
			s.err = s.brokenError(errFrame)
		}

		if s.err != nil {
			s.l.Close()
		}
	}

	n := copy(b, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

// brokenError returns the error of a stream that was cut off.
func (s *stream) brokenError(err error) error {
	if s.ctx.Err() != nil {
		return s.fail(context.Cause(s.ctx))
	}

	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return s.fail(fmt.Errorf("%w: %w", ErrBroken, err))
}

// Close ends the stream, and the handler's context.
func (s *stream) Close() error {
	s.once.Do(func() {
		s.stop()
		s.l.Close()
		s.p.pool.releaseSlot(s.key)
	})
	return nil
}
