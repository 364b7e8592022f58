package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// Options configures a run.
type Options struct {
	Shoal  string // program to measure
	Dir    string // work folder: corpora, indexes, data directories; kept between runs
	Out    string // folder of the report; "" only prints
	Parts  []string
	Keep   bool // use the indexes of an earlier run; then building is not measured
	Repeat int  // repetitions of each measurement; the best or the median counts, depending on the part
	Log    func(format string, args ...any)
}

// Report measures the parts, and returns the report, which it also writes to report.md. If a part fails, it
// returns the error and the text of the other parts, because a run takes hours.
func Report(ctx context.Context, o Options) (string, error) {
	if err := os.MkdirAll(o.Dir, 0o755); err != nil {
		return "", err
	}
	r := &run{Options: o, corpora: corpora{dir: o.Dir, log: o.Log}}
	defer r.close()
	var text strings.Builder
	fmt.Fprintf(&text, "# Shoal against its peers\n\n%s\n\n", machine())

	// Check all names before measuring the first part.
	for _, name := range o.Parts {
		if _, ok := parts()[name]; !ok {
			return "", fmt.Errorf("unknown part %q: one of %s", name, strings.Join(PartNames(), ", "))
		}
	}

	var failed []error
	for _, name := range o.Parts {
		o.Log("measuring %s", name)
		part, err := parts()[name](ctx, r)
		if err != nil {
			failed = append(failed, fmt.Errorf("part %s: %w", name, err))
			if ctx.Err() != nil {
				break // the user wants to stop
			}
			continue
		}

		text.WriteString(part.Text())
	}

	return text.String(), errors.Join(append(failed, o.write(text.String()))...)
}

// write writes the report to the folder Out.
func (o Options) write(text string) error {
	if o.Out == "" {
		return nil
	}
	if err := os.MkdirAll(o.Out, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(o.Out, "report.md"), []byte(text), 0o644)
}

// PartNames returns the names of the parts, in order.
func PartNames() []string {
	return []string{"build", "table", "hard", "top", "load", "mixed", "change", "many", "start", "history", "questions", "localise", "growth", "growth-repos", "growth-revisions", "growth-matches", "scaling"}
}

func parts() map[string]func(context.Context, *run) (*Part, error) {
	return map[string]func(context.Context, *run) (*Part, error){
		"build": partBuild, "table": partTable, "hard": partHard, "top": partTop, "load": partLoad, "mixed": partMixed, "change": partChange,
		"many": partMany, "start": partStart, "history": partHistory, "questions": partQuestions, "localise": partLocalise, "growth": partGrowth, "scaling": partScaling,
		"growth-repos": partGrowthRepos, "growth-revisions": partGrowthRevisions, "growth-matches": partGrowthMatches,
	}
}

// run is the state that the parts of a report share.
type run struct {
	Options
	corpora
	large *server // node with L indexed; nil before a part needs it
}

func (r *run) close() {
	if r.large != nil {
		if err := r.large.stop(); err != nil {
			r.Log("stopping the node: %v", err)
		}
	}
}

// built is the cost of indexing a corpus.
type built struct {
	own, git time.Duration // CPU time of the node, and of git
	wall     time.Duration
	peak     int64 // bytes of memory
	disk     int64 // bytes of shards
}

// index starts a node, waits until it has indexed the repositories of the connections, and returns it with
// the cost. Its data directory is new, or with Keep that of an earlier run. The caller stops the node.
func (r *run) index(ctx context.Context, name, ctags string, repos int, connections map[string]connection) (*server, built, error) {
	if !r.Keep {
		return r.indexAnew(ctx, name, ctags, repos, connections)
	}
	return r.indexOn(ctx, name, ctags, repos, connections)
}

// indexAnew is index with a new data directory, also with Keep.
func (r *run) indexAnew(ctx context.Context, name, ctags string, repos int, connections map[string]connection) (*server, built, error) {
	if err := os.RemoveAll(r.dataOf(name)); err != nil {
		return nil, built{}, err
	}
	return r.indexOn(ctx, name, ctags, repos, connections)
}

// indexOn is index with the data directory as it is.
func (r *run) indexOn(ctx context.Context, name, ctags string, repos int, connections map[string]connection) (*server, built, error) {
	config := r.configOf(name)
	if err := writeConfig(config, nil, connections); err != nil {
		return nil, built{}, err
	}

	start := time.Now()
	s, err := serve(ctx, r.Shoal, r.dataOf(name), config, ctags)
	if err != nil {
		return nil, built{}, err
	}

	if err := s.waitIndexed(ctx, repos); err != nil {
		return nil, built{}, errors.Join(err, s.stop())
	}

	// Measure the cost before the node gets other requests.
	b := built{wall: time.Since(start)}
	if b.own, b.git, err = procUsage(s.cmd.Process.Pid); err != nil {
		return nil, built{}, err
	}

	if b.peak, _, _, err = procMemory(s.cmd.Process.Pid); err != nil {
		return nil, built{}, err
	}
	if b.disk, err = s.diskBytes("shards"); err != nil {
		return nil, built{}, err
	}
	return s, b, nil
}

// dataOf returns the data directory of a node.
func (r *run) dataOf(name string) string { return filepath.Join(r.Dir, "node-"+name) }

// configOf returns the configuration file of a node.
func (r *run) configOf(name string) string { return filepath.Join(r.Dir, name+".json") }

// largeNode returns the node with L, without symbols. The first part that needs it starts it.
func (r *run) largeNode(ctx context.Context) (*server, error) {
	if r.large != nil {
		return r.large, nil
	}
	repo, err := r.corpora.largeRepository(ctx)
	if err != nil {
		return nil, err
	}
	s, _, err := r.index(ctx, "L", "off", 1, map[string]connection{"L": {"type": "git", "url": "file://" + repo}})
	r.large = s
	return s, err
}

// machine describes the machine that measures.
func machine() string {
	model := "unknown processor"
	if data, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(data)) {
			if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
				model = strings.TrimSpace(value)
				break
			}
		}
	}

	return fmt.Sprintf("%s, %d cores, %s, %s. Times are of whole processes on a warm page cache; compare ratios of one run only.",
		model, runtime.NumCPU(), runtime.Version(), time.Now().UTC().Format(time.DateOnly))
}

// textBytes adds up the sizes of the files in a tree that have at most maxText bytes.
func textBytes(ctx context.Context, tree string) (int64, error) {
	u, err := measure(ctx, tree, nil, "find", ".", "-type", "f", "-size", "-2097153c", "-not", "-name", ".complete", "-printf", "%s\n")
	if err != nil {
		return 0, err
	}

	var sum int64
	for line := range strings.Lines(string(u.Out)) {
		var n int64
		if _, err := fmt.Sscan(line, &n); err != nil {
			return 0, err
		}

		if n <= maxText {
			sum += n
		}
	}

	return sum, nil
}

func isInstalled(program string) bool {
	_, err := exec.LookPath(program)
	return err == nil
}

// shortest repeats a measurement n times and returns the shortest time.
func shortest(n int, f func() (time.Duration, error)) (time.Duration, error) {
	var all []time.Duration
	for range max(1, n) {
		d, err := f()
		if err != nil {
			return 0, err
		}
		all = append(all, d)
	}
	return slices.Min(all), nil
}
