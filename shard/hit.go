package shard

// hit is a matching file in the first round of a search; the second round renders the best hits.
type hit struct {
	run     *run
	doc     uint32
	occ     uint32 // occurrence of the document: its path in a repository
	mask    uint64 // revisions for which the query holds
	content int32  // matches in the content
	names   int32  // matches in the path
	before  int32  // matches before the cursor; those in the content come first
	score   float32
}

// countMatches returns the number of matches in the content and in the path of the file.
func (h hit) countMatches() int { return int(h.content) + int(h.names) }

// limitCost returns how many of MaxMatches the file uses. A file without a match in its text, as
// for `lang:go`, uses one.
func (s *search) limitCost(h hit) int { return max(1, s.countShowable(h)) }

// countShowable returns how many matches of the file may be shown.
func (s *search) countShowable(h hit) int {
	left := h.countMatches() - int(h.before)
	if s.r.MaxPerFile > 0 {
		return min(left, s.r.MaxPerFile)
	}
	return left
}
