package shard

// hit is what a search keeps of a matching file until it renders the best files.
type hit struct {
	run     *run
	doc     uint32
	occ     uint32 // occurrence of the document: its place in a repository
	mask    uint64 // revisions for which the query holds
	content int32  // matches in the content
	names   int32  // matches in the path
	before  int32  // matches before the cursor; those in the content come first
	score   float32
}

// ranges returns how many places match in the content and in the path of the file.
func (h hit) ranges() int { return int(h.content) + int(h.names) }

// weight returns how much of a limit of matches the file uses. A file that matches without any
// place, as with `lang:go`, uses one.
func (s *search) weight(h hit) int { return max(1, s.showable(h)) }

// showable returns how many places of the file may be shown.
func (s *search) showable(h hit) int {
	left := h.ranges() - int(h.before)
	if s.r.MaxPerFile > 0 {
		return min(left, s.r.MaxPerFile)
	}
	return left
}
