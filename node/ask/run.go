package ask

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/shoalsearch/shoal/clock"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/call"
)

const (
	closePause = 200 * time.Millisecond
	textPause  = 30 * time.Millisecond // pieces of text that come meanwhile are one event
)

// publish shows events to watchers until the last one. Before that one it keeps the
// turn: whoever sees the end finds the answer in the thread. ctx bounds the keeping.
func (t *Turn) publish(ctx context.Context) {
	for range t.wake {
		t.mu.Lock()
		n, last := len(t.events), t.last
		t.mu.Unlock()

		if !last {
			t.show(n)
			clock.Wait(ctx, textPause)
			continue
		}

		t.show(n - 1)
		if err := t.close(ctx); err != nil {
			t.kit.log.Error("what was said of a question cannot be kept", "err", err)
			t.lose()
			return
		}
		t.show(n)
		return
	}
}

// close keeps what was said and ends the turn in the catalog. It tries until ctx
// ends.
func (t *Turn) close(ctx context.Context) error {
	t.mu.Lock()
	all := kept{Report: t.reportLocked(), Events: slices.Clone(t.events)}
	t.mu.Unlock()

	packed, err := pack(&all)
	if err != nil {
		return err
	}

	for {
		one, cancel := context.WithTimeout(ctx, proposeTime)
		err := t.keeper.end(one, t.fence, &all.Report, packed)
		cancel()
		if err == nil {
			return nil
		}

		// This node was taken for lost, and the turn has ended so.
		if _, refused := catalog.Refused(err); refused {
			return err
		}
		if !clock.Wait(ctx, closePause) {
			return errors.Join(ctx.Err(), err)
		}
	}
}

// kept is what is in the file of a turn. While the turn runs its file has the
// question alone, with the status Running.
type kept struct {
	Format int `json:",omitempty"` // 0 is 1; fields that a reader of a format does not know are skipped
	Report Report
	Events []Event
}

// turnFormat is the format of the files of turns. Where a file cannot be read by the program
// of before, it is one more.
const turnFormat = 1

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
	// Its format first: a later one may have other things under these names.
	var form struct{ Format int }
	if err := json.Unmarshal(plain, &form); err == nil && form.Format > turnFormat {
		return nil, call.Fail(call.ErrUnavailable, "This part of the conversation was written by a newer version of shoal, with format %d; this node reads up to %d. Ask a node of that version, or upgrade this one.", form.Format, turnFormat)
	}
	k := new(kept)
	if err := json.Unmarshal(plain, k); err != nil {
		return nil, fmt.Errorf("what was said: %w", err)
	}
	return k, nil
}
