//go:build !amd64 || purego

package pack

// fast decompresses as long as there is room, and reports whether the block
// came to its end.
func (f *inflater) fast(dst []byte, out int, b *stream) (int, bool, error) {
	return f.fastPortable(dst, out, b)
}
