package shard

// CutMark stands where bytes of an overlong line are left out.
const CutMark = "…"

// CutLine returns what is shown of a line around its matches in [from, to), as a chunk
// shows it, with a mark where it is cut. The result is a copy, and its length is bounded
// whatever the line is: of what is overlong between from and to the beginning is shown.
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
