package lz

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"
)

const (
	trainBits = 20 // size of the table of counts
	trainStep = 64 // bytes added to the dictionary at once
	gramBytes = 8  // length of a gram, which is a run of bytes
	maxRare   = 3  // a gram in at most this many samples counts as 0
)

// Train makes a dictionary of at most size bytes from samples. It divides the samples into parts.
// From each part it takes the stretch whose grams are in the most samples and not yet in the
// dictionary. The best stretches come last. Equal samples give equal dictionaries.
func Train(samples [][]byte, size int) []byte {
	counts := countGrams(samples)

	// Take a stretch from each part, so that the dictionary has text of all kinds.
	type stretch struct {
		score int
		text  []byte
	}
	var found []stretch

	parts := min(min(size, MaxDict)/trainStep, len(samples))
	for p := range parts {
		best := stretch{}
		for _, text := range samples[p*len(samples)/parts : (p+1)*len(samples)/parts] {
			if at, score := bestStretch(text, counts); score > best.score {
				best = stretch{score, text[at : at+trainStep]}
			}
		}

		if best.score == 0 {
			continue
		}

		// A gram that is in the dictionary already counts as 0.
		for i := 0; i+gramBytes <= trainStep; i++ {
			counts[trainHash(best.text[i:])] = 0
		}
		found = append(found, best)
	}

	slices.SortStableFunc(found, func(a, b stretch) int { return cmp.Compare(a.score, b.score) })
	texts := make([][]byte, len(found))
	for i, f := range found {
		texts[i] = f.text
	}
	return bytes.Join(texts, nil)
}

// trainHash hashes a gram.
func trainHash(b []byte) uint32 {
	return uint32(binary.LittleEndian.Uint64(b) * 0x9e3779b185ebca87 >> (64 - trainBits))
}

// countGrams counts how many samples contain each gram, by hash.
func countGrams(samples [][]byte) []uint16 {
	counts, last := make([]uint16, 1<<trainBits), make([]uint16, 1<<trainBits)
	for n, text := range samples[:min(len(samples), 1<<16-1)] {
		for i := 0; i+gramBytes <= len(text); i++ {
			if h := trainHash(text[i:]); last[h] != uint16(n+1) {
				last[h] = uint16(n + 1)
				counts[h]++
			}
		}
	}
	return counts
}

// bestStretch returns where the trainStep bytes with the highest score begin. The score is the sum
// of the counts of the grams in them that are not rare. bestStretch moves a window of that
// size over the text.
func bestStretch(text []byte, counts []uint16) (at, score int) {
	gramScore := func(i int) int {
		if c := int(counts[trainHash(text[i:])]); c > maxRare {
			return c
		}
		return 0
	}

	// Each gram of a stretch begins one byte after the one before.
	const grams = trainStep - gramBytes + 1
	sum := 0
	for i := 0; i+gramBytes <= len(text); i++ {
		sum += gramScore(i)
		if i >= grams {
			sum -= gramScore(i - grams)
		}
		if i >= grams-1 && sum > score {
			at, score = i-grams+1, sum
		}
	}
	return at, score
}
