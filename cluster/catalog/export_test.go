package catalog

// FileRefs is how many live generations name a shard or side file. One that
// none names is no longer needed, once no older View is in use.
func (v *View) FileRefs(id string) int {
	n, _ := v.refs.Get(id)
	return int(n)
}
