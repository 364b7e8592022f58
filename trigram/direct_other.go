//go:build !amd64

package trigram

// direct is the fast way: right unless the window has an escape in it, which
// it tells.
func (t *tables) direct(ids []uint32, window []byte) (n int, escapes uint32) {
	return t.directPortable(ids, window)
}
