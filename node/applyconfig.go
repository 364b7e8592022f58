package node

import (
	"context"
	"fmt"
	"strings"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/cluster/config"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/call"
)

// ApplyConfigRequest asks to make a file the configuration of the cluster,
// whatever files the nodes have. Owners only.
type ApplyConfigRequest struct {
	Text   []byte
	Accept bool // also when it lets go of most repositories
}

// ApplyConfigResponse says what is in force now.
type ApplyConfigResponse struct {
	Hash        string
	Connections int
	Warnings    []string
	Changed     bool // it was not in force before
}

// ApplyConfig makes a file the configuration of the cluster. All mistakes of
// a bad one are in the error, a line each.
func (n *Node) ApplyConfig(ctx context.Context, by account.Owner, req ApplyConfigRequest) (*ApplyConfigResponse, error) {
	file, err := config.Parse(req.Text)
	if err != nil {
		return nil, call.Fail(call.ErrInvalid, "%s", strings.Join(configErrors(err), "\n"))
	}

	out := &ApplyConfigResponse{Hash: file.Hash(), Connections: len(file.Connections), Changed: true}
	for _, w := range file.Warnings {
		out.Warnings = append(out.Warnings, w.Error())
	}
	if _, err := n.cluster.Sync(ctx); err != nil {
		return nil, call.WriteError(err)
	}
	if n.cluster.View().Config().Hash == out.Hash {
		out.Changed = false
		return out, nil
	}

	set := catalog.NewSetConfig(req.Text, file)
	set.Careful = !req.Accept
	if _, err := n.cluster.Propose(ctx, set); err != nil {
		if no, ok := catalog.Refused(err); ok && no.Code == catalog.Held {
			return nil, call.Fail(call.ErrHeld, "%s", no.Reason)
		}
		return nil, call.WriteError(err)
	}
	n.opt.Log.Info("configuration applied", "by", by.Name(), "hash", out.Hash[:12], "connections", out.Connections)
	return out, nil
}

// ReloadConfig looks at the configuration file at once.
func (n *Node) ReloadConfig() { n.config.reload() }

// files asks the nodes that are alive for the state of their configuration
// files; one that does not answer at once is left out.
func (n *Node) files(ctx context.Context) map[string]*ConfigStatus {
	ctx, cancel := context.WithTimeout(ctx, progressTime)
	defer cancel()
	type answer struct {
		node string
		file *ConfigStatus
	}
	answers := make(chan answer)
	asked := 0
	for _, m := range n.cluster.Members() {
		if !m.Alive {
			continue
		}
		asked++
		go func() {
			var nothing call.Nothing
			file, err := configCall.Ask(ctx, n.cluster, m.ID, &nothing)
			if err != nil {
				file = nil
			}
			answers <- answer{m.ID, file}
		}()
	}

	all := map[string]*ConfigStatus{}
	for range asked {
		if a := <-answers; a.file != nil {
			all[a.node] = a.file
		}
	}
	return all
}

// serveConfig tells another node of the file here.
func (n *Node) serveConfig(context.Context, *call.Nothing) (*ConfigStatus, error) {
	s := n.config.state()
	return &s, nil
}

// noteFiles tells of the files that the nodes have.
func (out *StatusResponse) noteFiles(files map[string]*ConfigStatus) {
	for i := range out.Members {
		m := &out.Members[i]
		f := files[m.ID]
		if f == nil {
			continue
		}
		m.ConfigHash, m.ConfigDiffers = f.FileHash, f.Differs
		switch {
		case len(f.Errors) > 0:
			out.Warnings = append(out.Warnings, fmt.Sprintf("node %s refuses its configuration file %s: %s", m.ID, f.Path, strings.Join(f.Errors, " ")))
		case f.Differs:
			out.Warnings = append(out.Warnings, fmt.Sprintf(
				"node %s has a configuration file that is not in force: %s, hash %.12s; in force is %.12s. Change the file, or run shoal config apply", m.ID, f.Path, f.FileHash, f.Hash))
		}
	}
}
