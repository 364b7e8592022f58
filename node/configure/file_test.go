package configure

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/cluster/config"
	"github.com/shoalsearch/shoal/node/clock"
)

// agreedConfig is a catalog that is agreed on once synced is closed.
type agreedConfig struct {
	*catalog.State
	synced chan struct{}
}

func (a *agreedConfig) Sync(ctx context.Context) (uint64, error) {
	select {
	case <-a.synced:
		return a.Index(), nil
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

func (a *agreedConfig) Propose(_ context.Context, cmds ...catalog.Command) (uint64, error) {
	r := a.Apply(catalog.Entry{Index: a.Index() + 1, At: time.Unix(1, 0), Commands: cmds})
	if r[0].Err != nil {
		return 0, r[0].Err
	}
	return a.Index(), nil
}

// The file of a node that joins changes nothing; one that is changed while the
// node is still joining is a change.
func TestAFileChangedDuringTheStartIsAChange(t *testing.T) {
	for _, c := range []struct{ name, atStart, later, want string }{
		{"another file than the one in force", "1", "1", "7"},
		{"changed before the node knew the catalog", "1", "2", "2"},
		{"changed from the one in force", "7", "2", "2"},
		{"a wrong file, and then a right one", `"x"`, "2", "7"},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := func(size string) []byte { return []byte(`{"settings": {"maxFileSize": ` + size + `}}`) }
			dir := t.TempDir()
			path := filepath.Join(dir, "shoal.json")
			write := func(size string) {
				if err := os.WriteFile(path, text(size), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			a := &agreedConfig{State: catalog.New(), synced: make(chan struct{})}
			file, err := config.Parse(text("7"))
			if err != nil {
				t.Fatal(err)
			}
			a.Propose(t.Context(), catalog.NewSetConfig(text("7"), file))

			write(c.atStart)
			found, err := Find(path, dir)
			if err != nil {
				t.Fatal(err)
			}
			f := NewFile(found, a, slog.New(slog.DiscardHandler), time.Now)
			write(c.later)
			close(a.synced)

			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			ended := make(chan error)
			go func() { ended <- f.Run(ctx) }()
			for f.State().FileHash != hashOf(text(c.later)) && clock.Wait(ctx, time.Millisecond) {
			}
			cancel()
			<-ended

			if got := a.View().Config().Raw; !strings.Contains(string(got), `"maxFileSize": `+c.want) {
				t.Errorf("in force is %s, want %s", got, c.want)
			}
		})
	}
}

// A file that names no connection, as a template that nobody has filled in, takes
// the place of none that names some, whenever it comes.
func TestAFileWithoutConnectionsLetsGoOfNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "shoal.json")
	a := &agreedConfig{State: catalog.New(), synced: make(chan struct{})}
	close(a.synced)
	f := NewFile(&Found{path: path, memory: memory{path: filepath.Join(dir, memoryFile)}}, a, slog.New(slog.DiscardHandler), time.Now)
	offer := func(text, inForce string, refused bool) {
		t.Helper()
		if !f.offer(t.Context(), []byte(text), false) {
			t.Errorf("%s is not settled", text)
		}
		s := f.State()
		if got := string(a.View().Config().Raw); got != inForce || (len(s.Errors) > 0) != refused || refused && !strings.Contains(s.Errors[0], "config apply "+path+" --accept") {
			t.Errorf("after %s: in force is %s, %q; want %s, refused %t", text, got, s.Errors, inForce, refused)
		}
	}

	const settings, some = `{"settings": {"maxFileSize": 7}}`, `{"connections": {"a": {"type": "git", "url": "https://git.example.com/a"}}}`
	offer(settings, settings, false)
	offer("{}", "{}", false) // nothing is lost
	offer(some, some, false)
	offer("{}", some, true)
	offer(settings, some, true)
	offer(some, some, false)
}
