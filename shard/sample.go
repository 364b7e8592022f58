package shard

import (
	"bytes"
	"context"

	"github.com/shoalsearch/shoal/shard/charset"
	"github.com/shoalsearch/shoal/shard/lz"
	"github.com/shoalsearch/shoal/trigram"
)

const (
	sampleBlobs   = 400 // documents that the dictionary is made of
	sampleWindows = 8   // pieces of each at most
	// dictShare: the dictionary is at most one byte in so many of text.
	dictShare = 64
	// smallestDict: a smaller dictionary, that of less than a megabyte of text, is
	// not made. So small a file is soon rewritten in a pack, and making the
	// dictionary takes as long as all the rest of the build.
	smallestDict = 16 << 10
)

// train makes the dictionary of the file from documents evenly spread over its
// order, and writes it.
func (b *builder) train(ctx context.Context, src Source, order []int) error {
	// Only what is indexed has content in the file.
	var text int64
	var fit []int
	for _, i := range order {
		if x := b.blobs[i]; x.Size > 0 && x.Size <= b.opt.MaxFileSize && b.opt.fate(x) == indexed {
			text += x.Size
			fit = append(fit, i)
		}
	}

	// Small files are not worth a dictionary.
	size := min(text/dictShare, lz.MaxDict)
	if size < smallestDict {
		return nil
	}

	// Which documents: of many, some at equal distances.
	want := fit
	if len(fit) > sampleBlobs {
		want = make([]int, sampleBlobs)
		for k := range want {
			want[k] = fit[k*len(fit)/sampleBlobs]
		}
	}

	// Samples from text only: binary content is not kept.
	var samples [][]byte
	err := src.Read(ctx, want, func(i int, content []byte) error {
		if text, of := b.decode(nil, i, content); !charset.Binary(text, of) {
			samples = appendSamples(samples, text)
		}
		return nil
	})
	if err != nil {
		return err
	}

	if b.dict = lz.Train(samples, int(size)); len(b.dict) > 0 {
		b.out.Add(secDict, b.dict)
	}
	return nil
}

// appendSamples appends copies of some units of a text, at equal distances.
func appendSamples(samples [][]byte, content []byte) [][]byte {
	units := int(trigram.Units(len(content)))
	n := min(units, sampleWindows)
	for k := range n {
		from, to := trigram.Span(len(content), uint32(k*units/n))
		samples = append(samples, bytes.Clone(content[from:to]))
	}
	return samples
}
