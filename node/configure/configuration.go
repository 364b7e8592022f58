package configure

import (
	"context"
	"time"

	"github.com/shoalsearch/shoal/cluster"
	"github.com/shoalsearch/shoal/cluster/config"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/call"
)

// ConfigurationResponse describes the configuration in force and the nodes' files. It has paths of
// properties but never their values.
type ConfigurationResponse struct {
	Hash        string    `json:"hash"`        // "": no configuration
	At          time.Time `json:"at,omitzero"` // when it came into force
	By          string    `json:"by"`          // node that proposed it
	Connections int       `json:"connections"`
	Contexts    int       `json:"contexts"`
	Problem     string    `json:"problem"` // why this version cannot read it; "": it can
	Warnings    []string  `json:"warnings"`
	config.Effects
	Files  []NodeFile `json:"files"`  // by node, of the nodes that answered
	Silent []string   `json:"silent"` // nodes that did not answer in time
}

// NodeFile is the configuration file of a node.
type NodeFile struct {
	Node    string `json:"node"`
	Address string `json:"address"`
	FileStatus
}

// Configuration describes the configuration in force, what its properties do, and which nodes have
// another file.
func (c *Configurer) Configuration(ctx context.Context, _ account.Owner) (*ConfigurationResponse, error) {
	view := c.d.Catalog.View()
	force, file := view.Config(), view.File()
	out := &ConfigurationResponse{
		Hash:        force.Hash,
		At:          force.At,
		By:          force.By,
		Connections: len(file.Connections),
		Contexts:    len(file.Contexts),
	}
	for _, w := range file.Warnings {
		out.Warnings = append(out.Warnings, w.Error())
	}

	// The effects need the text, which cannot be read if its key is lost.
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

	files := c.NodeFiles(ctx)
	for _, m := range c.d.Members() {
		if f := files[m.ID]; f != nil {
			out.Files = append(out.Files, NodeFile{m.ID, m.Addr, *f})
		} else {
			out.Silent = append(out.Silent, m.ID)
		}
	}
	return out, nil
}

// answerTimeout limits the wait for other nodes.
const answerTimeout = 300 * time.Millisecond

// fileCall asks a node for the state of its configuration file.
var fileCall = call.To[call.Nothing, FileStatus]("config-file")

// NodeFiles returns the state of the configuration files of reachable nodes. Nodes that do not
// answer in time are left out.
func (c *Configurer) NodeFiles(ctx context.Context) map[string]*FileStatus {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	var nothing call.Nothing
	return fileCall.AskAll(ctx, c.d.Net, cluster.AliveIDs(c.d.Members()), &nothing)
}

// serveFile returns the state of this node's file.
func (c *Configurer) serveFile(context.Context, *call.Nothing) (*FileStatus, error) {
	s := c.d.File.State()
	return &s, nil
}
