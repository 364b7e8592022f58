package trigram

// A trigram has two forms. On disk it is a key: its three folded bytes, big-endian in
// 24 bits. While building it is a number, small enough for the tables that it indexes
// to stay in the second-level cache: each byte of text has a class from 0 to 71, and
// three classes make the number. All bytes that are not printable ASCII, tab, newline
// or carriage return have the class escape; their trigrams are numbered as they come
// (tables.escapeIDs). "the" has the classes 61, 49, 46:
//
//	key 0x746865     number (61*72 + 49)*72 + 46

const (
	classes = 72
	escape  = 128 // one bit: or-ing the classes of a window shows whether it has an escape
	stride2 = classes
	stride3 = classes * classes
	// directIDs is an upper bound for the numbers made from classes, with escapes.
	directIDs = escape*(stride3+stride2+1) + 1
)

// classOf maps each byte to its class. Classes have the order of the folded bytes.
var classOf = makeClasses()

// byteOf is the inverse of classOf for classes below escape.
var byteOf = makeBytes()

// foldByte maps ASCII capitals to lower case.
var foldByte = makeFold()

// isText reports whether a byte has its own class.
func isText(b int) bool {
	return b == '\t' || b == '\n' || b == '\r' || b >= ' ' && b <= '~'
}

// makeFold makes a table that maps each byte to its small letter, or to itself.
func makeFold() (t [256]byte) {
	for b := range t {
		t[b] = byte(b)
		if b >= 'A' && b <= 'Z' {
			t[b] += 'a' - 'A'
		}
	}
	return t
}

// makeClasses makes a table that maps each byte to its class.
func makeClasses() (t [256]uint8) {
	fold, n := makeFold(), uint8(0)
	for b := range t {
		t[b] = escape
		if isText(b) && int(fold[b]) == b {
			t[b] = n
			n++
		}
	}

	// The index folds capitals, so a capital has the class of its small letter.
	for b := 'A'; b <= 'Z'; b++ {
		t[b] = t[b+'a'-'A']
	}
	return t
}

// makeBytes makes a table that maps each class to the byte that stands for it.
func makeBytes() (t [classes]byte) {
	for b, c := range makeClasses() {
		if c != escape && makeFold()[b] == byte(b) {
			t[c] = byte(b)
		}
	}
	return t
}

// keyOfID returns the key of a trigram number without an escape.
func keyOfID(id uint32) uint32 {
	return uint32(byteOf[id/stride3])<<16 | uint32(byteOf[id/stride2%classes])<<8 | uint32(byteOf[id%classes])
}
