package node

// SetStreamBatch lets parts of streams come from fewer shards. It must be
// called before the first stream.
func (n *Node) SetStreamBatch(shards int) { n.streamBatch = shards }
