package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/cluster/wire"
	"github.com/shoalsearch/shoal/node/nodetest"
)

var drills = flag.Bool("drills", false, "play what may happen to a cluster of real processes")

// serviceUser runs the nodes where the operator is root.
const serviceUser = 64999

// TestDrills_serveAgainAfterEachDisaster breaks clusters of real processes, follows the pages about
// it, and prints how long it takes until they serve again and what is lost. Somebody plays each drill as the user of the
// nodes, and as root, whose nodes run as another user.
func TestDrills_serveAgainAfterEachDisaster(t *testing.T) {
	if !*drills {
		t.Skip("make drills")
	}
	cases := []struct {
		name  string
		nodes int
		play  func(*drill)
	}{
		{"one node of three, the leader", 3, (*drill).oneNode},
		{"two nodes of five, the leader among them", 5, (*drill).minority},
		{"two nodes of three", 3, (*drill).majority},
		{"a mistake is taken back by the hourly back-up", 3, (*drill).mistake},
		{"all but the back-up", 3, (*drill).everything},
		{"all addresses are new", 3, (*drill).addresses},
		{"the cluster key is changed while a node is down", 3, (*drill).key},
		{"a full disk", 3, (*drill).fullDisk},
		{"the clock of the leader is two hours behind, then two hours ahead", 3, (*drill).clock},
	}
	typists := []string{"the user of the nodes", "root"}
	rows := make([]string, len(cases)*len(typists))
	t.Cleanup(func() {
		t.Logf("\n| what happens | commands by | searches again after | changes again after | all copies after | lost |\n|---|---|---|---|---|---|%s", strings.Join(rows, ""))
	})
	for i, c := range cases {
		for j, typist := range typists {
			t.Run(c.name+", "+typist, func(t *testing.T) {
				t.Parallel()
				root := os.Geteuid() == 0
				if !root && (typist == "root" || c.name == "a full disk") {
					t.Skip("NOT RUN: only root may act as another user, and mount a small disk")
				}
				d := startDrill(t, c.nodes, func(d *drill) {
					if root {
						d.user = &syscall.Credential{Uid: serviceUser, Gid: serviceUser}
					}
					if typist != "root" {
						d.typist = d.user
					}
					switch c.name {
					case "a full disk":
						d.mount(c.nodes - 1)
					case cases[len(cases)-1].name:
						d.clocks = map[int]*wrongClock{0: {}, 1: {}, 2: {}}
					}
				})
				c.play(d)
				rows[len(typists)*i+j] = fmt.Sprintf("\n| %s | %s | %s | %s | %s | %s |", c.name, typist, d.searches, d.changes, d.whole, d.lost())
			})
		}
	}
}

// drill is a cluster with a key, an account and a chat that must not be lost.
type drill struct {
	*pair
	t                        *testing.T
	typist                   *syscall.Credential // types the commands; nil is the user of the test
	chat, keyID              string
	began                    time.Time
	tries                    int
	survivor                 int
	searches, changes, whole string // durations since began
	excused                  string // what the pages say is lost
}

func startDrill(t *testing.T, nodes int, before func(*drill)) *drill {
	t.Helper()
	d := &drill{t: t}
	d.pair = startPair(t, binary(t), func(p *processes) {
		p.nodes = make([]*exec.Cmd, nodes)
		d.pair = &pair{processes: p}
		before(d)
		if p.user == nil {
			return
		}
		for _, dir := range []string{filepath.Dir(p.dir), filepath.Dir(p.binary)} {
			if err := os.Chmod(dir, 0o755); err != nil {
				t.Fatal(err)
			}
		}
	})
	d.must("POST", "/api/users", `{"email": "ann@example.com"}`)
	var key struct{ ID string }
	var thread struct{ ChatID string }
	for answer, text := range map[any][]byte{
		&key:    d.must("POST", "/api/keys", `{"name": "before"}`),
		&thread: d.must("POST", "/api/chat/blocking", `{"query": "What is a whale?"}`),
	} {
		if err := json.Unmarshal(text, answer); err != nil {
			t.Fatal(err)
		}
	}
	d.chat, d.keyID = thread.ChatID, key.ID
	return d
}

// must asks node 0 until it answers. On a busy machine a cluster may have no leader for a moment.
func (d *drill) must(method, path, body string) (answer []byte) {
	d.t.Helper()
	nodetest.Wait(d.t, method+" "+path, func() (err error) {
		answer, err = d.ask(method, 0, path, body)
		if err != nil && !strings.Contains(err.Error(), "NO_LEADER") {
			d.t.Fatal(err)
		}
		return err
	})
	return answer
}

