package configure

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/clock"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/cluster/config"
)

// fakeAgreement implements Agreement. Sync and Propose wait until synced is closed.
type fakeAgreement struct {
	mu     sync.Mutex // guards the fields below
	state  *catalog.State
	synced chan struct{}
	lost   bool // answers to proposals are lost
}

func (a *fakeAgreement) View() *catalog.View {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.state.View()
}

func (a *fakeAgreement) Sync(ctx context.Context) (uint64, error) {
	select {
	case <-a.synced:
		return a.View().Index(), nil
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

func (a *fakeAgreement) Propose(_ context.Context, cmds ...catalog.Command) (uint64, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.lost {
		return 0, errors.New("the answer was lost")
	}
	r := a.state.Apply(catalog.Entry{Index: a.state.Index() + 1, At: time.Unix(1, 0), Commands: cmds})
	if r[0].Err != nil {
		return 0, r[0].Err
	}
	return a.state.Index(), nil
}

// text returns a configuration file that differs by a size.
func text(size string) []byte { return []byte(`{"settings": {"maxFileSize": ` + size + `}}`) }

// agree brings such a file into force.
func (a *fakeAgreement) agree(t *testing.T, size string) {
	t.Helper()
	file, err := config.Parse(text(size))
	if err == nil {
		_, err = a.Propose(t.Context(), catalog.NewSetConfig(text(size), file))
	}
	if err != nil {
		t.Error(err)
	}
}

// The file of a joining node is not proposed. A change of the file during joining is.
func TestConfigurationFile_changedWhileJoiningIsProposed(t *testing.T) {
	for _, c := range []struct{ name, atStart, later, want string }{
		{"another file than the one in force", "1", "1", "7"},
		{"changed before the node knew the catalog", "1", "2", "2"},
		{"changed from the one in force", "7", "2", "2"},
		{"a wrong file, and then a right one", `"x"`, "2", "7"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "shoal.json")
			write := func(size string) {
				if err := os.WriteFile(path, text(size), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			a := &fakeAgreement{state: catalog.New(), synced: make(chan struct{})}
			a.agree(t, "7")

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

// A file without connections, such as an unfilled template, never replaces one with connections.
func TestConfigurationFile_withoutConnectionsIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "shoal.json")
	a := &fakeAgreement{state: catalog.New(), synced: make(chan struct{})}
	close(a.synced)
	f := NewFile(&Found{path: path, memory: memory{path: filepath.Join(dir, memoryFile)}}, a, slog.New(slog.DiscardHandler), time.Now)
	offer := func(text, inForce string, refused bool) {
		t.Helper()
		if !f.proposeIfDue(t.Context(), []byte(text), a.View().Config(), false) {
			t.Errorf("%s is not settled", text)
		}
		s := f.State()
		if got := string(a.View().Config().Raw); got != inForce || (len(s.Errors) > 0) != refused || refused && !strings.Contains(s.Errors[0], "config apply "+path+" --accept") {
			t.Errorf("after %s: in force is %s, %q; want %s, refused %t", text, got, s.Errors, inForce, refused)
		}
	}

	const settings, some = `{"settings": {"maxFileSize": 7}}`, `{"connections": {"a": {"type": "git", "url": "https://git.example.com/a"}}}`
	offer(settings, settings, false)
	offer("{}", "{}", false) // nothing to lose yet
	offer(some, some, false)
	offer("{}", some, true)
	offer(settings, some, true)
	offer(some, some, false)
}

// A node reads a change while another node's later change is agreed on. The first change must not
// return.
func TestConfigurationFile_oldContentDoesNotReplaceNewer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "shoal.json")
	a := &fakeAgreement{state: catalog.New(), synced: make(chan struct{})}

	f := NewFile(&Found{path: path, memory: memory{path: filepath.Join(dir, memoryFile)}}, a, slog.New(slog.DiscardHandler), time.Now)
	a.agree(t, "1")
	f.proposeIfDue(t.Context(), text("1"), a.View().Config(), false)
	a.agree(t, "2")

	// The file is a pipe, so that the next change is agreed on during the read.
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	go writeMeanwhile(path, "2", func() { a.agree(t, "3") })
	last := hashOf(text("1"))
	if !f.offerIfChanged(t.Context(), &last) {
		t.Error("the look is not settled")
	}
	if got := string(a.View().Config().Raw); got != string(text("3")) {
		t.Errorf("in force is %s", got)
	}
}

// writeMeanwhile writes to a pipe that is read as a file, after calling meanwhile.
func writeMeanwhile(path, size string, meanwhile func()) {
	w, err := os.OpenFile(path, os.O_WRONLY, 0) // blocks until a reader opens the pipe
	if err != nil {
		return
	}
	meanwhile()
	w.Write(text(size))
	w.Close()
}

// A node's file changes during its start, and another node brings the change into force.
func TestConfigurationFile_startIgnoresReplacedContent(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name         string
		inForce      string // before the node begins; "": nothing
		before, then string // the file at the start, and when the node begins
		want         string // in force after the first look
	}{
		{"another node was first", "3", "2", "3", "3"},
		{"nobody was: a change is a change", "1", "1", "2", "2"},
		{"the first node of all", "", "1", "2", "2"},
		{"nothing changed", "1", "1", "1", "1"},
		{"changed while the node was down", "1", "2", "2", "2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			path := filepath.Join(dir, "shoal.json")
			a := &fakeAgreement{state: catalog.New(), synced: make(chan struct{})}
			m := memory{path: filepath.Join(dir, memoryFile)}
			if c.inForce != "" {
				a.agree(t, c.inForce)
				m.Seen = []string{hashOf(text("1"))}
			}
			f := NewFile(&Found{path: path, bytes: text(c.before), memory: m}, a, slog.New(slog.DiscardHandler), time.Now)
			if err := os.WriteFile(path, text(c.then), 0o600); err != nil {
				t.Fatal(err)
			}

			if !f.offerFirst(t.Context()) {
				t.Fatal("the beginning is not settled")
			}
			begun := string(a.View().Config().Raw)

			last := hashOf(f.first)
			f.offerIfChanged(t.Context(), &last)
			if got := string(a.View().Config().Raw); got != string(text(c.want)) {
				t.Errorf("in force is %s", got)
			}
			if c.inForce == c.want && begun != string(text(c.want)) {
				t.Errorf("for a while %s was in force", begun)
			}
		})
	}
}

