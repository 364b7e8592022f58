package node

import (
	"context"
	"time"

	"github.com/shoalsearch/shoal/clock"
	"github.com/shoalsearch/shoal/cluster/catalog"
)

// permissionVariables ask for permission sync, the first that is set.
var permissionVariables = []string{"PERMISSION_SYNC_ENABLED", "EXPERIMENT_EE_PERMISSION_SYNC_ENABLED"}

// sayPermissions tells the cluster what this node was told of permissions,
// whenever that changes: what holds is agreed on, so that all nodes hide the
// same.
func (n *Node) sayPermissions(ctx context.Context) error {
	wanted, read := catalog.PermissionSyncUnset, (*catalog.Config)(nil)
	for {
		changed := n.cluster.Changed()
		view := n.cluster.View()

		// The configuration may set the variables too: they are read again when another one comes into force.
		if view.Config() != read {
			wanted, read = n.toldOfPermissions(), view.Config()
		}

		self := view.Member(n.cluster.Self())

		// Not a member yet, or no more, it has nobody to say it of.
		if self != nil && self.State != catalog.MemberRemoved && self.Permissions != wanted {
			_, err := n.cluster.Propose(ctx, &catalog.SayPermissionSync{Node: self.ID, Permissions: wanted})
			if err != nil {
				// There may be no leader now: the same is said again.
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

// toldOfPermissions is what the environment and the file say.
func (n *Node) toldOfPermissions() catalog.PermissionSync {
	for _, name := range permissionVariables {
		// The first that is set decides, also where it says no.
		if on, set := n.env.Flag(name); set && on {
			return catalog.PermissionSyncOn
		} else if set {
			return catalog.PermissionSyncOff
		}
	}
	return catalog.PermissionSyncUnset
}
