package shard

import (
	"bytes"
	"context"

	"github.com/shoalsearch/shoal/shard/charset"
	"github.com/shoalsearch/shoal/shard/lz"
	"github.com/shoalsearch/shoal/trigram"
)

const (
	sampleBlobs   = 400 // greatest number of documents that the dictionary is made of
	sampleWindows = 8   // greatest number of samples of each document
	// A dictionary has at most one byte for each dictShare bytes of text.
	dictShare = 64
	// smallestDict is the size of the smallest dictionary that is made: for a megabyte of text. A
	// smaller file is soon rewritten in a pack, and making a dictionary would double the time of
	// its build.
	smallestDict = 16 << 10
)

// trainDictionary makes the dictionary of the file from documents evenly spread over the order, and
// writes it. A file with too little text for smallestDict gets none.
func (b *builder) trainDictionary(ctx context.Context, src Source, order []int) error {
	var textBytes int64
	var eligible []int
	for _, i := range order {
		if x := b.blobs[i]; x.Size > 0 && x.Size <= b.opt.MaxFileSize && b.opt.skipReason(x) == indexed {
			textBytes += x.Size
			eligible = append(eligible, i)
		}
	}

	size := min(textBytes/dictShare, lz.MaxDict)
	if size < smallestDict {
		return nil
	}

	// If there are many documents, take some at equal distances.
	selected := eligible
	if len(eligible) > sampleBlobs {
		selected = make([]int, sampleBlobs)
		for k := range selected {
			selected[k] = eligible[k*len(eligible)/sampleBlobs]
		}
	}

	var samples [][]byte
	err := src.Read(ctx, selected, func(i int, content []byte) error {
		if text, encoding := b.decodeText(nil, i, content); !charset.Binary(text, encoding) {
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
