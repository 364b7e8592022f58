package catalog

import (
	"iter"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/shoalsearch/shoal/cluster/config"
)

// View is the catalog at one index. It is immutable, safe for concurrent
// use, and may be kept. What its methods return is read-only.
type View struct{ s *State }

// Viewer is who asks.
type Viewer struct {
	KeyID   string // of the API key; empty for an anonymous viewer
	Account string // empty when none
	Role    Role   // 0 for an anonymous viewer
}

// Index is that of the last entry applied.
func (v *View) Index() uint64 { return 0 }

// Time is the clock of the catalog: the newest time of any entry.
func (v *View) Time() time.Time { return time.Time{} }

// ClusterID is empty before the cluster is formed.
func (v *View) ClusterID() string { return "" }

// Config is the configuration in force; its Index is 0 when there is none.
func (v *View) Config() *Config { return nil }

// File is the parsed configuration. It is never nil.
func (v *View) File() *config.File { return nil }

// Connection returns nil when there is none of that name.
func (v *View) Connection(name string) *Connection { return nil }

// Connections goes through them by name.
func (v *View) Connections() iter.Seq[*Connection] { return nil }

// Repo returns nil when there is none of that number.
func (v *View) Repo(id RepoID) *Repo { return nil }

// RepoByName returns nil when there is none of that name.
func (v *View) RepoByName(name string) *Repo { return nil }

// Repos goes through all repositories by number, orphaned ones too.
func (v *View) Repos() iter.Seq[*Repo] { return nil }

// ReposByName goes through them by name.
func (v *View) ReposByName() iter.Seq[*Repo] { return nil }

// RepoCount is how many repositories there are.
func (v *View) RepoCount() int { return 0 }

// Job returns nil when there is none.
func (v *View) Job(kind JobKind, subject string) *Job { return nil }

// Jobs goes through all by kind and subject.
func (v *View) Jobs() iter.Seq[*Job] { return nil }

// JobsOf goes through the jobs in one of the states, by kind and subject, at
// the cost of those only. Without states it is Jobs.
func (v *View) JobsOf(states ...JobState) iter.Seq[*Job] { return nil }

// KeyByHash finds an API key by the HMAC of its text, or returns nil.
// Whether it has expired is the caller's to see.
func (v *View) KeyByHash(hash []byte) *Key { return nil }

// Keys goes through them by id.
func (v *View) Keys() iter.Seq[*Key] { return nil }

// Member returns nil when there is none of that id.
func (v *View) Member(id string) *Member { return nil }

// MemberNumber returns nil when there is none of that number.
func (v *View) MemberNumber(n uint32) *Member { return nil }

// Members goes through them by id, removed ones too.
func (v *View) Members() iter.Seq[*Member] { return nil }

// Group returns nil when the group was never placed.
func (v *View) Group(number uint32) *Group { return nil }

// Groups goes through them by number.
func (v *View) Groups() iter.Seq[*Group] { return nil }

// Holders are the ids of the members that confirmed the file or mirror of a
// key (ShardKey, MirrorKey) and are not removed, sorted by number.
func (v *View) Holders(key string) []string { return nil }

// Holdings goes through what is held, by key.
func (v *View) Holdings() iter.Seq[*Holding] { return nil }

// Secret returns nil when there is none of that name.
func (v *View) Secret(name string) *Secret { return nil }

// Visible is the set of repositories that a viewer may know of: not orphaned
// and permitted. The set is shared: clone it before changing it.
func (v *View) Visible(w Viewer) *roaring.Bitmap { return nil }

// Context is the set of repositories of a search context, whoever asks, and
// false when there is no such context. The set is shared.
func (v *View) Context(name string) (*roaring.Bitmap, bool) { return nil, false }

// Hash is the state hash: equal on all nodes at an equal index.
func (v *View) Hash() uint64 { return 0 }
