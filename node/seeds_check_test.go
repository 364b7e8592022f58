package node_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node"
	"github.com/shoalsearch/shoal/node/nodetest"
	"github.com/shoalsearch/shoal/node/search"
	"github.com/shoalsearch/shoal/shard/query"
)

// seedVersions is the number of commits in each repository of a seeded run.
const seedVersions = 8

// seedHost has the repositories of all runs. Every run gets a copy, in which a push only replaces
// a small file.
type seedHost struct {
	dir     string
	commits [][]string // of each repository, oldest first
}

// seedFiles returns the files of version v (from 1) of a repository. Their number depends on the
// version, so a mix of two versions is noticed.
func seedFiles(repo, v int) map[string]string {
	files := map[string]string{}
	for f := range 1 + (repo+v)%3 {
		files[fmt.Sprintf("d%d/f%d.txt", f%2, f)] = fmt.Sprintf("whale of r%d\nin file f%d\nat v%d, seal %d\n", repo, f, v, (repo*7+v*3+f)%5)
	}
	return files
}

func newSeedHost(t *testing.T) *seedHost {
	t.Helper()
	h := &seedHost{dir: t.TempDir()}
	for i := range 4 {
		work := filepath.Join(t.TempDir(), "work")
		var repo *nodetest.Repo
		var commits []string
		for v := 1; v <= seedVersions; v++ {
			files := seedFiles(i, v)
			for path := range seedFiles(i, v-1) {
				if _, ok := files[path]; !ok {
					files[path] = "" // deleted
				}
			}
			if repo == nil {
				repo = nodetest.NewRepo(t, work, seedFiles(i, v))
			} else {
				repo.Commit(files)
			}
			commits = append(commits, repo.Git("rev-parse", "HEAD"))
		}
		repo.Git("clone", "-q", "--bare", work, filepath.Join(h.dir, fmt.Sprintf("r%d", i)))
		if err := os.RemoveAll(filepath.Join(h.dir, fmt.Sprintf("r%d", i), "packed-refs")); err != nil {
			t.Fatal(err)
		}
		h.commits = append(h.commits, commits)
	}
	return h
}

// seedRepo is a repository of one run.
type seedRepo struct {
	name    string
	index   int
	dir     string
	commits []string

	mu      sync.Mutex // guards the field below
	version int
}

func (h *seedHost) repositories(t *testing.T, dir string, n int) []*seedRepo {
	t.Helper()
	var repos []*seedRepo
	for i := range n {
		r := &seedRepo{name: fmt.Sprintf("local/r%d", i), index: i, dir: filepath.Join(dir, fmt.Sprintf("r%d", i)), commits: h.commits[i]}
		if err := os.CopyFS(r.dir, os.DirFS(filepath.Join(h.dir, fmt.Sprintf("r%d", i)))); err != nil {
			t.Fatal(err)
		}
		r.push(t)
		repos = append(repos, r)
	}
	return repos
}

// push moves the branch to the next commit. It returns false after the last.
func (r *seedRepo) push(t *testing.T) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.version == len(r.commits) {
		return false
	}
	ref := filepath.Join(r.dir, "refs", "heads", "main")
	if err := os.MkdirAll(filepath.Dir(ref), 0o755); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(ref+".lock", []byte(r.commits[r.version]+"\n"), 0o644); err != nil {
		t.Error(err)
	}
	if err := os.Rename(ref+".lock", ref); err != nil {
		t.Error(err)
	}
	r.version++
	return true
}

func (r *seedRepo) newest() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.version
}

// versionIn returns the version in a view, 0 for none.
func (r *seedRepo) versionIn(v *catalog.View) int {
	repo := v.RepoByName(r.name)
	if repo == nil || repo.Orphaned() || len(repo.Revisions) == 0 {
		return 0
	}
	return 1 + slices.Index(r.commits, repo.Revisions[0].Commit)
}

// checker knows the right answers.
type checker struct {
	repos []*seedRepo

	mu     sync.Mutex        // guards the fields below
	hashes map[uint64]uint64 // of the catalog, by index
	broken []string
}

func newChecker(repos []*seedRepo) *checker {
	return &checker{repos: repos, hashes: map[uint64]uint64{}}
}

func (c *checker) violation(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.broken) < 10 {
		c.broken = append(c.broken, fmt.Sprintf(format, args...))
	}
}

func (c *checker) report(t *testing.T) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, b := range c.broken {
		t.Error(b)
	}
}

