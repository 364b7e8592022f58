package node

import (
	"context"
	"time"

	"github.com/shoalsearch/shoal/clock"
	"github.com/shoalsearch/shoal/cluster/catalog"
)

// permissionVariables turn permission sync on or off. The first one set decides.
var permissionVariables = []string{"PERMISSION_SYNC_ENABLED", "EXPERIMENT_EE_PERMISSION_SYNC_ENABLED"}

// proposePermissionSync proposes this node's wish for permission sync whenever it changes. The catalog
// decides for all nodes, so that all hide the same repositories.
func (n *Node) proposePermissionSync(ctx context.Context) error {
	wanted, read := catalog.PermissionSyncUnset, (*catalog.Config)(nil)
	for {
		changed := n.cluster.Changed()
		view := n.cluster.View()

		// The configuration may set the variables too: read them again when it changes.
		if view.Config() != read {
			wanted, read = n.wantedPermissionSync(), view.Config()
		}

		self := view.Member(n.cluster.Self())

		// A node that is no member, or not any more, has no say.
		if self != nil && self.State != catalog.MemberRemoved && self.Permissions != wanted {
			_, err := n.cluster.Propose(ctx, &catalog.SayPermissionSync{Node: self.ID, Permissions: wanted})
			if err != nil {
				// There may be no leader now: try again.
				if !clock.Wait(ctx, time.Second) {
					return nil
				}
				continue
			}
			n.opt.Log.Info("permissions of code hosts", "sync", wanted.String())
		}

		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		}
	}
}

// wantedPermissionSync returns whether the environment or the configuration asks for permission
// sync.
func (n *Node) wantedPermissionSync() catalog.PermissionSync {
	for _, name := range permissionVariables {
		// The first variable that is set decides, even if it says no.
		if on, set := n.env.Flag(name); set && on {
			return catalog.PermissionSyncOn
		} else if set {
			return catalog.PermissionSyncOff
		}
	}
	return catalog.PermissionSyncUnset
}
