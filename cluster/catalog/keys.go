package catalog

import (
	"strconv"

	"github.com/shoalsearch/shoal/cluster/config"
)

// RepoSubject is the subject of jobs on a repository.
func RepoSubject(id RepoID) string { return strconv.FormatUint(uint64(id), 10) }

// SubjectRepo is the repository of such a subject, or 0.
func SubjectRepo(subject string) RepoID {
	n, err := strconv.ParseUint(subject, 10, 32)
	if err != nil {
		return 0
	}
	return RepoID(n)
}

// ShardKey is the key of the holding of a shard file or side file.
func ShardKey(id string) string { return "s" + id }

// MirrorKey is the key of the holding of a repository's mirror.
func MirrorKey(id RepoID) string { return "m" + strconv.FormatUint(uint64(id), 10) }

// NewSetConfig makes the command for a configuration file. raw must be what
// f was parsed from.
func NewSetConfig(raw []byte, f *config.File) *SetConfig { return &SetConfig{Raw: raw, Hash: f.Hash()} }
