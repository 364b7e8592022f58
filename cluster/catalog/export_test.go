package catalog

// FileRefs returns how many live generations refer to a shard or side file.
func (v *View) FileRefs(id string) int {
	n, _ := v.refs.Get(id)
	return int(n)
}