func (d *drill) since() string { return fmt.Sprintf("%.1f s", time.Since(d.began).Seconds()) }

// lose kills nodes with all that is on their disks.
func (d *drill) lose(nodes ...int) {
	d.began = time.Now()
	for _, i := range nodes {
		d.stop(d.t, i, syscall.SIGKILL)
		if err := os.RemoveAll(d.dataDir(i)); err != nil {
			d.t.Fatal(err)
		}
	}
}

// serve waits until a node answers searches in full and takes changes.
func (d *drill) serve(i int) {
	d.t.Helper()
	d.survivor = i
	d.wait(d.t, "searches are complete", func() error { return d.processes.ask("http://"+d.host(i)+":7700", 1) })
	d.searches = d.since()
	d.wait(d.t, "changes are taken", func() error {
		d.tries++
		_, err := d.ask("POST", i, "/api/keys", fmt.Sprintf(`{"name": "after %d"}`, d.tries))
		return err
	})
	d.changes = d.since()
}

func (d *drill) again() {
	d.t.Helper()
	d.wait(d.t, "everything has its copies again", d.settled)
	d.whole = d.since()
}

// lost names what is not there any more.
func (d *drill) lost() string {
	var lost []string
	for _, c := range []struct{ what, path, text string }{
		{"a key", "/api/keys", `"before"`}, {"an account", "/api/users", "ann@example.com"}, {"a chat", "/api/chat/" + d.chat, "A whale is a mammal."},
	} {
		var err error
		nodetest.Eventually(10*time.Second, func() bool {
			var body []byte
			body, err = d.ask("GET", d.survivor, c.path, "")
			return err == nil && bytes.Contains(body, []byte(c.text))
		})
		if body, err := d.ask("GET", d.survivor, c.path, ""); err != nil || !bytes.Contains(body, []byte(c.text)) {
			lost = append(lost, c.what)
			d.t.Errorf("%s is lost: %v %.300s", c.what, err, body)
		}
	}
	if d.excused != "" {
		lost = append(lost, d.excused)
	}
	if lost == nil {
		return "nothing"
	}
	return strings.Join(lost, ", ")
}

// command runs the program as the operator does.
func (d *drill) command(args ...string) {
	d.t.Helper()
	cmd := exec.Command(d.binary, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: d.typist}
	if out, err := cmd.CombinedOutput(); err != nil {
		d.t.Fatalf("%v: %v\n%s", args, err, out)
	}
}

// backUp is what the timer of the package does each hour, as the user of the service. It keeps the newest three.
func (d *drill) backUp() (catalog, chats string) {
	d.t.Helper()
	dir := filepath.Join(d.dir, "backups")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		d.t.Fatal(err)
	}
	for hour := range 4 {
		write(d.t, filepath.Join(dir, fmt.Sprintf("catalog-20260101T%02d0000Z.snap", hour)), "old")
	}
	d.own(d.t)
	cmd := exec.Command("sh", filepath.Join("..", "..", "packaging", "system", "snapshot"))
	cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(d.binary)+":"+os.Getenv("PATH"), "SHOAL_SNAPSHOT_DIR="+dir, "SHOAL_SNAPSHOT_KEEP=3", "SHOAL_DATA_DIR="+d.dataDir(0))
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: d.user}
	if out, err := cmd.CombinedOutput(); err != nil || !bytes.Contains(out, []byte("1 answer\n")) {
		d.t.Fatalf("%v\n%s", err, out)
	}
	files, err := filepath.Glob(filepath.Join(dir, "catalog-*.snap"))
	if err != nil || len(files) != 3 || filepath.Base(files[0]) != "catalog-20260101T020000Z.snap" {
		d.t.Fatalf("%v %v", files, err)
	}
	return files[2], filepath.Join(dir, "chats.tar")
}

func (d *drill) oneNode() {
	lost := d.leaderBy()[0]
	d.lose(lost)
	d.serve((lost + 1) % 3)
	d.start(d.t, lost)
	d.again()
}

