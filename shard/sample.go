package shard

import (
	"bytes"
	"context"

	"github.com/shoalsearch/shoal/shard/lz"
	"github.com/shoalsearch/shoal/trigram"
)

const (
	sampleBlobs   = 400 // documents that the dictionary is made of
	sampleWindows = 8   // pieces of each at most
	// dictShare: the dictionary costs at most one in so many bytes of text.
	dictShare = 64
	// smallestDict is the size below which none is made: that of a megabyte of
	// text. What is smaller is soon written anew in a pack that has one, and
	// making one takes as long as making the rest of such a file.
	smallestDict = 16 << 10
)

// train makes the dictionary of the file out of some documents, evenly spread
// over its order, and writes it.
func (b *builder) train(ctx context.Context, src Source, order []int) error {
	var text int64
	var fit []int
	for _, i := range order {
		if x := b.blobs[i]; x.Size > 0 && x.Size <= b.opt.MaxFileSize && b.opt.fate(x) == indexed {
			text += x.Size
			fit = append(fit, i)
		}
	}
	size := min(text/dictShare, lz.MaxDict)
	if size < smallestDict {
		return nil
	}
	want := fit
	if len(fit) > sampleBlobs {
		want = make([]int, sampleBlobs)
		for k := range want {
			want[k] = fit[k*len(fit)/sampleBlobs]
		}
	}
	var samples [][]byte
	err := src.Read(ctx, want, func(_ int, content []byte) error {
		if isBinary(content) {
			return nil
		}
		units := int(trigram.Units(len(content)))
		n := min(units, sampleWindows)
		for k := range n {
			from, to := trigram.Span(len(content), uint32(k*units/n))
			samples = append(samples, bytes.Clone(content[from:to]))
		}
		return nil
	})
	if err != nil {
		return err
	}
	if b.dict = lz.Train(samples, int(size)); len(b.dict) > 0 {
		b.out.add(secDict, b.dict)
	}
	return nil
}
