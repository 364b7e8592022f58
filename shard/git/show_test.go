package git

import (
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// TestShowCommit_agreesWithGit reads commits from the packs and compares them with git. The cases have a
// shallow repository, and a text in an encoding that only git knows.
func TestShowCommit_agreesWithGit(t *testing.T) {
	t.Parallel()
	r := repoOfFiles(t, 5)
	r.git("-c", "i18n.commitEncoding=KOI8-R", "-c", "user.name=a", "-c", "user.email=a@b", "update-ref", "refs/heads/koi",
		r.git("-c", "i18n.commitEncoding=KOI8-R", "-c", "user.name=a", "-c", "user.email=a@b", "commit-tree", "-p", "main", "-m", "\xd0\xd2\xc9\xd7\xc5\xd4\n\nbody", "main^{tree}"))
	shallow := filepath.Join(t.TempDir(), "shallow.git")
	runGit(t, "", nil, "clone", "--quiet", "--bare", "--depth=2", "--no-single-branch", r.url(), shallow)

	for name, m := range map[string]*Mirror{"whole": fetched(t, r.url()), "cut off": fetched(t, "file://"+shallow)} {
		s, err := m.refs(within(t))
		if err != nil {
			t.Fatal(err)
		}

		commits := strings.Fields(runGit(t, m.Dir(), nil, "rev-list", "--all"))
		if len(commits) < 3 {
			t.Errorf("%s: %d commits", name, len(commits))
		}
		for _, hash := range commits {
			want, err := m.readCommit(within(t), hash)
			if err != nil {
				t.Fatal(err)
			}
			want.Refs, want.Head = s.byCommit[hash], hash == s.head

			if got, err := m.Show(within(t), hash); err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("%s: %s is %+v, %v, want %+v", name, hash, got, err, want)
			}
		}
	}
}