func (d *drill) minority() {
	lead := slices.IndexFunc([]int{0, 1, 2, 3, 4}, func(i int) bool { return d.leader(i) == d.host(i)+":7701" })
	var s struct {
		Members []struct{ ID, Address, Role string }
	}
	if err := json.Unmarshal(d.must("GET", "/api/status", ""), &s); err != nil {
		d.t.Fatal(err)
	}
	var lost, ids = []int{lead}, []string{}
	for _, m := range s.Members {
		i := slices.IndexFunc([]int{0, 1, 2, 3, 4}, func(i int) bool { return m.Address == d.host(i)+":7701" })
		if i == lead {
			ids = append(ids, m.ID)
		} else if m.Role == "nonvoter" && len(lost) == 1 {
			lost, ids = append(lost, i), append(ids, m.ID)
		}
	}
	if len(ids) != 2 {
		d.t.Fatalf("no leader and nonvoter in %+v", s.Members)
	}

	d.lose(lost...)
	left := slices.IndexFunc([]int{0, 1, 2, 3, 4}, func(i int) bool { return !slices.Contains(lost, i) })
	for _, id := range ids {
		d.wait(d.t, "the dead node is removed", func() error {
			_, err := d.ask("POST", left, "/api/nodes/"+id+"/remove?accept_loss=true", "")
			return err
		})
	}
	d.serve(left)
	d.again()
}

func (d *drill) majority() {
	_, chats := d.backUp()
	d.lose(1, 2)
	d.stop(d.t, 0, syscall.SIGTERM)
	d.command("recover", "--data-dir", d.dataDir(0), "--accept-loss", "--chats", chats)
	d.start(d.t, 0)
	d.serve(0)
	d.start(d.t, 1)
	d.start(d.t, 2)
	d.again()
}

func (d *drill) everything() {
	d.restore(func() { d.lose(0, 1, 2) })
}

// mistake revokes a key that is still in use. The operator then goes back to the last back-up, and keeps the old directories.
func (d *drill) mistake() {
	d.restore(func() {
		d.must("DELETE", "/api/keys/"+d.keyID, "")
		d.began = time.Now()
		for i := range d.nodes {
			d.stop(d.t, i, syscall.SIGTERM)
			if err := os.Rename(d.dataDir(i), d.dataDir(i)+".old"); err != nil {
				d.t.Fatal(err)
			}
		}
	})
}

// restore makes a new cluster of the newest back-up after a disaster.
func (d *drill) restore(disaster func()) {
	catalog, chats := d.backUp()
	d.must("POST", "/api/keys", `{"name": "later"}`)
	disaster()
	d.command("snapshot", "restore", catalog, "--chats", chats, "--data-dir", d.dataDir(0), "--cluster-key-file", filepath.Join(d.dir, "cluster.key"))
	d.start(d.t, 0)
	d.serve(0)
	d.start(d.t, 1)
	d.start(d.t, 2)
	d.again()
	if body, err := d.ask("GET", 0, "/api/keys", ""); err != nil || bytes.Contains(body, []byte(`"later"`)) {
		d.t.Errorf("what came after the back-up: %v %s", err, body)
	}
	d.excused = "what came after the back-up"
}

func (d *drill) addresses() {
	d.began = time.Now()
	for i := range d.nodes {
		d.stop(d.t, i, syscall.SIGTERM)
	}
	d.subnet = fmt.Sprintf("127.%d.%d", 1+rand.IntN(254), rand.IntN(256))
	for i := range d.nodes {
		d.start(d.t, i)
	}
	d.serve(0)
	d.again()
}

func (d *drill) key() {
	down, next := 2, wire.NewKey().Text()
	text, err := os.ReadFile(filepath.Join(d.dir, "cluster.key"))
	if err != nil {
		d.t.Fatal(err)
	}
	old := strings.TrimSpace(string(text))
	d.keyFiles = map[int]string{}
	for i := range d.nodes {
		d.keyFiles[i] = filepath.Join(d.dir, fmt.Sprintf("n%d.key", i))
		write(d.t, d.keyFiles[i], old+"\n")
		d.own(d.t)
		d.stop(d.t, i, syscall.SIGTERM)
		d.start(d.t, i)
		d.wait(d.t, "the node is back", d.settled)
	}
	d.stop(d.t, down, syscall.SIGKILL)

	for step, keys := range []string{old + "\n" + next, next + "\n" + old, next} {
		for _, i := range []int{0, 1} {
			write(d.t, d.keyFiles[i], keys+"\n")
			d.wait(d.t, "the keys are taken over", func() error {
				log, err := os.ReadFile(filepath.Join(d.dir, fmt.Sprintf("n%d.log", i)))
				if n := strings.Count(string(log), "cluster keys taken over"); n <= step {
					return fmt.Errorf("%d times, %v", n, err)
				}
				return nil
			})
		}
	}
	d.began = time.Now()
	d.serve(0)
	d.start(d.t, down)
	const says = "the cluster key of this node is not that of the other nodes"
	d.wait(d.t, "the node with the old key says so", func() error {
		log, err := os.ReadFile(filepath.Join(d.dir, fmt.Sprintf("n%d.log", down)))
		_, notReady := d.ask("GET", down, "/readyz", "")
		status, _ := d.ask("GET", down, "/api/status", "")
		if !strings.Contains(string(log), says) || notReady == nil || !strings.Contains(notReady.Error(), says) || strings.Count(string(status), says) < 2 {
			return fmt.Errorf("log: %v, readyz: %v, status: %s", err, notReady, status)
		}
		return nil
	})
	d.began = time.Now()
	write(d.t, d.keyFiles[down], next+"\n")
	d.again()
}

