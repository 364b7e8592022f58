package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
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

	"github.com/shoalsearch/shoal/clock"
	"github.com/shoalsearch/shoal/node/nodetest"
)

var allPages = flag.Bool("pages", false, "run the commands of every tutorial and how-to, and not of the first alone")

// play is a page whose commands are run in order, as a reader would.
type play struct {
	page string

	// files are the reader's files by name. 10.0.0.1 has a node with this configuration.
	files map[string]string
	node  bool

	// account runs the commands with the key of an account; ID is then the id of its newest watch.
	account bool

	// ahead has the commands that the prose asks for before the command with the key's prefix,
	// separated by ;. STOP stops the nodes, a shoal serve starts one, and NODE is the newest
	// node.
	ahead map[string]string

	// left has the commands that cannot run here, by prefix, with the reason.
	left map[string]string
}

// oneRepo is a configuration with the test's repository.
const oneRepo = `{"connections": {"work": {"type": "git", "url": "file:///home/me/src/*"}}}`

var plays = []play{
	{page: "tutorial/first-search.md"},
	{page: "tutorial/first-cluster.md", files: map[string]string{"shoal.json": oneRepo}},
	{page: "tutorial/first-agent.md", node: true, left: map[string]string{"claude": "a program of somebody else"}},
	{page: "how-to/install-debian.md", node: true, files: map[string]string{"shoal.env": ""}, left: map[string]string{
		"sudo apt": "it needs the package", "sudo systemctl": "it needs systemd", "sudo shoal doctor": "it is about the host"}},
	{page: "how-to/install-kubernetes.md"},
	{page: "how-to/install-tarball.md", left: map[string]string{
		"sudo install": "it needs the archive", "sudo systemd": "it needs systemd", "sudo systemctl": "it needs systemd", "sudo shoal doctor": "it is about the host"}},
	{page: "how-to/back-up.md", node: true},
	{page: "how-to/restore.md", node: true, ahead: map[string]string{
		"shoal recover":          "shoal user create you@example.com --owner; shoal snapshot save catalog.snap --chats chats.tar; cp /var/lib/shoal/cluster.key .; STOP",
		"shoal snapshot restore": "rm -r /var/lib/shoal"}},
	{page: "how-to/sign-in.md", node: true, left: map[string]string{"shoal login": "a script of testdata/terminal runs it", "shoal user approve": "nobody waits who came by an invitation"}},
	{page: "how-to/permissions.md", node: true, ahead: map[string]string{"shoal grant": "shoal user create ann@example.com; shoal user create ben@example.com"}},
	{page: "how-to/agents.md", node: true, left: map[string]string{"claude": "a program of somebody else", "shoal agent revoke": "no agent was let in"}},
	{page: "how-to/move-addresses.md", node: true, ahead: map[string]string{"shoal serve": "cp /var/lib/shoal/cluster.key .; " +
		"shoal serve --data-dir /tmp/new --cluster-key-file cluster.key --listen 10.0.0.4:7700 --cluster-listen 10.0.0.4:7701 --gossip-listen 10.0.0.4:7702 --join 10.0.0.1:7702; " +
		"shoal drain NODE; shoal undrain NODE; STOP NEWEST"}},
	{page: "how-to/cluster.md", files: map[string]string{"shoal.json": oneRepo}, left: map[string]string{
		"sudo": ".ci/bare-debian runs it", "curl": ".ci/bare-debian runs it"}},
	{page: "how-to/connections.md", node: true, left: map[string]string{
		"shoal connection webhook": "a connection of directories has none", "shoal connection accept": "no listing lacks anything"}},
	{page: "how-to/from-sourcebot.md", node: true, files: map[string]string{"config.json": oneRepo, ".env": "AUTH_SECRET=x\n", "people.csv": "email,name,role\nann@example.com,Ann,owner\nben@example.com,Ben,member\n"},
		left: map[string]string{"sudo cp": "it needs the package", "sudo chown": "it needs the package", "sudo systemctl": "it needs systemd"}},
	{page: "how-to/models.md", node: true, left: map[string]string{
		"shoal models check": "no model is configured", "shoal ask": "no model is configured", "curl": "no model is configured"}},
	{page: "how-to/monitor.md", files: map[string]string{"shoal.json": oneRepo}, ahead: map[string]string{"shoal key": "shoal serve --config shoal.json", "shoal serve": "STOP"}, left: map[string]string{"cp": "it needs the package", "sudo": "it needs the package"}},
	{page: "how-to/add-remove-replace.md", node: true, ahead: map[string]string{"shoal serve": "cp /var/lib/shoal/cluster.key ."},
		left: map[string]string{"shoal remove": "the page drains and removes one node three times"}},
	{page: "how-to/rotate-keys.md", node: true},
	{page: "how-to/watch.md", node: true, account: true, left: map[string]string{"shoal watch change ID --mail": "it needs a mail server"}},
	{page: "how-to/harden.md", left: map[string]string{"shoal serve": "it needs an authority that reaches port 443"}},
}

