package nodetest

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// Stream is input for git fast-import. One process writes what a work tree cannot have:
// any bytes in names, messages in any encoding, any date, any mode.
type Stream struct {
	bytes.Buffer
	marks int
}

// Commit is a commit of a Stream. Its parent is the previous commit on the branch.
type Commit struct {
	Branch   string // short name; "" for main
	Author   string // name; "" for Ada
	When     time.Time
	Entered  time.Time // the committer's time; zero means When
	Message  string    // bytes, in Encoding
	Encoding string    // "" for UTF-8
	Merge    []int     // marks of further parents
	Put      []Entry
	Delete   []string // paths
}

// Entry is a file of a commit.
type Entry struct {
	Path, Content string // for a submodule, Content is the commit hash
	Mode          string // "" for 100644
}

// Commit adds a commit and returns its mark.
func (s *Stream) Commit(c Commit) (mark int) {
	s.marks++
	if c.Branch == "" {
		c.Branch = "main"
	}
	if c.Author == "" {
		c.Author = "Ada"
	}
	if c.Entered.IsZero() {
		c.Entered = c.When
	}
	email := fmt.Sprintf("%.60s@example.com", strings.ToLower(strings.Fields(c.Author)[0]))
	fmt.Fprintf(s, "commit refs/heads/%s\nmark :%d\nauthor %s <%s> %d +0000\ncommitter %s <%s> %d +0000\n", c.Branch, s.marks, c.Author, email, c.When.Unix(), c.Author, email, c.Entered.Unix())
	if c.Encoding != "" {
		fmt.Fprintf(s, "encoding %s\n", c.Encoding)
	}
	s.data(c.Message)
	for _, m := range c.Merge {
		fmt.Fprintf(s, "merge :%d\n", m)
	}

	for _, path := range c.Delete {
		fmt.Fprintf(s, "D %s\n", quoted(path))
	}
	for _, e := range c.Put {
		switch e.Mode {
		case "160000":
			fmt.Fprintf(s, "M 160000 %s %s\n", e.Content, quoted(e.Path))
		case "":
			e.Mode = "100644"
			fallthrough
		default:
			fmt.Fprintf(s, "M %s inline %s\n", e.Mode, quoted(e.Path))
			s.data(e.Content)
		}
	}
	return s.marks
}

// Ref creates or moves a ref (full name) to the commit of a mark.
func (s *Stream) Ref(name string, mark int) {
	fmt.Fprintf(s, "reset %s\nfrom :%d\n\n", name, mark)
}

func (s *Stream) data(text string) { fmt.Fprintf(s, "data %d\n%s\n", len(text), text) }

// quoted quotes a path for the stream, whatever its bytes are.
func quoted(path string) string {
	var out strings.Builder
	for _, c := range []byte(path) {
		fmt.Fprintf(&out, `\%03o`, c)
	}
	return `"` + out.String() + `"`
}

// Import makes a bare repository at dir from the stream.
func (s *Stream) Import(t testing.TB, dir string) {
	t.Helper()
	for _, args := range [][]string{{"init", "-q", "--bare", "-b", "main", dir}, {"-C", dir, "fast-import", "--quiet"}, {"-C", dir, "pack-refs", "--all"}} {
		cmd := exec.Command("git", args...)
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
		if args[2] == "fast-import" {
			cmd.Stdin = s
		}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v: %.300s", args, err, out)
		}
	}
}