// clock sets the clock of the leader while it leads. All nodes tell, searches and changes go on, no key ends, and all is
// quiet once the clock is right.
func (d *drill) clock() {
	wrong := d.leaderBy()[0]
	right := (wrong + 1) % 3
	tell := func(what string, told func(here, there []byte) bool) {
		d.t.Helper()
		d.wait(d.t, what, func() error {
			there, err := d.ask("GET", right, "/api/status", "")
			here, err2 := d.ask("GET", wrong, "/api/status", "")
			if !told(here, there) {
				return fmt.Errorf("%v %s\n%v %s", err2, here, err, there)
			}
			return nil
		})
	}
	for _, ahead := range []time.Duration{-2 * time.Hour, 2 * time.Hour} {
		way, opposite := "ahead", "behind"
		if ahead < 0 {
			way, opposite = opposite, way
		}
		d.clocks[wrong].ahead.Store(int64(ahead))
		d.began = time.Now()
		d.serve(right)
		d.serve(wrong)
		d.again()
		tell("the status names the clock", func(here, there []byte) bool {
			return twoHours(way).Match(there) && twoHours(opposite).Match(here)
		})
	}
	d.clocks[wrong].ahead.Store(0)
	tell("no status names a clock any more", func(here, there []byte) bool {
		return len(here) > 0 && len(there) > 0 && !bytes.Contains(append(here, there...), []byte("clocks differ"))
	})
}

// twoHours matches what a status says of a clock, to a second.
func twoHours(way string) *regexp.Regexp { return regexp.MustCompile(`is (2h0m[01]|1h59m59)s ` + way) }

// mount gives a node a small disk of its own.
func (d *drill) mount(i int) {
	d.t.Helper()
	p := d.processes
	dir := p.dataDir(i)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		d.t.Fatal(err)
	}
	if err := syscall.Mount("drill", dir, "tmpfs", 0, "size=200m,mode=700"); err != nil {
		d.t.Skipf("no disk can be mounted here: %v", err)
	}
	d.t.Cleanup(func() {
		p.end(i, syscall.SIGKILL)
		_ = syscall.Unmount(dir, syscall.MNT_DETACH)
	})
}

func (d *drill) fullDisk() {
	fill := filepath.Join(d.dataDir(2), "fill")
	full := func() {
		f, err := os.Create(fill)
		if err != nil {
			d.t.Fatal(err)
		}
		defer f.Close()
		for chunk := make([]byte, 1<<20); len(chunk) > 0; {
			if _, err := f.Write(chunk); err != nil {
				chunk = chunk[:len(chunk)/2]
			}
		}
	}
	full()
	d.began = time.Now()
	d.serve(0)
	ended := make(chan error, 1)
	node := d.nodes[2]
	go func() { ended <- node.Wait() }()
	d.wait(d.t, "the node with the full disk ends", func() error {
		select {
		case err := <-ended:
			ended <- err
			return nil
		default:
			d.serve(0) // each change is an entry that does not fit
			return fmt.Errorf("it runs")
		}
	})
	if code := node.ProcessState.ExitCode(); code != exitDisk {
		d.t.Errorf("it ends with %d", code)
	}
	d.nodes[2] = nil
	d.start(d.t, 2)
	if err := d.nodes[2].Wait(); d.nodes[2].ProcessState.ExitCode() != exitDisk {
		d.t.Errorf("started again it ends with %v", err)
	}
	d.nodes[2] = nil
	if err := os.Remove(fill); err != nil {
		d.t.Fatal(err)
	}
	d.began = time.Now()
	d.start(d.t, 2)
	d.again()
}

// own gives all files to the user of the nodes.
func (c *processes) own(t *testing.T) {
	t.Helper()
	if c.user == nil {
		return
	}
	err := filepath.WalkDir(c.dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, int(c.user.Uid), int(c.user.Gid))
	})
	if err != nil {
		t.Fatal(err)
	}
}
