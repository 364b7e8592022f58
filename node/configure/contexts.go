package configure

import (
	"context"

	"github.com/shoalsearch/shoal/cluster/catalog"
)

// ContextInfo is a search context.
type ContextInfo struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Repos       int    `json:"repos"` // repositories that the viewer may see
}

// Contexts returns the search contexts of the configuration. If permissions are enforced, it leaves
// out contexts without visible repositories, because their names and descriptions may describe
// hidden ones.
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

		// Count only visible repositories.
		visible := int(set.AndCardinality(seen.Set))
		if visible == 0 && v.Role != catalog.RoleOwner && seen.View.Enforces() {
			continue
		}
		out = append(out, ContextInfo{Name: one.Name, Description: one.Description, Repos: visible})
	}
	return out, nil
}
