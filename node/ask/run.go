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
	textPause  = 30 * time.Millisecond // text that arrives meanwhile joins one event
)

// publish shows events to watchers until the last one. It stores the turn before it shows the
// last event, so whoever sees the end finds the answer in the thread. ctx bounds the storing.
func (t *Turn) publish(ctx context.Context) {
	for range t.wake {
		t.mu.Lock()
		n, last := len(t.events), t.last
		t.mu.Unlock()

		if !last {
			t.showEvents(n)
			clock.Wait(ctx, textPause)
			continue
		}

		t.showEvents(n - 1)
		if err := t.storeAndEnd(ctx); err != nil {
			t.kit.log.Error("what was said of a question cannot be kept", "err", err)
			t.reportLoss()
			return
		}
		t.showEvents(n)
		return
	}
}

// storeAndEnd stores the turn and ends it in the catalog. It retries until ctx ends.
func (t *Turn) storeAndEnd(ctx context.Context) error {
	t.mu.Lock()
	all := turnFile{Report: t.reportLocked(), Events: slices.Clone(t.events)}
	t.mu.Unlock()

	packed, err := pack(&all)
	if err != nil {
		return err
	}

	for {
		attempt, cancel := context.WithTimeout(ctx, proposeTime)
		err := t.keeper.endTurn(attempt, t.fence, &all.Report, packed)
		cancel()
		if err == nil {
			return nil
		}

		// Another node has ended this turn as lost.
		if _, refused := catalog.Refused(err); refused {
			return err
		}
		if !clock.Wait(ctx, closePause) {
			return errors.Join(ctx.Err(), err)
		}
	}
}

// turnFile is the content of a turn's file. While the turn runs, its file has only the question,
// with status Running.
type turnFile struct {
	Format int `json:",omitempty"` // 0 means 1; readers skip unknown fields
	Report Report
	Events []Event
}

// turnFormat is the format of turn files. It must grow when older programs cannot read the new
// files.
const turnFormat = 1

// Turn files are compressed JSON, since events repeat words.
var (
	packer, _   = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	unpacker, _ = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(64<<20))
)

// pack encodes and compresses the file of a turn.
func pack(k *turnFile) ([]byte, error) {
	b, err := json.Marshal(k)
	if err != nil {
		return nil, fmt.Errorf("keep a question: %w", err)
	}
	return packer.EncodeAll(b, nil), nil
}

// unpack is the inverse of pack.
func unpack(b []byte) (*turnFile, error) {
	// The decoder limits the size, because a damaged file could claim any.
	plain, err := unpacker.DecodeAll(b, nil)
	if err != nil {
		return nil, fmt.Errorf("what was said: %w", err)
	}
	// Check the format first: a newer one may use these names for other things.
	var form struct{ Format int }
	if err := json.Unmarshal(plain, &form); err == nil && form.Format > turnFormat {
		return nil, call.Fail(call.ErrUnavailable, "This part of the conversation was written by a newer version of shoal, with format %d; this node reads up to %d. Ask a node of that version, or upgrade this one.", form.Format, turnFormat)
	}
	k := new(turnFile)
	if err := json.Unmarshal(plain, k); err != nil {
		return nil, fmt.Errorf("what was said: %w", err)
	}
	return k, nil
}
