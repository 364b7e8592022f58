package browse

import (
	"errors"
	"fmt"
	"testing"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/call"
)

// For the first missing path, it returns the commit that removed it, as seen from the given
// revision.
func TestLastSeen_namesTheCommitThatRemovedThePath(t *testing.T) {
	t.Parallel()
	s := testSite(t)
	blob := gitRun(t, "", "-C", s.mirror.Dir(), "rev-parse", "main:README.md")
	commit := func(list, parent, message string) string {
		dir := s.mirror.Dir()
		made := gitRun(t, list, "-C", dir, "mktree")
		return gitRun(t, "", "-C", dir, "-c", "user.name=Dan", "-c", "user.email=dan@example.org", "commit-tree", "-p", parent, "-m", message+"\n\nwith a body", made)
	}
	moved := commit("100644 blob "+blob+"\tREAD.me\n", "main", "Leave only one")
	empty := commit("", moved, "Leave nothing")

	show := func(r *LastSeenResponse) string {
		if r.Removed == nil {
			return fmt.Sprintf("%q never, late %t", r.Path, r.Late)
		}
		return fmt.Sprintf("%q %s in %.8s until %s, now %q", r.Path, r.Type, r.Commit, r.Removed.Message, r.Renamed)
	}
	main := gitRun(t, "", "-C", s.mirror.Dir(), "rev-parse", "main")
	for _, tt := range []struct {
		ref   string
		paths []string
		want  string
	}{
		{empty, []string{"README.md"}, fmt.Sprintf("%q blob in %.8s until Leave only one, now %q", "README.md", main, "READ.me")},
		{empty, []string{"src/server"}, fmt.Sprintf("%q tree in %.8s until Leave only one, now %q", "src/server", main, "")},
		{empty, []string{"", "READ.me", "src"}, fmt.Sprintf("%q blob in %.8s until Leave nothing, now %q", "READ.me", moved, "")},
		{"main", []string{"README.md", "READ.me"}, `"READ.me" never, late false`},
		{"main", []string{"README.md", "src"}, `"" never, late false`},
		{"main", []string{"../x"}, `"../x" never, late false`},
		{"main", []string{"README.md/x"}, `"README.md/x" never, late false`},
		{"main", nil, `"" never, late false`},
	} {
		r, err := ask(t, s, lastSeenOperation, LastSeenRequest{Ref: tt.ref, Paths: tt.paths})
		if err != nil || show(r) != tt.want {
			t.Errorf("%.8s %q: %+v, %v\nwant %s", tt.ref, tt.paths, r, err, tt.want)
		}
	}

	if _, err := ask(t, s, lastSeenOperation, LastSeenRequest{Ref: "none", Paths: []string{"a"}}); !errors.Is(err, call.ErrRef) {
		t.Errorf("no such revision: %v", err)
	}
	if _, err := new(Browser).LastSeen(t.Context(), catalog.Viewer{}, LastSeenRequest{Paths: make([]string, maxPaths+1)}); !errors.Is(err, call.ErrInvalid) {
		t.Errorf("too many paths: %v", err)
	}
}
