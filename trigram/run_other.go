//go:build !amd64 || purego

package trigram

// longestRuns appends the longest run of every class in text.
func (m *runMasks) longestRuns(dst []byte, text []byte) []byte { return appendRuns(dst, text) }
