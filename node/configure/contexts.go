package configure

import (
	"context"

	"github.com/shoalsearch/shoal/cluster/catalog"
)

// ContextInfo is a search context.
type ContextInfo struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Repos       int    `json:"repos"` // that the viewer may see
}

// Contexts lists the search contexts of the configuration. Where permissions
// are enforced, one of which a viewer may see no repository is left out: its
// name and description may tell of them.
func (c *Configurer) Contexts(_ context.Context, v catalog.Viewer) ([]ContextInfo, error) {
	seen, err := c.d.Gate.Repos(v)
	if err != nil {
		return nil, err
	}

	out := []ContextInfo{}
	for _, one := range seen.View.File().Contexts {
		set, ok := seen.View.Context(one.Name)
		if !ok {
			continue
		}

		// Counted are those that the viewer may see: the others do not exist for them.
		visible := int(set.AndCardinality(seen.Set))
		if visible == 0 && v.Role != catalog.RoleOwner && seen.View.Enforces() {
			continue
		}
		out = append(out, ContextInfo{Name: one.Name, Description: one.Description, Repos: visible})
	}
	return out, nil
}