// The file changes twice without a leader. The first change comes into force while the second is
// read. The second must not count as older.
func TestConfigurationFile_secondChangeWinsOverFirst(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "shoal.json")
	a := &fakeAgreement{state: catalog.New(), synced: make(chan struct{})}
	f := NewFile(&Found{path: path, memory: memory{path: filepath.Join(dir, memoryFile)}}, a, slog.New(slog.DiscardHandler), time.Now)
	a.agree(t, "1")
	f.proposeIfDue(t.Context(), text("1"), a.View().Config(), false)

	a.lost = true
	if f.proposeIfDue(t.Context(), text("2"), a.View().Config(), false) {
		t.Error("settled without an answer")
	}
	a.lost = false

	// The file is a pipe, so that the first change comes into force during the read.
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	last := hashOf(text("1"))
	go writeMeanwhile(path, "3", func() { a.agree(t, "2") })
	if f.offerIfChanged(t.Context(), &last) {
		t.Error("the second change is settled, and the first one in force")
	}
	go writeMeanwhile(path, "3", func() {})
	if !f.offerIfChanged(t.Context(), &last) {
		t.Error("the second change is not settled")
	}
	if got := string(a.View().Config().Raw); got != string(text("3")) {
		t.Errorf("in force is %s", got)
	}
}

func TestConfigurationMemory_unreadableFileIsReported(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), memoryFile)
	for text, good := range map[string]bool{`{"seen": ["a"]}`: true, `{"seen": `: false, `{"seen": 3}`: false} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := readMemory(path)
		if (err == nil) != good || err != nil && !strings.Contains(err.Error(), "move it away, and the configuration in force stays") {
			t.Errorf("%s: %v", text, err)
		}
	}
}
