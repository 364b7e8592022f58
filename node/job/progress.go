package job

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
)

// Progress is how far an attempt has come. Only the node that runs it knows.
type Progress struct {
	Kind    catalog.JobKind
	Subject string // as in the catalog
	Fence   uint64
	Started time.Time
	Step    string // waiting, fetching, listing, building, symbols, ...
	Done    int64  // documents done in this step
	Total   int64  // 0: unknown
	Bytes   int64  // text read so far
}

type progress struct {
	mu  sync.Mutex // guards the field below
	now Progress
}

func (p *progress) start(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now.Started, p.now.Step = now, "starting"
}

func (p *progress) setStep(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now.Step, p.now.Done, p.now.Total = name, 0, 0
}

func (p *progress) setCount(done, total int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now.Done, p.now.Total = done, total
}

func (p *progress) addDone() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now.Done++
}

func (p *progress) addBytes(n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now.Bytes += n
}

func (p *progress) snapshot() Progress {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.now
}

// Running returns the progress of this node's attempts, oldest first.
func (r *Runner) Running() []Progress {
	r.mu.Lock()
	var all []Progress
	for _, a := range r.running {
		p := a.progress.snapshot()
		p.Kind, p.Subject, p.Fence = a.job.Kind, a.job.Subject, a.job.Fence
		all = append(all, p)
	}
	r.mu.Unlock()
	slices.SortFunc(all, func(a, b Progress) int { return a.Started.Compare(b.Started) })
	return all
}

// clipError cuts an error text to 500 bytes on one line.
func clipError(s string) string {
	s = strings.ToValidUTF8(strings.Join(strings.Fields(s), " "), "?")
	if len(s) > 500 {
		s = strings.ToValidUTF8(s[:497], "") + "..."
	}
	return s
}
