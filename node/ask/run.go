package ask

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/shoalsearch/shoal/clock"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/thread"
)

const (
	closePause = 200 * time.Millisecond
	textPause  = 30 * time.Millisecond // pieces of text that come meanwhile are one event
)

// said reports whether all is said, also that which has yet to be kept.
func (t *Turn) said() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.last
}

// finished reports whether the last event was seen: then all is kept.
func (t *Turn) finished() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.ended
}

// write writes the log until the last event is safe, another node goes on, or
// ctx ends. Watchers see an event once it is safe.
func (t *Turn) write(ctx context.Context) {
	for {
		select {
		case <-t.wake:
		// This node stops; the turn is handed over, so its end is not written here.
		case <-ctx.Done():
			t.end(errMoved)
			t.lose()
			return
		}

		t.mu.Lock()

		// All that waits is one write: while one is under way the next gathers.
		out, n, last := t.out, len(t.events), t.last
		t.out = nil
		t.mu.Unlock()
		if len(out) == 0 {
			continue
		}

		if err := t.append(ctx, out); err != nil {
			t.broken(ctx, err)
			return
		}

		// The last event says that the thread has the answer, so that comes first.
		if last {
			t.show(n - 1)
			if err := t.close(ctx); err != nil {
				t.broken(ctx, err)
				return
			}
			t.show(n)
			return
		}
		t.show(n)

		// Words come faster than the copy can be asked for each.
		clock.Wait(ctx, textPause)
	}
}

func (t *Turn) append(ctx context.Context, out []entry) error {
	entries := make([][]byte, len(out))
	for i := range out {
		var err error
		entries[i], err = json.Marshal(&out[i])
		if err != nil {
			return fmt.Errorf("entry of a question: %w", err)
		}
	}
	return t.log.Append(ctx, entries...)
}

// broken ends the work on a turn whose log cannot be written here any more.
func (t *Turn) broken(ctx context.Context, err error) {
	t.end(errMoved)
	// Lost to another node it lives on; broken here it would run for ever.
	if ctx.Err() == nil && !errors.Is(err, thread.ErrLost) {
		t.kit.log.Error("the log of a question cannot be written", "err", err)
		t.keeper.abandon(ctx, t.ID, t.log.Fence())
	}
	t.lose()
}

// close keeps what was said and ends the turn in the catalog. It tries until
// ctx ends: what was said is safe meanwhile, and any copy can do the same.
func (t *Turn) close(ctx context.Context) error {
	t.mu.Lock()
	all := kept{t.reportLocked(), slices.Clone(t.events)}
	t.mu.Unlock()

	packed, err := pack(&all)
	if err != nil {
		return err
	}

	for {
		one, cancel := context.WithTimeout(ctx, proposeTime)
		err := t.keeper.end(one, t.log, &all.Report, packed)
		cancel()
		if err == nil {
			t.log.End()
			return nil
		}

		// The turn is no longer this node's.
		if _, refused := catalog.Refused(err); refused {
			return thread.ErrLost
		}
		if !clock.Wait(ctx, closePause) {
			return ctx.Err()
		}
	}
}

// The files of turns are JSON, packed: events repeat their words.
var (
	packer, _   = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	unpacker, _ = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(64<<20))
)

func pack(k *kept) ([]byte, error) {
	b, err := json.Marshal(k)
	if err != nil {
		return nil, fmt.Errorf("keep a question: %w", err)
	}
	return packer.EncodeAll(b, nil), nil
}

func unpack(b []byte) (*kept, error) {
	// Bounded: a damaged file could claim any size.
	plain, err := unpacker.DecodeAll(b, nil)
	if err != nil {
		return nil, fmt.Errorf("what was said: %w", err)
	}
	k := new(kept)
	d := json.NewDecoder(bytes.NewReader(plain))
	if err := d.Decode(k); err != nil {
		return nil, fmt.Errorf("what was said: %w", err)
	}
	return k, nil
}
