package operate

import (
	"context"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/glob"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/call"
)

// Past sets for owners which repositories have their commits indexed.
type Past struct{ cluster Cluster }

// HistoryRule is a rule: of the rules that fit a name, the first of a list decides.
type HistoryRule struct {
	Glob    string `json:"glob"`
	Include bool   `json:"include"`
}

// HistoryRequest sets a rule, or removes it.
type HistoryRequest struct {
	Glob            string
	Include, Remove bool
}

// HistoryResponse is the rules in force, the newest first.
type HistoryResponse struct {
	Rules []HistoryRule `json:"rules"`
}

// HistoryRules returns the rules.
func (p *Past) HistoryRules(_ context.Context, _ account.Owner) (*HistoryResponse, error) {
	out := &HistoryResponse{Rules: []HistoryRule{}}
	for _, r := range p.cluster.View().HistoryRulesInOrder() {
		out.Rules = append(out.Rules, HistoryRule{r.Glob, r.Include})
	}
	return out, nil
}

// SetHistory sets a rule, or removes it, and returns the rules in force.
func (p *Past) SetHistory(ctx context.Context, by account.Owner, req HistoryRequest) (*HistoryResponse, error) {
	if err := glob.Check(req.Glob); err != nil {
		return nil, call.Fail(call.ErrInvalid, "the glob %q is malformed: %v", req.Glob, err)
	}
	_, err := p.cluster.Propose(ctx, &catalog.SetHistory{Glob: req.Glob, Include: req.Include, Remove: req.Remove})
	if no, ok := catalog.Refused(err); ok && no.Code == catalog.NotFound {
		return nil, call.Fail(call.ErrNotFound, "No rule has the glob %q.", req.Glob)
	} else if ok {
		return nil, call.Fail(call.ErrInvalid, "%s", no.Reason)
	}
	if err != nil {
		return nil, call.WriteError(err)
	}
	return p.HistoryRules(ctx, by)
}
