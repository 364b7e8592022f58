package change

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/shard/git"
)

// cpu is the seconds of this process and of those that it waited for.
func cpu() float64 {
	sum := 0.0
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var u syscall.Rusage
		if syscall.Getrusage(who, &u) == nil {
			sum += time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds()
		}
	}
	return sum
}

// peak is the most memory that this process had so far, in MB.
func peak() float64 {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // it cannot fail for this process
	return float64(u.Maxrss) / 1024
}

// counter counts bytes.
type counter int64

func (c *counter) Write(b []byte) (int, error) {
	*c += counter(len(b))
	return len(b), nil
}

func noPause(context.Context) error { return nil }

// It measures the mirrors that SHOAL_CHANGES_MIRRORS names, with spaces between.
func BenchmarkChangesOfMirrors(b *testing.B) {
	for _, dir := range strings.Fields(os.Getenv("SHOAL_CHANGES_MIRRORS")) {
		began := cpu()
		var patch counter
		log := exec.Command("git", "-C", dir, "log", "-p", "-U0", "HEAD")
		log.Stdout = &patch
		if err := log.Run(); err != nil {
			b.Fatal(err)
		}
		byGit := cpu() - began

		began = cpu()
		head, _ := exec.Command("git", "-C", dir, "rev-parse", "HEAD").Output()
		m := git.Open(dir)
		l := Open(b.TempDir())
		err := l.Update(b.Context(), m, []Tip{{"HEAD", strings.TrimSpace(string(head))}}, Bound{All: true}, time.Now(), noPause)
		if err != nil {
			b.Fatal(err)
		}
		built := cpu() - began
		c, _ := l.Extent(b.Context())
		fmt.Printf("%s: %d commits, %d files (%d named, %d unread); git log -p %.1f CPU s, %.1f MB; built in %.1f CPU s (%.2f), %.1f MB of text, %.1f MB on disk (%.2f), peak memory %.0f MB\n",
			dir, c.Commits, c.Files, c.Named, c.Unread, byGit, float64(patch)/1e6, built, built/byGit, float64(c.Text)/1e6, float64(c.Bytes)/1e6, float64(c.Bytes)/float64(patch), peak())
		l.Close()
		m.Close()
	}
}
