package configure

import (
	"context"
	"path/filepath"
	"strings"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/cluster/config"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/call"
)

// ApplyConfigRequest asks to make a file the cluster's configuration, regardless of the nodes'
// files. For owners only.
type ApplyConfigRequest struct {
	Text   []byte
	Accept bool // apply it even if it removes most repositories
}

// ApplyConfigResponse describes the configuration now in force.
type ApplyConfigResponse struct {
	Hash        string   `json:"hash"`
	Connections int      `json:"connections"`
	Changed     bool     `json:"changed"` // it was not in force before
	Warnings    []string `json:"warnings"`
}

// ApplyConfig makes a file the cluster's configuration. If the file is invalid, the error lists
// every mistake on its own line.
func (c *Configurer) ApplyConfig(ctx context.Context, by account.Owner, req ApplyConfigRequest) (*ApplyConfigResponse, error) {
	file, err := config.Parse(req.Text)
	if err != nil {
		return nil, call.Fail(call.ErrInvalid, "%s", strings.Join(mistakes(err), "\n"))
	}

	out := &ApplyConfigResponse{Hash: file.Hash(), Connections: len(file.Connections), Changed: true}
	for _, w := range file.Warnings {
		out.Warnings = append(out.Warnings, w.Error())
	}

	// Catch up first: the file may be in force already.
	if _, err := c.d.Catalog.Sync(ctx); err != nil {
		return nil, call.WriteError(err)
	}
	if c.d.Catalog.View().Config().Hash == out.Hash {
		out.Changed = false
		return out, nil
	}

	if refused := c.forbiddenReferences(by, req.Text, file); len(refused) > 0 {
		return nil, call.Fail(call.ErrForbidden, "%s", strings.Join(mistakes(refused), "\n"))
	}

	set := catalog.NewSetConfig(req.Text, file).Following(c.d.Catalog.View())
	set.Careful = !req.Accept
	if _, err := c.d.Catalog.Propose(ctx, set); err != nil {
		if refused, ok := catalog.Refused(err); ok && refused.Code == catalog.Held {
			return nil, call.Fail(call.ErrHeld, "%s", refused.Reason)
		}
		return nil, call.WriteError(err)
	}
	c.d.Log.Info("configuration applied", "by", by.Name(), "hash", out.Hash[:12], "connections", out.Connections)
	return out, nil
}

// forbiddenReferences returns what a file uses that may not come over the network. An owner is not the operator,
// who knows what else the nodes' environment contains.
func (c *Configurer) forbiddenReferences(by account.Owner, text []byte, file *config.File) config.Errors {
	if by.Operator() {
		return nil
	}

	// The file in force came from the operator, or was allowed before.
	own := c.d.File.outsideReferences()
	view := c.d.Catalog.View()
	if force, err := view.FileText(); err == nil && view.FileError() == nil {
		own = append(own, config.Reaches(force, view.File())...)
	}
	return c.d.Allowed.Refuse(config.Reaches(text, file), own, realPath)
}

// realPath resolves the symbolic links of a path. The end of the path need not exist.
func realPath(path string) string {
	real, err := filepath.EvalSymlinks(path)
	if err == nil || path == filepath.Dir(path) {
		return real
	}
	return filepath.Join(realPath(filepath.Dir(path)), filepath.Base(path))
}

// ReloadConfig checks this node's configuration file at once.
func (c *Configurer) ReloadConfig() { c.d.File.Reload() }
