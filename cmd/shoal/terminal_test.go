package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/node/nodetest"
)

var rewrite = flag.Bool("rewrite", false, "write what was printed into testdata/terminal; then read the diff")

// TestTerminalScripts_printTheirGoldenOutput plays the files of testdata/terminal with the real program and a real node;
// README.md there describes them.
func TestTerminalScripts_printTheirGoldenOutput(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/terminal/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			t.Parallel()
			old, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			now := newTerminal(t).play(string(old))
			if *rewrite {
				if err := os.WriteFile(file, []byte(now), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if now != string(old) {
				t.Errorf("%s differs; got:\n%s", file, now)
			}
		})
	}
}

// terminal plays one script.
type terminal struct {
	t     *testing.T
	p     *process
	repos map[string]bool // existing repositories
	made  int             // commits, one an hour
	key   string          // of an owner
}

func newTerminal(t *testing.T) *terminal {
	p := newProcess(t)
	p.env = nil
	if err := os.RemoveAll(filepath.Join(p.dir, "repos")); err != nil {
		t.Fatal(err)
	}
	return &terminal{t: t, p: p, repos: map[string]bool{}}
}

// play runs every line that begins with $ and writes its output below it, indented. An expected
// line that ends in ... matches all with that beginning.
func (m *terminal) play(script string) string {
	var out strings.Builder
	lines := strings.Split(strings.TrimRight(script, "\n"), "\n")
	for i := 0; i < len(lines); i++ {
		out.WriteString(lines[i] + "\n")
		command, ok := strings.CutPrefix(lines[i], "$ ")
		if !ok {
			continue
		}

		var want []string
		for ; i+1 < len(lines) && strings.HasPrefix(lines[i+1], "    "); i++ {
			want = append(want, lines[i+1][4:])
		}
		for k, line := range m.printed(command) {
			if k < len(want) && strings.HasSuffix(want[k], "...") && strings.HasPrefix(line, strings.TrimSuffix(want[k], "...")) {
				line = want[k]
			}
			out.WriteString("    " + line + "\n")
		}
	}
	return out.String()
}

// printed returns a command's output, without what differs between runs.
func (m *terminal) printed(command string) []string {
	m.t.Helper()
	text := m.run(command)
	name, err := os.Hostname()
	if err != nil {
		m.t.Fatal(err)
	}
	for _, r := range []struct{ all, by string }{
		{m.p.dir, "DIR"}, {m.p.url(), "URL"}, {m.p.host, "HOST"}, {name + " (", "NAME ("},
	} {
		text = strings.ReplaceAll(text, r.all, r.by)
	}
	for _, r := range []struct{ all, by string }{
		{`shoal_[0-9a-f]{64}`, "KEY"}, {`\b(u[0-9a-f]{16}|[0-9a-z]{16}|[0-9a-f]{8})\b`, "ID"}, {`\b20[0-9]{2}-[0-9-]+T[0-9:.]+Z`, "TIME"},
		{`-dev-[0-9a-f]{12}\b`, "-dev"}, // the commit, of which only a clean checkout knows
	} {
		text = regexp.MustCompile(r.all).ReplaceAllString(text, r.by)
	}
	if text = strings.TrimRight(text, "\n"); text == "" {
		return nil
	}
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " ")
	}
	return lines
}

// run runs one line.
func (m *terminal) run(command string) string {
	m.t.Helper()
	verb, rest, _ := strings.Cut(command, " ")
	switch verb {
	case "write": // write PATH "text"
		path, text, _ := strings.Cut(rest, " ")
		if strings.HasPrefix(path, `"`) { // it may hold blanks
			path, _ = strconv.QuotedPrefix(rest)
			text = strings.TrimPrefix(rest, path+" ")
		}
		m.write(filepath.Join(m.p.dir, m.unquoted(path)), strings.ReplaceAll(m.unquoted(text), "DIR", m.p.dir))
	case "commit": // commit REPO message
		m.commit(rest)
	case "git": // git REPO arguments
		name, args, _ := strings.Cut(rest, " ")
		m.repo(name).Git(strings.Fields(args)...)
	case "node":
		m.start(strings.Fields(rest))
	case "ask": // ask GET /path, ask POST /path {body}
		return m.ask(rest)
	case "tool": // tool NAME {arguments}
		return m.tool(rest)
	case "query": // query text, query -e text
		return m.query(rest)
	case "shoal":
		return m.shoal(command)
	case "sh":
		return m.shoal(rest)
	default:
		m.t.Fatalf("there is no command %q", verb)
	}
	return ""
}

// unquoted returns a text that may be quoted, with the escapes of Go.
func (m *terminal) unquoted(text string) string {
	if !strings.HasPrefix(text, `"`) {
		return text
	}
	plain, err := strconv.Unquote(text)
	if err != nil {
		m.t.Fatalf("%s: %v", text, err)
	}
	return plain
}

func (m *terminal) write(path, text string) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		m.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		m.t.Fatal(err)
	}
}

func (m *terminal) repo(name string) *nodetest.Repo {
	dir := filepath.Join(m.p.dir, "repos", name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		m.t.Fatal(err)
	}
	r := nodetest.OpenRepo(m.t, dir)
	if !m.repos[name] {
		m.repos[name] = true
		r.Git("init", "-q", "-b", "main")
	}
	return r
}

// commit commits the files in the directory of a repository.
func (m *terminal) commit(rest string) {
	name, message, _ := strings.Cut(rest, " ")
	m.made++
	m.repo(name).CommitAs("Ann", time.Date(2024, 3, 1, m.made, 0, 0, 0, time.UTC), message, nil)
}

