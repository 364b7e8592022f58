//go:build !amd64 || purego

package trigram

// direct is the fast way: right unless the window has an escape, which it reports.
func (t *tables) direct(ids []uint32, window []byte) (n int, escapes uint32) {
	return t.directPortable(ids, window)
}

// dealOut is dealOutPortable.
func dealOut(ids *uint32, n int, hot *uint16, word *uint64, bit uint64, log *uint32) (logged int) {
	return dealOutPortable(ids, n, hot, word, bit, log)
}
