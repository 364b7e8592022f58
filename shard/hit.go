package shard

// hit is what the first round keeps of a file that matches.
type hit struct {
	run     *run
	doc     uint32
	occ     uint32 // occurrence of the document: its place in a repository
	mask    uint64 // revisions for which the query holds
	content int32  // matches in the content
	names   int32  // matches in the path
	before  int32  // matches before the cursor, those of the content first
	score   float32
}

// ranges is how many places of the file match, in its content and in its path.
func (h hit) ranges() int { return int(h.content) + int(h.names) }

// weight is what the file takes of a limit of matches: one where it matches without any
// place, as it does with `lang:go`.
func (s *search) weight(h hit) int { return max(1, s.showable(h)) }

// showable is how many places of the file may be shown at most.
func (s *search) showable(h hit) int {
	left := h.ranges() - int(h.before)
	if s.r.MaxPerFile > 0 {
		return min(left, s.r.MaxPerFile)
	}
	return left
}
