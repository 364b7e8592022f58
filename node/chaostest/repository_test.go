package chaostest

import (
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"testing"
)

// token is a word that stands once in every file of every repository.
const token = "shoalchaostoken"

// repository is a bare repository whose every version is known: version v has
// filesOf(v) files, each with one line that names the repository, the file
// and v.
type repository struct {
	name string
	dir  string

	mu    sync.Mutex
	begun int // last version whose push has begun
}

func filesOf(version int) int { return 3 + version%3 }

func line(repo string, file, version int) string {
	return fmt.Sprintf("%s %s f%d v%d", token, repo, file, version)
}

// makeRepository makes a bare repository at its first version.
func makeRepository(dir, name string) (*repository, error) {
	r := &repository{name: name, dir: dir + "/" + name + ".git"}
	if out, err := exec.Command("git", "init", "-q", "--bare", "-b", "main", r.dir).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("git init: %w: %s", err, out)
	}
	return r, r.push()
}

func makeRepositories(t *testing.T, dir string, n int) []*repository {
	t.Helper()
	var all []*repository
	for i := range n {
		r, err := makeRepository(dir, fmt.Sprintf("r%02d", i))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	return all
}

// push commits the next version.
func (r *repository) push() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	v := r.begun + 1
	r.begun = v
	var s strings.Builder
	fmt.Fprintf(&s, "commit refs/heads/main\ncommitter chaos <chaos@localhost> %d +0000\ndata 1\nv\n", 1700000000+v)
	if v > 1 {
		s.WriteString("from refs/heads/main^0\ndeleteall\n")
	}
	for f := range filesOf(v) {
		text := line(r.name, f, v) + "\n"
		fmt.Fprintf(&s, "M 100644 inline dir/f%d.txt\ndata %d\n%s\n", f, len(text), text)
	}
	cmd := exec.Command("git", "-C", r.dir, "fast-import", "--quiet")
	cmd.Stdin = strings.NewReader(s.String())
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("push %s v%d: %w: %s", r.name, v, err, out)
	}
	return nil
}

// newest returns the last version whose push has begun: no answer shows a later one.
func (r *repository) newest() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.begun
}

// version finds the one version whose files are exactly those.
func (r *repository) version(files map[string]string) (int, error) {
	var v int
	for name, text := range files {
		if _, err := fmt.Sscanf(text[strings.LastIndexByte(text, ' ')+1:], "v%d", &v); err != nil {
			return 0, fmt.Errorf("%s: line %q of %s: %w", r.name, text, name, err)
		}
		break
	}
	if v < 1 || v > r.newest() {
		return 0, fmt.Errorf("%s shows v%d, which was never pushed (newest v%d)", r.name, v, r.newest())
	}
	if len(files) != filesOf(v) {
		return 0, fmt.Errorf("%s at v%d shows %d files, want %d: %v", r.name, v, len(files), filesOf(v), files)
	}
	for f := range filesOf(v) {
		if got, want := files[fmt.Sprintf("dir/f%d.txt", f)], line(r.name, f, v); got != want {
			return 0, fmt.Errorf("%s mixes versions: file f%d is %q, want %q", r.name, f, got, want)
		}
	}
	return v, nil
}
