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
