package call

import "context"

// AskAll calls a method on several nodes at once, and gives their answers by
// node. One that fails, or does not answer before ctx ends, is left out.
func (m Method[Req, Resp]) AskAll(ctx context.Context, net Network, nodes []string, req *Req) map[string]*Resp {
	type answer struct {
		node string
		resp *Resp
	}

	// Those that fail say so too, so that nobody waits for them.
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

	// Every goroutine sends once, so none is left when all have been heard.
	all := map[string]*Resp{}
	for range nodes {
		if a := <-answers; a.resp != nil {
			all[a.node] = a.resp
		}
	}
	return all
}