// exampleLine matches a command on a page.
var exampleLine = regexp.MustCompile(`^    (?:shoal|sudo|curl|claude|cp|export) `)

// TestDocumentationCommands_runAsWritten runs the first tutorial; with -pages every page (make test-pages).
func TestDocumentationCommands_runAsWritten(t *testing.T) {
	t.Parallel()
	for i, p := range plays {
		if i > 0 && !*allPages {
			continue
		}
		t.Run(strings.TrimSuffix(filepath.Base(p.page), ".md"), func(t *testing.T) {
			t.Parallel()
			newStage(t, p).run()
		})
	}
}

// Every tutorial and how-to with a command is run.
func TestDocumentationCommands_areAllRunByATest(t *testing.T) {
	t.Parallel()
	for _, dir := range []string{"tutorial", "how-to"} {
		pages, err := filepath.Glob(filepath.Join("..", "..", "docs", dir, "*.md"))
		if err != nil || len(pages) == 0 {
			t.Fatal(err)
		}
		for _, page := range pages {
			name := dir + "/" + filepath.Base(page)
			played := slices.ContainsFunc(plays, func(p play) bool { return p.page == name })
			if commands := commandsOf(t, name); len(commands) > 0 && !played {
				t.Errorf("nothing runs the commands of docs/%s", name)
			}
		}
	}
}

// commandsOf returns the commands of a page, each on one line.
func commandsOf(t *testing.T, page string) (commands []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", page))
	if err != nil {
		t.Fatal(err)
	}
	whole := regexp.MustCompile(`\\\n\s*`).ReplaceAllString(string(text), "")
	for line := range strings.SplitSeq(whole, "\n") {
		if exampleLine.MatchString(line) {
			commands = append(commands, strings.TrimSpace(line))
		}
	}
	return commands
}

// stage is where a page runs: a directory as the root, and loopback addresses as machines.
type stage struct {
	t      *testing.T
	play   play
	dir    string
	net    string // the first three bytes of its addresses
	nodes  []*exec.Cmd
	key    string // of the account that runs the commands; "" for the operator
	places *strings.Replacer
}

func newStage(t *testing.T, p play) *stage {
	s := &stage{t: t, play: p, dir: t.TempDir(), net: fmt.Sprintf("127.%d.%d.", 1+rand.IntN(254), rand.IntN(256))}
	s.places = strings.NewReplacer("/home/me", s.dir+"/home", "/tmp/", s.dir+"/tmp-", "/var/lib/shoal", s.dir+"/var", "/etc/shoal", s.dir,
		"127.0.0.1", s.net+"1", "10.0.0.", s.net)
	if err := os.Symlink(binary(t), filepath.Join(s.dir, "shoal")); err != nil {
		t.Fatal(err)
	}
	nodetest.NewRepo(t, filepath.Join(s.dir, "home", "src", "app"), map[string]string{
		"main.go": "package main\n\nimport \"net/http\"\n\nfunc main() {}\n\ntype T interface{}\n\nvar h http.Handler\n"})
	write(t, filepath.Join(s.dir, "sudo"), "#!/bin/sh\nexec \"$@\"\n")
	if err := os.Chmod(filepath.Join(s.dir, "sudo"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.stop(0) })
	return s
}

