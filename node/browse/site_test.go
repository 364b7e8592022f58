package browse

import (
	"context"
	"errors"
	"testing"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/cluster/clustertest"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/shard/git"
)

// agreed is a catalog that all nodes have.
type agreed struct{ view *catalog.View }

func (a agreed) View() *catalog.View                 { return a.view }
func (a agreed) Await(context.Context, uint64) error { return nil }

// untouched has every mirror, and none may be opened.
type untouched struct{ t *testing.T }

func (untouched) Has(catalog.RepoID) bool { return true }

func (u untouched) Get(id catalog.RepoID) *git.Mirror {
	u.t.Errorf("the mirror of %d was opened", id)
	return nil
}

// A node that has the mirror reads nothing for a viewer who may not see the
// repository by its own catalog, whichever node asks.
func TestAHolderOfAMirrorLooksForItself(t *testing.T) {
	t.Parallel()
	w := clustertest.New(t, `{"connections": {"c": {"type": "git", "url": "file:///srv/*", "enforcePermissions": true}}}`, 1)
	w.Do(&catalog.EnqueueJob{Kind: catalog.JobSync, Subject: "c", Urgent: true})
	w.Do(&catalog.GrantJob{Kind: catalog.JobSync, Subject: "c", Node: "n1", Epoch: clustertest.Epoch})
	w.Do(&catalog.SyncPage{Connection: "c", Fence: w.View().Job(catalog.JobSync, "c").Fence, Repos: []catalog.ListedRepo{{Name: "secret"}}})
	secret := w.View().RepoByName("secret").ID

	b := &Browser{d: Deps{Gate: account.NewGate(agreed{w.View()}), Mirrors: untouched{t}, Reads: call.NewLane("reads", 1, 1)}}
	for who, want := range map[*catalog.Viewer]error{
		{Role: catalog.RoleGuest}:  call.ErrRepoNotFound,
		{Role: catalog.RoleMember}: call.ErrRepoNotFound,
		{}:                         call.ErrUnavailable,
	} {
		_, err := readHere(t.Context(), b, branchesOperation(), &readAt[RefsRequest]{Pass: account.Pass{Viewer: *who, Index: w.View().Index()}, Repo: secret})
		if !errors.Is(err, want) {
			t.Errorf("%s gets %v, want %v", who.Role, err, want)
		}
	}
}
