package catalog

import "strconv"

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
