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

// View is the catalog at one index. It is immutable, safe for concurrent use, and may be kept.
// Callers must not change what its methods return.
type View struct {
	tables
	sets *sets
}

// parsed is a configuration that is parsed on first use.
type parsed struct {
	raw    []byte
	unseal Unsealer
	once   sync.Once
	file   *config.File
	hosts  []providerHost // of its identity providers
	err    error
}

// providerHost is the code host behind an identity provider.
type providerHost struct{ site, address string }

// configText returns the plain text of the configuration.
func (p *parsed) configText() ([]byte, error) {
	box, sealed := sealedBox(p.raw)
	switch {
	case !sealed:
		return p.raw, nil
	case p.unseal == nil:
		return nil, errors.New("the configuration is sealed, and there is no key here")
	}
	return p.unseal(box)
}

// Index returns the index of the last applied entry.
func (v *View) Index() uint64 { return v.meta.Index }

// Time returns the clock of the catalog: the newest time of any entry.
func (v *View) Time() time.Time { return v.meta.Clock }

// ClusterID returns the cluster's id, or "" before the cluster is formed.
func (v *View) ClusterID() string { return v.meta.ClusterID }

// Former returns the ids of the clusters that this one was recovered or restored from, newest last.
func (v *View) Former() []string { return v.meta.Former }

// Config returns the configuration in force. Its Index is 0 if there is none.
func (v *View) Config() *Config { return v.config }

// File returns the parsed configuration, never nil. Without a configuration, or with one that
// cannot be read, it is an empty one. FileError tells why.
func (v *View) File() *config.File {
	p := v.parsed
	p.once.Do(func() {
		text, err := p.configText()
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

// hosts returns the code hosts of the configured identity providers, computed once.
func (v *View) hosts() []providerHost {
	v.File()
	return v.parsed.hosts
}

// hostsOf returns the code hosts among a file's identity providers.
func hostsOf(file *config.File) (all []providerHost) {
	for i := range file.IdentityProviders {
		if site, address := SiteOfProvider(&file.IdentityProviders[i]); site != "" {
			all = append(all, providerHost{site, address})
		}
	}
	return all
}

// FileText returns the plain text of the configuration in force, including its secrets. It fails if
// the key to it is missing.
func (v *View) FileText() ([]byte, error) { return v.parsed.configText() }

// FileError returns why this version cannot read the configuration in force, or nil.
func (v *View) FileError() error {
	v.File()
	return v.parsed.err
}

// lookup returns the record that an index entry leads to, or nil.
func lookup[I, K cmp.Ordered, T any](index *tree.Tree[I, K], at I, table *tree.Table[K, T]) *T {
	key, ok := index.Get(at)
	if !ok {
		return nil
	}
	return table.Get(key)
}

// Connection returns the connection with a name, or nil.
func (v *View) Connection(name string) *Connection { return v.connections.Get(name) }

// Connections iterates over all connections by name.
func (v *View) Connections() iter.Seq[*Connection] { return v.connections.Records() }

// Repo returns the repository with an id, or nil.
func (v *View) Repo(id RepoID) *Repo { return v.repos.Get(id) }

// RepoByName returns the repository with a name, or nil.
func (v *View) RepoByName(name string) *Repo { return lookup(&v.names, name, &v.repos) }

// Repos iterates over all repositories by id, including orphans.
func (v *View) Repos() iter.Seq[*Repo] { return v.repos.Records() }

// ReposByName iterates over all repositories by name.
func (v *View) ReposByName() iter.Seq[*Repo] {
	return func(yield func(*Repo) bool) {
		for _, id := range v.names.All() {
			if !yield(v.repos.Get(id)) {
				return
			}
		}
	}
}

// RepoCount returns the number of repositories.
func (v *View) RepoCount() int { return v.repos.Len() }

// SameRepos reports whether two views have the same repositories, generations and configuration, so
// that derived data is valid for both. It is cheap, and may return false for equal views.
func (v *View) SameRepos(other *View) bool {
	return v.repos.Same(&other.repos) && v.config == other.config
}

// SameData reports whether two views have the same repositories, jobs, holdings and rules of
// histories. It is cheap, and may return false for equal views.
func (v *View) SameData(other *View) bool {
	return v.SameRepos(other) && v.jobs.Same(&other.jobs) && v.holdings.Same(&other.holdings) && v.historyRules.Same(&other.historyRules)
}

// Job returns the job of a kind and subject, or nil.
func (v *View) Job(kind JobKind, subject string) *Job { return v.jobs.Get(jobKey(kind, subject)) }

// Jobs iterates over all jobs by kind and subject.
func (v *View) Jobs() iter.Seq[*Job] { return v.jobs.Records() }

// JobsOf iterates over the jobs in these states, by kind and subject. Other jobs cost nothing.
// Without states it is Jobs.
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

// JobsOfKind iterates over the jobs of a kind in these states, by subject. Other jobs cost nothing.
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

// KeyByHash returns the API key with the HMAC of its text, or nil. The caller must check whether it
// has expired.
func (v *View) KeyByHash(hash []byte) *Key { return lookup(&v.keyHashes, string(hash), &v.keys) }

// Key returns the key with an id, or nil.
func (v *View) Key(id string) *Key { return v.keys.Get(id) }

// Keys iterates over all keys by id.
func (v *View) Keys() iter.Seq[*Key] { return v.keys.Records() }

// Member returns the member with an id, or nil.
func (v *View) Member(id string) *Member { return v.members.Get(id) }

// MemberNumber returns the member with a number, or nil.
func (v *View) MemberNumber(n uint32) *Member { return lookup(&v.numbers, n, &v.members) }

// Members iterates over all members by id, including removed ones.
func (v *View) Members() iter.Seq[*Member] { return v.members.Records() }

// Group returns the group with a number, or nil if it was never placed.
func (v *View) Group(number uint64) *Group { return v.groups.Get(number) }

// Groups iterates over all placed groups by number.
func (v *View) Groups() iter.Seq[*Group] { return v.groups.Records() }

// Holders returns the ids of the members that confirmed a file or mirror (ShardKey, MirrorKey), by
// member number.
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

// HolderNumbers returns the numbers of the members in Holders, sorted.
func (v *View) HolderNumbers(key string) []uint32 {
	if h := v.holdings.Get(key); h != nil {
		return h.Nodes
	}
	return nil
}

// Holds reports whether a member confirmed a file or mirror.
func (v *View) Holds(node, key string) bool {
	m, h := v.members.Get(node), v.holdings.Get(key)
	return m != nil && h != nil && slices.Contains(h.Nodes, m.Number)
}

// Holdings iterates over all holdings by key.
func (v *View) Holdings() iter.Seq[*Holding] { return v.holdings.Records() }

// Secret returns the secret with a name, or nil.
func (v *View) Secret(name string) *Secret { return v.secrets.Get(name) }

// Secrets iterates over all secrets by name.
func (v *View) Secrets() iter.Seq[*Secret] { return v.secrets.Records() }
