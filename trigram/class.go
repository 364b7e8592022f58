package trigram

// Keys of trigrams come in two forms. On disk a trigram is its three folded
// bytes, big-endian in 24 bits. While building, it is a small number, so that
// the tables indexed by it stay in the second-level cache: each text byte has
// a class from 0 to 71 and three classes make the number. Bytes that are no
// printable ASCII, tab, newline or carriage return share the class escape;
// their trigrams get numbers as they come (see extras).

const (
	classes = 72
	escape  = 128 // one bit, so that the classes of a window can be or-ed to find it
	stride2 = classes
	stride3 = classes * classes
	// directIDs bounds the numbers that classes can make, escape included.
	directIDs = escape*(stride3+stride2+1) + 1
)

// classOf maps bytes to classes, in the order of the folded bytes.
var classOf = makeClasses()

// byteOf is the inverse for classes below escape.
var byteOf = makeBytes()

// foldByte maps ASCII capitals to small letters.
var foldByte = makeFold()

func isText(b int) bool {
	return b == '\t' || b == '\n' || b == '\r' || b >= ' ' && b <= '~'
}

func makeFold() (t [256]byte) {
	for b := range t {
		t[b] = byte(b)
		if b >= 'A' && b <= 'Z' {
			t[b] += 'a' - 'A'
		}
	}
	return t
}

func makeClasses() (t [256]uint8) {
	fold, n := makeFold(), uint8(0)
	for b := range t {
		t[b] = escape
		if isText(b) && int(fold[b]) == b {
			t[b] = n
			n++
		}
	}
	for b := 'A'; b <= 'Z'; b++ {
		t[b] = t[b+'a'-'A']
	}
	return t
}

func makeBytes() (t [classes]byte) {
	for b, c := range makeClasses() {
		if c != escape && makeFold()[b] == byte(b) {
			t[c] = byte(b)
		}
	}
	return t
}

// keyOfID gives the key of a direct number that has no escape in it.
func keyOfID(id uint32) uint32 {
	return uint32(byteOf[id/stride3])<<16 | uint32(byteOf[id/stride2%classes])<<8 | uint32(byteOf[id%classes])
}

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
