package trigram

import "math/bits"

// A run class is a set of bytes. For each class a unit has a byte: how many bytes of
// the class it has in a row at most.
const (
	runDigit = iota
	runUpper
	runHex
	runWord
	runClasses
)

// maxRun is the longest run that a query can ask of a unit: a run that begins at the
// last byte of a unit is visible only as far as the window reaches.
const maxRun = Overlap - 4

// runBits has for each byte bit c set if it is of run class c.
var runBits = makeRunBits()

func makeRunBits() (t [256]uint8) {
	set := func(lo, hi byte, bits ...int) {
		for b := int(lo); b <= int(hi); b++ {
			for _, c := range bits {
				t[b] |= 1 << c
			}
		}
	}

	// Runs are of the text as it is: capitals are apart here, while trigrams fold them.
	set('0', '9', runDigit, runHex, runWord)
	set('A', 'F', runHex)
	set('a', 'f', runHex)
	set('A', 'Z', runUpper, runWord)
	set('a', 'z', runWord)
	set('_', '_', runWord)
	return t
}

// shortest is for each run class the shortest run that counts. Shorter ones are in
// most units anyway, and looking for them costs time: the search for a run steps as
// far as the run it looks for is long.
var shortest = [runClasses]int{runDigit: 4, runUpper: 6, runHex: 6, runWord: 10}

// longestRun returns the length of the longest run of bytes of a class, at most 255,
// or 0 if none counts. Before each step
//
//	text[:i] has no run longer than longest, and one that begins at i would be new
//
// so it looks at the last byte that a longer run from i on would have, and mostly it
// is not of the class: then no run up to there can be longer.
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

		// All bytes back to i are of the class: a new longest run, which may go on.
		end := i + longest + 1
		for end < len(text) && runBits[text[end]]&bit != 0 {
			end++
		}
		longest = end - i
		i = end + 1
	}

	// What a shorter run says is not worth a look, so it counts as none.
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

// runMasks says for blocks of 64 bytes which of them are of each run class.
type runMasks [runBlocks][runClasses]uint64

// longest is longestRun from masks. It only asks of each block whether it has a longer
// run than all before, which it seldom has: with the same few shifts for each block
// there is nothing to mispredict. run is how long a run is that reaches the block.
func (m *runMasks) longest(blocks, class int) uint8 {
	// A bit left after the steps is a run that is longer than the longest so far.
	longest, run := shortest[class]-1, 0
	steps := stepsTo(longest + 1)
	for i := range blocks {
		w := m[i][class]
		if w == ^uint64(0) {
			run += 64
			continue
		}

		// Within the word, or across its beginning from the words before.
		within, across := steps.apply(w), run+bits.TrailingZeros64(^w)

		run = bits.LeadingZeros64(^w)

		if within != 0 || across > longest {
			longest = max(longest, across, longestIn(w))
			steps = stepsTo(longest + 1)
		}
	}

	// One that reaches the end was not across any word.
	if longest = max(longest, run); longest < shortest[class] {
		return 0
	}
	return uint8(min(longest, 255))
}

// steps are shifts. After them a bit is set where a run of a certain length begins:
// for 6 they are 1, 2, 2, since w & w>>1 has the beginnings of runs of 2, and so on
// for 4 and 6.
type steps struct {
	by [8]uint8
	n  int
}

// stepsTo returns the steps for runs of a length. A word has none longer than 64: for
// those nothing is left.
func stepsTo(length int) (s steps) {
	for have := 1; have < min(length, 65); s.n++ {
		step := min(have, length-have, 63)
		s.by[s.n] = uint8(step)
		have += step
	}
	return s
}

// apply leaves in w the beginnings of runs.
func (s *steps) apply(w uint64) uint64 {
	for _, by := range s.by[:s.n] {
		w &= w >> (by & 63)
	}
	return w
}

// longestIn returns the longest run of ones in a word.
func longestIn(w uint64) (n int) {
	for ; w != 0; n++ {
		w &= w >> 1
	}
	return n
}
