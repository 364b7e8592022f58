package trigram

import "math/bits"

// A run class is a set of bytes for which each unit knows how many of them it
// has in a row at most.
const (
	runDigit = iota
	runUpper
	runHex
	runWord
	runClasses
)

// maxRun is the longest run that a query can ask of a unit: a run that starts
// at the last byte a unit owns is visible only as far as the window reaches.
const maxRun = Overlap - 4

// runBits has bit c set for the bytes of run class c.
var runBits = makeRunBits()

func makeRunBits() (t [256]uint8) {
	set := func(lo, hi byte, bits ...int) {
		for b := int(lo); b <= int(hi); b++ {
			for _, c := range bits {
				t[b] |= 1 << c
			}
		}
	}
	set('0', '9', runDigit, runHex, runWord)
	set('A', 'F', runHex)
	set('a', 'f', runHex)
	set('A', 'Z', runUpper, runWord)
	set('a', 'z', runWord)
	set('_', '_', runWord)
	return t
}

// shortest is, for each run class, the length of the shortest run that counts.
// Shorter ones are in most units anyway, and noting them costs time: the
// search for a run steps as far as the run that it looks for is long.
var shortest = [runClasses]int{runDigit: 4, runUpper: 6, runHex: 6, runWord: 10}

// longestRun returns the length of the longest run of bytes of the class,
// at most 255, or 0 when none counts. It tries the last byte of a run that is
// longer than the longest so far first, and most of the time it is a miss.
func longestRun(text []byte, class int) uint8 {
	bit, longest := uint8(1)<<class, shortest[class]-1
	for i := 0; i+longest < len(text); {
		j := i + longest
		for j >= i && runBits[text[j]]&bit != 0 {
			j--
		}
		if j >= i {
			i = j + 1
			continue
		}
		end := i + longest + 1
		for end < len(text) && runBits[text[end]]&bit != 0 {
			end++
		}
		longest = end - i
		i = end + 1
	}
	if longest < shortest[class] {
		return 0
	}
	return uint8(min(longest, 255))
}

// appendRuns appends the longest run of every class in text.
func appendRuns(dst []byte, text []byte) []byte {
	for c := range runClasses {
		dst = append(dst, longestRun(text, c))
	}
	return dst
}

// runBlocks is the number of blocks of 64 bytes in the longest window.
const runBlocks = (UnitSize + 2*Overlap + 63) / 64

// runMasks tells for blocks of 64 bytes which of them are in each run class.
type runMasks [runBlocks][runClasses]uint64

// longest is longestRun from masks. What is asked of each block is whether it
// has a longer run than any before, which it seldom has: with the same few
// shifts for all of them there is nothing to mispredict.
func (m *runMasks) longest(blocks, class int) uint8 {
	longest, run := shortest[class]-1, 0
	steps := stepsTo(longest + 1)
	for i := range blocks {
		w := m[i][class]
		if w == ^uint64(0) {
			run += 64
			continue
		}
		within, across := steps.apply(w), run+bits.TrailingZeros64(^w)
		run = bits.LeadingZeros64(^w)
		if within != 0 || across > longest {
			longest = max(longest, across, longestIn(w))
			steps = stepsTo(longest + 1)
		}
	}
	if longest = max(longest, run); longest < shortest[class] {
		return 0
	}
	return uint8(min(longest, 255))
}

// steps are shifts: after them a bit is set where a run of some length begins.
type steps struct {
	by [8]uint8
	n  int
}

// stepsTo gives the steps for runs of a length; beyond 64 there are none in a
// word.
func stepsTo(length int) (s steps) {
	for have := 1; have < min(length, 65); s.n++ {
		step := min(have, length-have, 63)
		s.by[s.n] = uint8(step)
		have += step
	}
	return s
}

func (s *steps) apply(w uint64) uint64 {
	for _, by := range s.by[:s.n] {
		w &= w >> (by & 63)
	}
	return w
}

// longestIn gives the longest run of ones in a word.
func longestIn(w uint64) (n int) {
	for ; w != 0; n++ {
		w &= w >> 1
	}
	return n
}
