package shard

// CountCommon returns how many documents of some parts are among blobs. A part that is missing or
// damaged counts as empty. Use it to find a repository of which another one is a copy.
func (s *Set) CountCommon(parts []Part, among func(oid string) bool) (common int) {
	v, _ := s.Acquire(parts)
	defer v.Release()
	for _, m := range v.members {
		if err := m.ready(); err != nil {
			s.report(m, err)
			continue
		}
		for d := range m.sh.m.documents {
			if among(m.sh.oid(d)) {
				common++
			}
		}
	}
	return common
}
