package api

import (
	"context"

	"github.com/shoalsearch/shoal/cluster"
	"github.com/shoalsearch/shoal/node"
	"github.com/shoalsearch/shoal/node/account"
)

// agreement is what the route of raft needs.
type agreement interface {
	Raft(context.Context, account.Owner) (*node.RaftResponse, error)
}

// raftRoutes are the routes of how nodes agree.
type raftRoutes struct{ agreement agreement }

func (a *raftRoutes) rows() []route {
	return []route{
		row("GET", "/api/raft", accessOwner, quickTimeout, owners(a.get)),
	}
}

type raftJSON struct {
	Node    string           `json:"node"`
	Leader  string           `json:"leader"`
	Term    uint64           `json:"term"`
	Voters  int              `json:"voters"`
	Quorum  int              `json:"quorum"`
	Members []raftMemberJSON `json:"members"`
}

type raftMemberJSON struct {
	ID      string         `json:"id"`
	Address string         `json:"address,omitempty"`
	Role    string         `json:"role"`
	Health  string         `json:"health"`
	Raft    *raftStateJSON `json:"raft,omitzero"`
}

type raftStateJSON struct {
	State    string `json:"state"`
	Leader   string `json:"leader"`
	Term     uint64 `json:"term"`
	Contact  *int64 `json:"lastContactMs,omitzero"`
	Last     uint64 `json:"lastIndex"`
	Commit   uint64 `json:"commitIndex"`
	Applied  uint64 `json:"appliedIndex"`
	Snapshot uint64 `json:"snapshotIndex"`
}

// raftStateOf is nil for nil: what a node did not tell is not 0.
func raftStateOf(s *cluster.RaftState) *raftStateJSON {
	if s == nil {
		return nil
	}

	out := &raftStateJSON{s.State, s.Leader, s.Term, nil, s.Last, s.Commit, s.Applied, s.Snapshot}
	if s.Heard {
		ms := s.Contact.Milliseconds()
		out.Contact = &ms
	}
	return out
}

// get is GET /api/raft.
func (a *raftRoutes) get(ctx context.Context, c *call, by account.Owner) error {
	r, err := a.agreement.Raft(ctx, by)
	if err != nil {
		return err
	}

	out := raftJSON{r.Node, r.Leader, r.Term, r.Voters, r.Quorum, make([]raftMemberJSON, len(r.Members))}
	for i, m := range r.Members {
		out.Members[i] = raftMemberJSON{m.ID, m.Address, m.Role, m.Health, raftStateOf(m.Raft)}
	}
	return c.json(out)
}
