package ask

import (
	"context"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/node/model"
)

// planner finds out what a question needs to be answered.
type planner struct {
	models *models
	gate   *account.Gate
}

// plan is a question with what it needs to be answered.
type plan struct {
	q      Question
	asker  catalog.Viewer
	viewer catalog.Viewer
	names  []string // of the repositories
	model  string   // its name at its provider
	name   string   // provider/model
	client *model.Client
	sight  []byte
}

// plan finds the model and the repositories of a question. The client of the model
// lives until ctx ends.
func (p *planner) plan(ctx context.Context, v catalog.Viewer, q Question) (*plan, error) {
	m, err := p.models.chosen(v, q.Model)
	if err != nil {
		return nil, err
	}

	out := &plan{q: q, asker: v, model: m.Model}
	if out.viewer, out.names, err = p.narrowed(v, q.Repos); err != nil {
		return nil, err
	}

	// What the asker can see now decides later who may see how the answer was found.
	seen, err := p.gate.Repos(out.viewer)
	if err != nil {
		return nil, err
	}
	if out.sight, err = seen.Set.ToBytes(); err != nil {
		return nil, err
	}

	// Where this node lacks what calling the model needs, that is said now.
	if out.client, err = p.models.clients.Open(ctx, m); err != nil {
		return nil, call.Fail(call.ErrUnavailable, "%v", err)
	}

	out.name = out.client.Name()
	out.q.Model = ModelName{string(m.Provider), m.Model}
	return out, nil
}

// narrowed is the asker, bound to the repositories of the question: outside of
// them nothing exists, whatever the model writes.
func (p *planner) narrowed(v catalog.Viewer, repos []string) (catalog.Viewer, []string, error) {
	if len(repos) == 0 {
		return v, nil, nil
	}

	// As the asker: a repository that he does not see cannot be named, and is told of as one that
	// is not there.
	seen, err := p.gate.Repos(v)
	if err != nil {
		return v, nil, err
	}

	// By numbers, since names may change while the question is answered.
	only := roaring.New()
	var names []string
	for _, name := range repos {
		repo, err := seen.ByEnding(name)
		if err != nil {
			return v, nil, err
		}
		only.Add(repo.ID)
		names = append(names, repo.Name)
	}

	v.Only = only // below the model: nothing it writes reaches further
	return v, names, nil
}
