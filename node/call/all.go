package call

import "context"

// AskAll calls a method on several nodes at once. It returns the answers by node, without those
// of nodes that fail or do not answer before ctx ends.
func (m Method[Req, Resp]) AskAll(ctx context.Context, net Network, nodes []string, req *Req) map[string]*Resp {
	type answer struct {
		node string
		resp *Resp
	}

	// Goroutines that fail send too, so that the loop below gets one message for each node.
	answers := make(chan answer)
	for _, node := range nodes {
		go func() {
			resp, err := m.Ask(ctx, net, node, req)
			if err != nil {
				resp = nil
			}
			answers <- answer{node, resp}
		}()
	}

	all := map[string]*Resp{}
	for range nodes {
		if a := <-answers; a.resp != nil {
			all[a.node] = a.resp
		}
	}
	return all
}