// follow compares the catalog of a node with those of all others at equal indexes, until the node
// stops.
func (c *checker) follow(ctx context.Context, n *node.Node) {
	generations := map[string]uint64{}
	for ctx.Err() == nil {
		changed := n.Changed()
		v := n.View()
		c.mu.Lock()
		if h, ok := c.hashes[v.Index()]; ok && h != v.Hash() {
			c.broken = append(c.broken, fmt.Sprintf("at index %d the catalog of %s has another hash", v.Index(), n.ID()))
		}
		c.hashes[v.Index()] = v.Hash()
		c.mu.Unlock()
		for repo := range v.Repos() {
			if repo.Generation < generations[repo.Name] {
				c.violation("%s: the generation of %s went back from %d to %d", n.ID(), repo.Name, generations[repo.Name], repo.Generation)
			}
			generations[repo.Name] = repo.Generation
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
}

// seedQuery is a query with its meaning for scan.
type seedQuery struct {
	text    string
	regexp  bool
	matches func(repo, path, content string) bool
}

// query returns a random query.
func (c *checker) query(rng *rand.Rand) seedQuery {
	has := func(word string) func(_, _, content string) bool {
		return func(_, _, content string) bool { return strings.Contains(content, word) }
	}
	r := c.repos[rng.IntN(len(c.repos))].name
	f := fmt.Sprintf("f%d", rng.IntN(3))
	v := fmt.Sprintf("v%d", 1+rng.IntN(seedVersions))
	s := fmt.Sprintf("seal %d", rng.IntN(5))
	switch rng.IntN(8) {
	case 0:
		return seedQuery{"whale", false, has("whale")}
	case 1:
		return seedQuery{"repo:^" + r + "$ whale", false, func(repo, _, _ string) bool { return repo == r }}
	case 2:
		return seedQuery{fmt.Sprintf("%q", s), false, has(s)}
	case 3:
		return seedQuery{"whale file:" + f, false, func(_, path, _ string) bool { return strings.Contains(path, f) }}
	case 4:
		return seedQuery{"whale -repo:" + r, false, func(repo, _, _ string) bool { return repo != r }}
	case 5:
		re := regexp.MustCompile(`at v\d, seal [` + s[len(s)-1:] + `4]`)
		return seedQuery{query.QuoteRegexp(re.String()), true, func(_, _, content string) bool { return re.MatchString(content) }}
	case 6:
		return seedQuery{fmt.Sprintf("%q or %q", "at "+v, s), false, func(_, _, content string) bool {
			return strings.Contains(content, "at "+v) || strings.Contains(content, s)
		}}
	}
	return seedQuery{fmt.Sprintf("%q", "at "+v), false, has("at " + v)}
}

// scan returns the expected answer for one version of a repository: each file with its text.
func (q *seedQuery) scan(r *seedRepo, version int) []string {
	var out []string
	if version > 0 {
		for path, content := range seedFiles(r.index, version) {
			if q.matches(r.name, path, content) {
				out = append(out, path+"\n"+content)
			}
		}
	}
	slices.Sort(out)
	return out
}

// search asks a node and checks the answer.
func (c *checker) search(n *node.Node, q seedQuery) (exhaustive bool, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	before := n.View()
	resp, err := n.Search.Search(ctx, catalog.Operator(), search.Request{Query: q.text, Regexp: q.regexp, CaseSensitive: true, Whole: true})
	if err != nil {
		return false, err
	}
	after := n.View()
	if i := resp.Cluster.CatalogIndex; i < before.Index() || i > after.Index() {
		c.violation("the answer to %s stands on index %d, but the catalog was at %d before and at %d after it", q.text, i, before.Index(), after.Index())
	}
	found := map[string][]string{}
	for _, f := range resp.Files {
		found[f.Repository] = append(found[f.Repository], f.Path+"\n"+string(f.Content))
	}
	for _, r := range c.repos {
		got := found[r.name]
		delete(found, r.name)
		slices.Sort(got)
		var wants [][]string
		for v := r.versionIn(before); v <= r.versionIn(after); v++ {
			wants = append(wants, q.scan(r, v))
		}
		if among(got, wants) || !resp.Coverage.Exhaustive() && partOf(got, wants) {
			continue
		}
		c.violation("%s at index %d, exhaustive %v: %s finds in %s\n%q\nthe scan finds one of\n%q", n.ID(), resp.Cluster.CatalogIndex, resp.Coverage.Exhaustive(), q.text, r.name, got, wants)
	}
	for name := range found {
		c.violation("%s finds %s in %s, which does not exist", n.ID(), q.text, name)
	}
	return resp.Coverage.Exhaustive(), nil
}

// partOf reports whether all listed files are in one of several lists, without duplicates.
func partOf(got []string, wants [][]string) bool {
	return slices.ContainsFunc(wants, func(want []string) bool {
		return len(slices.Compact(slices.Clone(got))) == len(got) && !slices.ContainsFunc(got, func(f string) bool { return !slices.Contains(want, f) })
	})
}
