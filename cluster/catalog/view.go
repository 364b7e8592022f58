package catalog

import (
	"cmp"
	"errors"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog/tree"
	"github.com/shoalsearch/shoal/cluster/config"
)

// View is the catalog at one index. It is immutable, safe for concurrent
// use, and may be kept. What its methods return is read-only.
type View struct {
	tables
	sets *sets
}

// parsed is a configuration that is parsed when it is first asked for.
type parsed struct {
	raw    []byte
	unseal Unsealer
	once   sync.Once
	file   *config.File
	hosts  []providerHost // of its identity providers
	err    error
}

// providerHost is the code host whose people an identity provider knows.
type providerHost struct{ site, address string }

// text is the file that the bytes are of.
func (p *parsed) text() ([]byte, error) {
	box, sealed := sealedBox(p.raw)
	switch {
	case !sealed:
		return p.raw, nil
	case p.unseal == nil:
		return nil, errors.New("the configuration is sealed, and there is no key here")
	}
	return p.unseal(box)
}

// Index is that of the last entry applied.
func (v *View) Index() uint64 { return v.meta.Index }

// Time is the clock of the catalog: the newest time of any entry.
func (v *View) Time() time.Time { return v.meta.Clock }

// ClusterID is empty before the cluster is formed.
func (v *View) ClusterID() string { return v.meta.ClusterID }

// Former are the ids of the clusters that this one was made of when it was
// recovered or restored, the newest last.
func (v *View) Former() []string { return v.meta.Former }

// Config is the configuration in force; its Index is 0 when there is none.
func (v *View) Config() *Config { return v.config }

// File is the parsed configuration. It is never nil: without a
// configuration, or with one that this version cannot read, it is an empty
// one, and FileError says why.
func (v *View) File() *config.File {
	p := v.parsed
	p.once.Do(func() {
		text, err := p.text()
		if p.err = err; len(text) > 0 {
			p.file, p.err = config.Parse(text)
		}
		if p.file == nil || p.err != nil {
			p.file, _ = config.Parse([]byte("{}"))
		}
		p.hosts = hostsOf(p.file)
	})
	return p.file
}

// hosts are the code hosts of the identity providers of the configuration. They
// are asked for once for each person, which is too often to read addresses.
func (v *View) hosts() []providerHost {
	v.File()
	return v.parsed.hosts
}

// hostsOf leaves out the providers that are no code host.
func hostsOf(file *config.File) (all []providerHost) {
	for i := range file.IdentityProviders {
		if site, address := SiteOfProvider(&file.IdentityProviders[i]); site != "" {
			all = append(all, providerHost{site, address})
		}
	}
	return all
}

// FileText is the bytes of the configuration in force, with the secrets that
// were written into it. It fails where the key to them is missing.
func (v *View) FileText() ([]byte, error) { return v.parsed.text() }

// FileError says why this version cannot read the configuration in force.
func (v *View) FileError() error {
	v.File()
	return v.parsed.err
}

// lookup returns the record of a table that an index leads to; nil where it leads to none.
func lookup[I, K cmp.Ordered, T any](index *tree.Tree[I, K], at I, table *tree.Table[K, T]) *T {
	key, ok := index.Get(at)
	if !ok {
		return nil
	}
	return table.Get(key)
}

// Connection returns nil when there is none of that name.
func (v *View) Connection(name string) *Connection { return v.connections.Get(name) }

// Connections goes through them by name.
func (v *View) Connections() iter.Seq[*Connection] { return v.connections.Records() }

// Repo returns nil when there is none of that number.
func (v *View) Repo(id RepoID) *Repo { return v.repos.Get(id) }

// RepoByName returns nil when there is none of that name.
func (v *View) RepoByName(name string) *Repo { return lookup(&v.names, name, &v.repos) }

// Repos goes through all repositories by number, orphaned ones too.
func (v *View) Repos() iter.Seq[*Repo] { return v.repos.Records() }

// ReposByName goes through them by name.
func (v *View) ReposByName() iter.Seq[*Repo] {
	return func(yield func(*Repo) bool) {
		for _, id := range v.names.All() {
			if !yield(v.repos.Get(id)) {
				return
			}
		}
	}
}

