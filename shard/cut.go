package shard

// CutMark replaces the bytes that are left out of an overlong line.
const CutMark = "…"

// CutLine returns a copy of a line, cut around its matches in [from, to) as a chunk cuts it, with
// CutMark at each cut. If [from, to) is longer than longLine, it cuts the end of the range, too.
func CutLine(line []byte, from, to int) []byte {
	start, end := 0, len(line)
	to = min(to, from+longLine)
	if from > longLine {
		start = runeStart(line, from-cutMargin)
	}
	if end-to > longLine {
		end = runeStart(line, to+cutMargin)
	}

	out := make([]byte, 0, end-start+2*len(CutMark))
	if start > 0 {
		out = append(out, CutMark...)
	}
	if out = append(out, line[start:end]...); end < len(line) {
		out = append(out, CutMark...)
	}
	return out
}