func (s *stage) run() {
	s.t.Helper()
	files := map[string]string{}
	for name, text := range s.play.files {
		files[name] = text
	}
	if s.play.node {
		files["shoal.json"] = oneRepo
	}
	if s.play.page == "tutorial/first-search.md" {
		files["shoal.json"] = s.firstExample()
	}
	for name, text := range files {
		write(s.t, filepath.Join(s.dir, name), s.places.Replace(text))
	}
	if s.play.node {
		s.serve("shoal serve --config shoal.json --data-dir /var/lib/shoal --listen 10.0.0.1:7700 --cluster-listen 10.0.0.1:7701 --gossip-listen 10.0.0.1:7702 --linger 0s")
	}
	if s.play.account {
		s.do("shoal user create me@example.com")
		s.key = strings.TrimSpace(s.do("shoal key create mine --user me@example.com"))
	}

	for _, command := range commandsOf(s.t, s.play.page) {
		if s.leftOut(command) {
			continue
		}
		s.prepare(command)
		switch {
		case strings.HasPrefix(command, "shoal serve") && s.play.page == "how-to/cluster.md":
			for i := range 3 {
				own := strings.ReplaceAll(command, "listen 10.0.0.1", fmt.Sprintf("listen 10.0.0.%d", i+1))
				s.serve(strings.ReplaceAll(own, "/var/lib/shoal", []string{"/var/lib/shoal", "/tmp/2", "/tmp/3"}[i]))
			}
		case strings.HasPrefix(command, "shoal serve") && (s.play.page == "how-to/add-remove-replace.md" || s.play.page == "how-to/move-addresses.md"):
			s.serve(strings.ReplaceAll(command, "/var/lib/shoal", "/tmp/new"))
		case strings.HasPrefix(command, "shoal serve"):
			s.serve(command)
		default:
			s.do(command)
		}
	}
	for _, dir := range []string{"var", "tmp-2", "tmp-3", "tmp-new", "tmp-shoal-data", "tmp-shoal-a", "tmp-shoal-b", "tmp-shoal-c"} {
		if path := filepath.Join(s.dir, dir); len(s.nodes) > 0 && exists(path) {
			holdFiles(s.t, path)
		}
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// leftOut reports whether a command cannot run here.
func (s *stage) leftOut(command string) bool {
	for begin := range s.play.left {
		if strings.HasPrefix(command, begin) {
			return true
		}
	}
	return false
}

// prepare does what the prose asks for before a command.
func (s *stage) prepare(command string) {
	for begin, ahead := range s.play.ahead {
		if !strings.HasPrefix(command, begin) {
			continue
		}
		for step := range strings.SplitSeq(ahead, "; ") {
			switch {
			case step == "STOP":
				s.stop(0)
			case step == "STOP NEWEST":
				s.stop(len(s.nodes) - 1)
			case strings.HasPrefix(step, "shoal serve"):
				s.serve(step)
			default:
				s.do(step)
			}
		}
	}
}

// firstExample returns the configuration on the page.
func (s *stage) firstExample() string {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", s.play.page))
	if err != nil {
		s.t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "\n    {\n")
	body, _, _ := strings.Cut(rest, "\n    }\n")
	return "{" + body + "}"
}

// command returns a shell command for a line of a page.
func (s *stage) command(ctx context.Context, line string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "sh", "-c", "exec "+s.places.Replace(line))
	if !strings.HasPrefix(line, "shoal ") {
		cmd.Args[2] = s.places.Replace(line)
	}
	cmd.Dir = s.dir
	cmd.Env = append(os.Environ(), "PATH="+s.dir+":"+os.Getenv("PATH"), "SHOAL_DATA_DIR="+s.dir+"/var", "CTAGS_COMMAND=off",
		"SHOAL_LISTEN="+s.net+"1:7700", "SHOAL_CLUSTER_LISTEN="+s.net+"1:7701", "SHOAL_GOSSIP_LISTEN="+s.net+"1:7702")
	if s.key != "" {
		cmd.Env = append(cmd.Env, "SHOAL_API_KEY="+s.key)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd
}

// serve starts a node, which runs until the page ends.
func (s *stage) serve(line string) {
	cmd := s.command(context.Background(), line)
	log, err := os.Create(filepath.Join(s.dir, fmt.Sprintf("log-%d", len(s.nodes))))
	if err != nil {
		s.t.Fatal(err)
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.nodes = append(s.nodes, cmd)
}

// stop stops the nodes from an index on.
func (s *stage) stop(from int) {
	for _, cmd := range s.nodes[from:] {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // killed
	}
	s.nodes = s.nodes[:from]
}

// do repeats a command until it succeeds, as a user does who waits for the node. It returns the output.
func (s *stage) do(line string) string {
	s.t.Helper()
	if strings.Contains(line, " ID") {
		line = strings.ReplaceAll(line, " ID", " "+s.newestWatch())
	}
	if strings.Contains(line, "NODE") {
		line = strings.ReplaceAll(line, "NODE", s.newest())
	}
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	for {
		var complaint strings.Builder
		cmd := s.command(ctx, line)
		cmd.Stderr = &complaint
		out, err := cmd.Output()
		if err == nil {
			return string(out)
		}
		if !clock.Wait(ctx, 200*time.Millisecond) {
			s.t.Fatalf("docs/%s: %s: %v\n%s%s", s.play.page, line, err, out, &complaint)
		}
	}
}

// newest returns the member that joined last.
func (s *stage) newest() string {
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	for {
		out, _ := s.command(ctx, "shoal status --json").Output()
		var status struct {
			Members []struct{ ID, API string }
			Node    string
		}
		if json.Unmarshal(out, &status) == nil && len(status.Members) > 1 {
			for _, m := range status.Members {
				if m.ID != status.Node {
					return m.ID
				}
			}
		}
		if !clock.Wait(ctx, 200*time.Millisecond) {
			s.t.Fatalf("docs/%s: no second node: %s", s.play.page, out)
		}
	}
}

// newestWatch returns the id of the last watch that the account lists.
func (s *stage) newestWatch() string {
	var watches []struct{ ID string }
	if err := json.Unmarshal([]byte(s.do("shoal watch list --json")), &watches); err != nil || len(watches) == 0 {
		s.t.Fatalf("docs/%s: no watch: %v", s.play.page, err)
	}
	return watches[len(watches)-1].ID
}
