package node

import (
	"context"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/cluster/config"
	"github.com/shoalsearch/shoal/node/account"
)

// ConfigurationResponse is the configuration in force, and the files that the
// nodes have. Its lists hold paths of properties, never their values.
type ConfigurationResponse struct {
	Hash        string    // "" where there is none
	At          time.Time // when it came into force
	By          string    // the node that proposed it
	Connections int
	Contexts    int
	Problem     string // why this version cannot read it; "" when it can
	Warnings    []string
	Effects     config.Effects
	Files       []NodeFile // of the nodes that answered, by node
	Silent      []string   // nodes that did not answer at once
}

// NodeFile is the configuration file of a node.
type NodeFile struct {
	Node    string
	Address string
	ConfigStatus
}

// Configuration says which configuration counts, what it does, and whose file
// is another one.
func (n *Node) Configuration(ctx context.Context, _ account.Owner) (*ConfigurationResponse, error) {
	view := n.cluster.View()
	force, file := view.Config(), view.File()
	out := &ConfigurationResponse{
		Hash: force.Hash, At: force.At, By: force.By, Connections: len(file.Connections), Contexts: len(file.Contexts),
	}
	for _, w := range file.Warnings {
		out.Warnings = append(out.Warnings, w.Error())
	}

	// The three lists are of the bytes, which may be sealed under a key that is gone.
	text, err := view.FileText()
	if err == nil {
		err = view.FileError()
	}
	switch {
	case err != nil:
		out.Problem = "This version cannot read the configuration in force: its key is missing, or it was written for another version."
	case len(text) > 0:
		out.Effects = config.Explain(text, file)
	}

	files := n.files(ctx)
	for _, m := range n.cluster.Members() {
		if f := files[m.ID]; f != nil {
			out.Files = append(out.Files, NodeFile{m.ID, m.Addr, *f})
		} else {
			out.Silent = append(out.Silent, m.ID)
		}
	}
	return out, nil
}

// ContextInfo is a search context.
type ContextInfo struct {
	Name        string
	Description string
	Repos       int // that the viewer may see
}

// Contexts lists the search contexts of the configuration. Where permissions
// are enforced, one of which a viewer may see no repository is left out: its
// name and description may tell of them.
func (n *Node) Contexts(_ context.Context, v catalog.Viewer) ([]ContextInfo, error) {
	seen, err := n.gate.Repos(v)
	if err != nil {
		return nil, err
	}

	out := []ContextInfo{}
	for _, c := range seen.View.File().Contexts {
		set, ok := seen.View.Context(c.Name)
		if !ok {
			continue
		}
		visible := int(set.AndCardinality(seen.Set))
		if visible == 0 && v.Role != catalog.RoleOwner && seen.View.Enforces() {
			continue
		}
		out = append(out, ContextInfo{Name: c.Name, Description: c.Description, Repos: visible})
	}
	return out, nil
}