// RepoCount is how many repositories there are.
func (v *View) RepoCount() int { return v.repos.Len() }

// SameRepos reports whether two views have the same repositories with the same
// generations, and the same configuration: what was worked out from these for
// one view holds for the other. It costs nothing, and may say no of equal ones.
func (v *View) SameRepos(other *View) bool {
	return v.repos.Same(&other.repos) && v.config == other.config
}

// Job returns nil when there is none.
func (v *View) Job(kind JobKind, subject string) *Job { return v.jobs.Get(jobKey(kind, subject)) }

// Jobs goes through all by kind and subject.
func (v *View) Jobs() iter.Seq[*Job] { return v.jobs.Records() }

// JobsOf goes through the jobs in one of the states, by kind and subject, at
// the cost of those only. Without states it is Jobs.
func (v *View) JobsOf(states ...JobState) iter.Seq[*Job] {
	if len(states) == 0 {
		return v.Jobs()
	}
	return func(yield func(*Job) bool) {
		for _, state := range states {
			for key := range tree.Under(v.jobStates.From, string([]byte{byte(state)})) {
				if !yield(v.jobs.Get(key)) {
					return
				}
			}
		}
	}
}

// JobsOfKind goes through the jobs of a kind in one of the states, by subject,
// at the cost of those only.
func (v *View) JobsOfKind(kind JobKind, states ...JobState) iter.Seq[*Job] {
	return func(yield func(*Job) bool) {
		for _, state := range states {
			for subject := range tree.Under(v.jobStates.From, string([]byte{byte(state), byte(kind)})) {
				if !yield(v.Job(kind, subject)) {
					return
				}
			}
		}
	}
}

// KeyByHash finds an API key by the HMAC of its text, or returns nil.
// Whether it has expired is the caller's to see.
func (v *View) KeyByHash(hash []byte) *Key { return lookup(&v.keyHashes, string(hash), &v.keys) }

// Key returns nil when there is none of that id.
func (v *View) Key(id string) *Key { return v.keys.Get(id) }

// Keys goes through them by id.
func (v *View) Keys() iter.Seq[*Key] { return v.keys.Records() }

// Member returns nil when there is none of that id.
func (v *View) Member(id string) *Member { return v.members.Get(id) }

// MemberNumber returns nil when there is none of that number.
func (v *View) MemberNumber(n uint32) *Member { return lookup(&v.numbers, n, &v.members) }

// Members goes through them by id, removed ones too.
func (v *View) Members() iter.Seq[*Member] { return v.members.Records() }

// Group returns nil when the group was never placed.
func (v *View) Group(number uint64) *Group { return v.groups.Get(number) }

// Groups goes through them by number.
func (v *View) Groups() iter.Seq[*Group] { return v.groups.Records() }

// Holders are the ids of the members that confirmed the file or mirror of a
// key (ShardKey, MirrorKey), by number.
func (v *View) Holders(key string) []string {
	h := v.holdings.Get(key)
	if h == nil {
		return nil
	}
	ids := make([]string, 0, len(h.Nodes))
	for _, n := range h.Nodes {
		if id, ok := v.numbers.Get(n); ok {
			ids = append(ids, id)
		}
	}
	return ids
}

// HolderNumbers is Holders by their numbers, sorted.
func (v *View) HolderNumbers(key string) []uint32 {
	if h := v.holdings.Get(key); h != nil {
		return h.Nodes
	}
	return nil
}

// Holds reports whether a member has confirmed what a key names.
func (v *View) Holds(node, key string) bool {
	m, h := v.members.Get(node), v.holdings.Get(key)
	return m != nil && h != nil && slices.Contains(h.Nodes, m.Number)
}

// Holdings goes through what is held, by key.
func (v *View) Holdings() iter.Seq[*Holding] { return v.holdings.Records() }

// Secret returns nil when there is none of that name.
func (v *View) Secret(name string) *Secret { return v.secrets.Get(name) }

// Secrets goes through the secrets, by name.
func (v *View) Secrets() iter.Seq[*Secret] { return v.secrets.Records() }
