package ask

import (
	"context"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/node/model"
)

// planner determines what a question needs.
type planner struct {
	models *models
	gate   *account.Gate
}

// plan is a question with all that is needed to answer it.
type plan struct {
	q      Question
	asker  catalog.Viewer
	viewer catalog.Viewer
	names  []string // names of the repositories
	model  string   // the model's name at its provider
	name   string   // provider/model
	client *model.Client
	// sight is Report.Sight.
	sight []byte
}

// plan determines the model and the repositories of a question. The model's client lives until
// ctx ends.
func (p *planner) plan(ctx context.Context, v catalog.Viewer, q Question) (*plan, error) {
	m, err := p.models.chooseModel(v, q.Model)
	if err != nil {
		return nil, err
	}

	out := &plan{q: q, asker: v, model: m.Model}
	if out.viewer, out.names, err = p.restrictToRepos(v, q.Repos); err != nil {
		return nil, err
	}

	// Store what the asker can see now. It decides later who may see the steps of the answer.
	visible, err := p.gate.Repos(out.viewer)
	if err != nil {
		return nil, err
	}
	if out.sight, err = visible.Set.ToBytes(); err != nil {
		return nil, err
	}

	// Report missing credentials of the model now, before the turn begins.
	if out.client, err = p.models.clients.Open(ctx, m); err != nil {
		return nil, call.Fail(call.ErrUnavailable, "%v", err)
	}

	out.name = out.client.Name()
	out.q.Model = ModelName{string(m.Provider), m.Model}
	return out, nil
}

// restrictToRepos restricts the asker to the repositories of the question. For the tools of this turn no
// others exist, whatever the model writes.
func (p *planner) restrictToRepos(v catalog.Viewer, repos []string) (catalog.Viewer, []string, error) {
	if len(repos) == 0 {
		return v, nil, nil
	}

	// Resolve the names as the asker: a repository that the asker may not see does not exist.
	visible, err := p.gate.Repos(v)
	if err != nil {
		return v, nil, err
	}

	// Store ids, because names may change while the question is answered.
	only := roaring.New()
	var names []string
	for _, name := range repos {
		repo, err := visible.ByEnding(name)
		if err != nil {
			return v, nil, err
		}
		only.Add(repo.ID)
		names = append(names, repo.Name)
	}

	v.Only = only // enforced below the model
	return v, names, nil
}
