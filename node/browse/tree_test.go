package browse

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/shard/git"
)

// treeSite returns the mirror of a tree given as lines of fast-import.
func treeSite(t *testing.T, lines string) *site {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "source.git")
	gitRun(t, "", "init", "--quiet", "--bare", "--initial-branch=main", dir)
	gitRun(t, "commit refs/heads/main\ncommitter Ann <a@example.org> 1700000000 +0000\ndata 2\nm\n"+lines+"\n", "-C", dir, "fast-import", "--quiet")
	m := git.Open(filepath.Join(t.TempDir(), "1.git"))
	t.Cleanup(func() { m.Close() })
	if _, err := m.Fetch(t.Context(), git.Remote{URL: git.LocalURL(dir)}, git.FetchOptions{}); err != nil {
		t.Fatal(err)
	}
	return &site{mirror: m, repo: &catalog.Repo{ID: 1, Name: "example.org/app", Revisions: []catalog.Revision{{Name: "HEAD"}}}}
}

// blobLine returns a line for a file in a tree.
func blobLine(mode, path, content string) string {
	return fmt.Sprintf("M %s inline %s\ndata %d\n%s\n", mode, path, len(content), content)
}

// detailsOf lists a tree with the details of each entry.
func detailsOf(n *TreeNode) (all []string) {
	for i := range n.Children {
		c := &n.Children[i]
		all = append(all, strings.TrimSpace(fmt.Sprintf("%s %06o %d %.20s", c.Path, c.Mode, c.Size, c.Target)))
		all = append(all, detailsOf(c)...)
	}
	return all
}

// On request entries have details from git: named files and those in directories, each once.
func TestTree_hasDetailsOnRequest(t *testing.T) {
	t.Parallel()
	s := treeSite(t, blobLine("100644", "a.txt", "12345")+blobLine("100755", "bin/run", "#!/bin/sh")+blobLine("100644", "bin/empty", "")+
		blobLine("120000", "bin/link", "../a.txt")+blobLine("120000", "far", strings.Repeat("x/", 2049))+"M 160000 "+strings.Repeat("ab", 20)+" sub\n")
	whole := []string{"bin 040000 0", "bin/empty 100644 0", "bin/link 120000 8 ../a.txt", "bin/run 100755 9", "a.txt 100644 5", "far 120000 4098", "sub 160000 0"}
	for _, c := range []struct {
		paths []string
		want  []string
	}{
		{[]string{""}, whole},
		{[]string{"bin/link", "", "bin", "bin/link"}, whole},
		{[]string{"bin/link", "a.txt"}, []string{"bin 040000 0", "bin/link 120000 8 ../a.txt", "a.txt 100644 5"}},
	} {
		r, err := ask(t, s, treeOperation, TreeRequest{Paths: c.paths, Recursive: true, Max: 100, Details: true})
		if err != nil || !r.Detailed {
			t.Fatalf("%q: %+v, %v", c.paths, r, err)
		}
		if got := detailsOf(&r.Root); strings.Join(got, "\n") != strings.Join(c.want, "\n") {
			t.Errorf("%q: %q, want %q", c.paths, got, c.want)
		}
	}

	// Without a request nothing is read.
	r, err := ask(t, s, treeOperation, TreeRequest{Paths: []string{"", "a.txt"}, Recursive: true, Max: 100})
	if err != nil || r.Detailed {
		t.Fatalf("%+v, %v", r, err)
	}
	for _, line := range detailsOf(&r.Root) {
		if !strings.HasSuffix(line, " 0") {
			t.Errorf("without being asked for: %s", line)
		}
	}
}

// The targets of symlinks are only read up to a limit.
func TestTree_limitsTheSymlinkTargetsItReads(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for i := range 1500 {
		b.WriteString(blobLine("120000", fmt.Sprintf("l%04d", i), fmt.Sprintf("%04d%s", i, strings.Repeat("y", 4000))))
	}
	r, err := ask(t, treeSite(t, b.String()), treeOperation, TreeRequest{Paths: []string{""}, Max: 10_000, Details: true})
	if err != nil {
		t.Fatal(err)
	}
	read := 0
	for i, c := range r.Root.Children {
		if c.Target != "" {
			read++
		}
		if c.Size != 4004 || (c.Target == "") != (i >= maxTargets/4004) {
			t.Fatalf("link %d: %d bytes, target of %d", i, c.Size, len(c.Target))
		}
	}
	if read != maxTargets/4004 {
		t.Errorf("%d targets were read", read)
	}
}