// start runs the node, with more flags, until all repositories are searchable.
func (m *terminal) start(flags []string) {
	if m.p.cmd != nil {
		m.t.Fatal("the node runs already")
	}
	m.p.flags = append(m.p.flags, flags...)
	m.p.start(m.t)
	nodetest.Wait(m.t, "the repositories are searchable", func() error {
		if err := m.p.alive(); err != nil {
			m.t.Fatalf("%v\n%s", err, m.p.log())
		}
		out, errs, _ := shoal(m.t, nil, "status", "--json", "--data-dir", m.p.data())
		var s struct {
			Repos       struct{ Total, Indexed int }
			Connections []struct{ State string }
		}
		if err := json.Unmarshal([]byte(out), &s); err != nil {
			return fmt.Errorf("%w: %s", err, errs)
		}
		if s.Repos.Indexed < len(m.repos) || len(s.Connections) == 0 {
			return fmt.Errorf("%+v", s)
		}
		return nil
	})
	out, errs, _ := shoal(m.t, nil, "key", "create", "script", "--role", "owner", "--data-dir", m.p.data())
	if m.key = regexp.MustCompile(`shoal_[0-9a-f]{64}`).FindString(out); m.key == "" {
		m.t.Fatalf("no key: %s%s", out, errs)
	}
}

// shoal runs a line in the shell, with the program on its path and the script's node as its node.
// Standard error follows the output, then the exit code if it is not 0.
func (m *terminal) shoal(line string) string {
	cmd := exec.Command("sh", "-c", line)
	cmd.Dir = m.p.dir
	cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(binary(m.t))+":"+os.Getenv("PATH"), "SHOAL_DATA_DIR="+m.p.data(), "SHOAL_URL=", "SHOAL_API_KEY=", "XDG_CONFIG_HOME="+filepath.Join(m.p.dir, "home"), "NODE="+m.p.url())
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	text := out.String() + errs.String()
	if err != nil {
		text += fmt.Sprintf("[%d]\n", cmd.ProcessState.ExitCode())
	}
	return text
}

// ask sends a request with an owner's key; it prints the status and the body.
func (m *terminal) ask(rest string) string {
	method, rest, _ := strings.Cut(rest, " ")
	path, body, _ := strings.Cut(rest, " ")
	req, err := http.NewRequest(method, m.p.url()+path, strings.NewReader(body))
	if err != nil {
		m.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+m.key)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	resp, err := m.p.http.Do(req)
	if err != nil {
		m.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		m.t.Fatal(err)
	}
	return fmt.Sprintf("%d %s", resp.StatusCode, text)
}

// tool calls a tool as an agent does.
func (m *terminal) tool(rest string) string {
	name, arguments, _ := strings.Cut(rest, " ")
	answer := m.ask(`POST /api/mcp {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + name + `","arguments":` + arguments + `}}`)
	_, answer, _ = strings.Cut(answer, " ")
	for line := range strings.Lines(answer) {
		answer = strings.TrimPrefix(line, "data: ")
		if strings.HasPrefix(answer, "{") {
			break
		}
	}
	var got struct {
		Result struct {
			Content []struct{ Text string }
			IsError bool
		}
		Error *struct {
			Code    int
			Message string
		}
	}
	if err := json.Unmarshal([]byte(answer), &got); err != nil {
		m.t.Fatalf("%s: %v: %s", rest, err, answer)
	}
	switch {
	case got.Error != nil:
		return fmt.Sprintf("error %d: %s", got.Error.Code, got.Error.Message)
	case got.Result.IsError:
		return "(failed) " + got.Result.Content[0].Text
	}
	return got.Result.Content[0].Text
}

// query searches; it prints the files, the counts and whether the answer is complete.
func (m *terminal) query(text string) string {
	text, regex := strings.CutPrefix(text, "-e ")
	body, err := json.Marshal(map[string]any{"query": m.unquoted(text), "isRegexEnabled": regex})
	if err != nil {
		m.t.Fatal(err)
	}
	status, answer, _ := strings.Cut(m.ask("POST /api/search "+string(body)), " ")
	if status != "200" {
		return status + " " + answer
	}
	var r struct {
		Files []struct {
			Repository string
			FileName   struct{ Text string }
		}
		RepositoryInfo []struct{ Name string }
		Stats          struct {
			TotalMatchCount, ActualMatchCount, FilesNotSearched int
			FlushReason, UnknownRevision                        string
			MatchTreeSearch                                     int64
		}
		IsSearchExhaustive bool
		Hints              []string
	}
	if err := json.Unmarshal([]byte(answer), &r); err != nil {
		m.t.Fatal(err)
	}

	var out strings.Builder
	for _, f := range r.Files {
		fmt.Fprintf(&out, "%s %q\n", f.Repository, f.FileName.Text)
	}
	if len(r.Files) == 0 {
		for _, repo := range r.RepositoryInfo {
			fmt.Fprintf(&out, "%s\n", repo.Name)
		}
	}
	fmt.Fprintf(&out, "%d of %d matches, %s", r.Stats.ActualMatchCount, r.Stats.TotalMatchCount, r.Stats.FlushReason)
	if !r.IsSearchExhaustive {
		out.WriteString(", not exhaustive")
	}
	if n := r.Stats.FilesNotSearched; n > 0 {
		fmt.Fprintf(&out, ", %d not searched", n)
	}
	if r.Stats.UnknownRevision != "" {
		fmt.Fprintf(&out, ", no revision %s", r.Stats.UnknownRevision)
	}
	if r.Stats.MatchTreeSearch < 0 {
		out.WriteString(", time below nothing")
	}
	for _, hint := range r.Hints {
		out.WriteString("\n" + hint)
	}
	return out.String()
}
