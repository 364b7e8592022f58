package catalog

import (
	"slices"
	"strconv"
	"strings"
)

// RepoSubject returns the subject of jobs of a repository.
func RepoSubject(id RepoID) string { return strconv.FormatUint(uint64(id), 10) }

// SubjectRepo returns the repository of a RepoSubject, or 0.
func SubjectRepo(subject string) RepoID {
	n, err := strconv.ParseUint(subject, 10, 32)
	if err != nil {
		return 0
	}
	return RepoID(n)
}

// ShardKey returns the key of the holding of a shard file or side file.
func ShardKey(id string) string { return "s" + id }

// MirrorKey returns the key of the holding of a repository's mirror.
func MirrorKey(id RepoID) string { return "m" + strconv.FormatUint(uint64(id), 10) }

// MirrorRepo returns the repository of a MirrorKey. ok is false for another key.
func MirrorRepo(key string) (id RepoID, ok bool) {
	number, ok := strings.CutPrefix(key, "m")
	id = SubjectRepo(number)
	return id, ok && id != 0
}

// packAnywhere is the subject for repositories that are not placed.
const packAnywhere = "all"

// PackSubject returns the subject of pack jobs for repositories that belong on these members, in
// any order. No members means repositories that are not placed, as in a cluster of one node.
func PackSubject(members []uint32) string {
	if len(members) == 0 {
		return packAnywhere
	}

	// Sort them: the same members in another order must give the same job.
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

// SubjectMembers returns the members of a PackSubject. ok is false for another string.
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
