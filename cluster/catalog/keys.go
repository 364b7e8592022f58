package catalog

import (
	"slices"
	"strconv"
	"strings"
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

// MirrorRepo is the repository of such a key, and false for another key.
func MirrorRepo(key string) (id RepoID, ok bool) {
	number, ok := strings.CutPrefix(key, "m")
	id = SubjectRepo(number)
	return id, ok && id != 0
}

// packAnywhere is the subject of packs of repositories that are not placed.
const packAnywhere = "all"

// PackSubject is the subject of pack jobs for the repositories that should be
// held by these members, whatever their order; none stands for repositories
// that are not placed, as in a cluster of one.
func PackSubject(members []uint32) string {
	if len(members) == 0 {
		return packAnywhere
	}

	// Sorted: members in another order are the same subject, and one job.
	var b strings.Builder
	for i, n := range slices.Sorted(slices.Values(members)) {
		if i > 0 {
			b.WriteByte('+')
		}
		b.WriteByte('n')
		b.WriteString(strconv.FormatUint(uint64(n), 10))
	}
	return b.String()
}

// SubjectMembers is the members of such a subject, and false for a string
// that is none.
func SubjectMembers(subject string) (members []uint32, ok bool) {
	if subject == packAnywhere {
		return nil, true
	}
	for part := range strings.SplitSeq(subject, "+") {
		n, err := strconv.ParseUint(strings.TrimPrefix(part, "n"), 10, 32)
		if err != nil {
			return nil, false
		}
		members = append(members, uint32(n))
	}
	return members, PackSubject(members) == subject
}
