package trigram

import "math/bits"

// A run class is a set of bytes. Each unit has a byte for each class: the length of its longest run
// of bytes of that class.
const (
	runDigit = iota
	runUpper
	runHex
	runWord
	runClasses
)

// maxRun is the longest run that a query may require of a unit: a run that begins at the last byte
// of a unit is visible only up to the end of the window.
const maxRun = Overlap - 4

// runBits maps a byte to a bit for each run class that contains it.
var runBits = makeRunBits()

// makeRunBits makes the table runBits.
func makeRunBits() (t [256]uint8) {
	set := func(lo, hi byte, bits ...int) {
		for b := int(lo); b <= int(hi); b++ {
			for _, c := range bits {
				t[b] |= 1 << c
			}
		}
	}

	// Runs do not fold case: capitals differ from small letters, unlike in trigrams.
	set('0', '9', runDigit, runHex, runWord)
	set('A', 'F', runHex)
	set('a', 'f', runHex)
	set('A', 'Z', runUpper, runWord)
	set('a', 'z', runWord)
	set('_', '_', runWord)
	return t
}

// minRun is the length of the shortest run of each class that the index records. Most units have
// shorter runs, so shorter runs rule out little. Finding them takes longer, too: the search steps by
// the length of the run that it looks for.
var minRun = [runClasses]int{runDigit: 4, runUpper: 6, runHex: 6, runWord: 10}

// longestRun returns the length of the longest run of bytes of a class, at most 255, or 0 if it is
// shorter than minRun. Before each step text[:i] has no run longer than longest, and text[i-1] is
// not of the class. So the search first looks at text[i+longest], the last byte of a longer run
// that begins at i. That byte is mostly not of the class, and then the search goes on after it.
func longestRun(text []byte, class int) uint8 {
	bit, longest := uint8(1)<<class, minRun[class]-1
	for i := 0; i+longest < len(text); {
		j := i + longest
		for j >= i && runBits[text[j]]&bit != 0 {
			j--
		}

		if j >= i {
			i = j + 1
			continue
		}

		// All bytes back to i are in the class: this is a new longest run, which may continue.
		end := i + longest + 1
		for end < len(text) && runBits[text[end]]&bit != 0 {
			end++
		}
		longest = end - i
		i = end + 1
	}

	if longest < minRun[class] {
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

// runMasks has a word for each block of 64 bytes and each run class: which bytes are in the class.
type runMasks [runBlocks][runClasses]uint64

// longestRun returns the length of the longest run of bytes of a class in m[:blocks], as the
// function longestRun does. For each block it only checks whether the block has a longer run than
// all blocks before. That is seldom true, and takes the same few shifts for each block, so branches
// are predicted well.
func (m *runMasks) longestRun(blocks, class int) uint8 {
	longest, run := minRun[class]-1, 0 // run is the length of the run up to the start of the block
	steps := stepsForLength(longest + 1)
	for i := range blocks {
		w := m[i][class]
		if w == ^uint64(0) {
			run += 64
			continue
		}

		// A longer run may be within the word, or start in words before it.
		within, across := steps.findRuns(w), run+bits.TrailingZeros64(^w)
		run = bits.LeadingZeros64(^w)

		if within != 0 || across > longest {
			longest = max(longest, across, longestIn(w))
			steps = stepsForLength(longest + 1)
		}
	}

	// A run that reaches the end has not been counted yet.
	if longest = max(longest, run); longest < minRun[class] {
		return 0
	}
	return uint8(min(longest, 255))
}

// steps are the shifts that find all runs of a certain length in a word. For length 6 they are 1,
// 2, 2: w & w>>1 has a bit where a run of length 2 begins, the next step leaves the starts of runs
// of length 4, the last those of length 6.
type steps struct {
	by [8]uint8
	n  int
}

// stepsForLength returns the steps that find runs of a length. For a length above 64, which no word
// has, they find none.
func stepsForLength(length int) (s steps) {
	for covered := 1; covered < min(length, 65); s.n++ {
		step := min(covered, length-covered, 63)
		s.by[s.n] = uint8(step)
		covered += step
	}
	return s
}

// findRuns returns a word with a bit at the start of each run in w that has the length of the steps.
func (s *steps) findRuns(w uint64) uint64 {
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
