package configure

import (
	"context"
	"time"

	"github.com/shoalsearch/shoal/cluster"
	"github.com/shoalsearch/shoal/cluster/config"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/call"
)

// ConfigurationResponse is the configuration in force, and the files that the
// nodes have. Its lists hold paths of properties, never their values.
type ConfigurationResponse struct {
	Hash        string    `json:"hash"`        // "" where there is none
	At          time.Time `json:"at,omitzero"` // when it came into force
	By          string    `json:"by"`          // the node that proposed it
	Connections int       `json:"connections"`
	Contexts    int       `json:"contexts"`
	Problem     string    `json:"problem"` // why this version cannot read it; "" when it can
	Warnings    []string  `json:"warnings"`
	config.Effects
	Files  []NodeFile `json:"files"`  // of the nodes that answered, by node
	Silent []string   `json:"silent"` // nodes that did not answer at once
}

// NodeFile is the configuration file of a node.
type NodeFile struct {
	Node    string `json:"node"`
	Address string `json:"address"`
	FileStatus
}

// Configuration says which configuration counts, what it does, and whose file
// is another one.
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

// answerTime is how long other nodes have to tell of their files.
const answerTime = 300 * time.Millisecond

// fileCall asks a node for the state of its configuration file.
var fileCall = call.To[call.Nothing, FileStatus]("config-file")

// NodeFiles asks the nodes that are alive for the state of their configuration
// files; one that does not answer at once is left out.
func (c *Configurer) NodeFiles(ctx context.Context) map[string]*FileStatus {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	var nothing call.Nothing
	return fileCall.AskAll(ctx, c.d.Net, cluster.AliveIDs(c.d.Members()), &nothing)
}

// serveFile tells another node of the file here.
func (c *Configurer) serveFile(context.Context, *call.Nothing) (*FileStatus, error) {
	s := c.d.File.State()
	return &s, nil
}
