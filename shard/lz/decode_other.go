//go:build !amd64 || purego

package lz

// decodeCommon does nothing here: there is assembly only for amd64.
func decodeCommon(_, _, _ []byte, r, _, l, o int) (int, int, int) { return r, l, o }
