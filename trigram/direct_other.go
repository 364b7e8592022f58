//go:build !amd64

package trigram

import "unsafe"

// direct is the fast way: right unless the window has an escape in it, which
// it tells.
func (t *tables) direct(ids []uint32, window []byte) (n int, escapes uint32) {
	return t.directPortable(ids, window)
}

// dealOut sets the bit of a unit in the rows of its n trigrams and writes those
// of row 0 to log, which has room for all of them; see [Writer.dealUnit].
func dealOut(ids *uint32, n int, hot *uint16, word *uint64, bit uint64, log *uint32) (logged int) {
	for _, id := range unsafe.Slice(ids, n) {
		row := *(*uint16)(unsafe.Add(unsafe.Pointer(hot), uintptr(id)*2))
		*(*uint64)(unsafe.Add(unsafe.Pointer(word), uintptr(row)*8)) |= bit
		*(*uint32)(unsafe.Add(unsafe.Pointer(log), uintptr(logged)*4)) = id
		next := logged + 1
		if row == 0 {
			logged = next
		}
	}
	return logged
}
