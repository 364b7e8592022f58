package host

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/shoalsearch/shoal/cluster/config"
)

const (
	maxAnswers = 10_000  // that a node keeps
	maxKept    = 1 << 20 // bytes of an answer that is kept
)

// Answers are the last answers of hosts that gave a version with them, kept in
// a directory of the node: it asks again with the version, and a host that
// answers that nothing has changed sends nothing, which is free at some. They
// outlive the process. They are a cache: what cannot be read is asked for anew,
// and what cannot be written is not kept. The least lately used go first. They
// may be used from any goroutine.
type Answers struct {
	dir   string
	limit int

	mu   sync.Mutex        // guards the fields below
	uses map[string]uint64 // by name the number of the last use; nil before the first
	last uint64            // number of the last use of any
}

// NewAnswers are those in a directory, which need not be there yet.
func NewAnswers(dir string) *Answers { return &Answers{dir: dir, limit: maxAnswers} }

// keptAnswer is an answer in its file.
type keptAnswer struct {
	Tag  string      // the version, in the words of the host
	Head http.Header // what of the head says where the list goes on, and what it lacks
	Body json.RawMessage
}

// keptHead is what of a head belongs to the answer, not to the call.
var keptHead = []string{"Link", "X-Total-Count", "X-Github-Sso"}

// answerName is the name of the file of an answer. The credential is told apart by
// what the configuration calls it, never by the secret: whether what another secret
// may read is the same, the host says.
func answerName(credential string, u *url.URL) string {
	sum := sha256.Sum256([]byte(credential + "\x00" + u.String()))
	return hex.EncodeToString(sum[:])
}

// open reads which answers there are. The mutex is held.
func (a *Answers) open() {
	if a.uses != nil {
		return
	}
	a.uses = map[string]uint64{}

	type file struct {
		name string
		used int64
	}
	var files []file
	entries, _ := os.ReadDir(a.dir)
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			files = append(files, file{e.Name(), info.ModTime().UnixNano()})
		}
	}

	slices.SortFunc(files, func(x, y file) int { return cmp.Compare(x.used, y.used) })
	for _, f := range files {
		// What a crash left half written has a name that no answer has.
		if len(f.name) != 2*sha256.Size {
			os.Remove(filepath.Join(a.dir, f.name))
			continue
		}
		a.use(f.name)
	}
	a.trim()
}

// use notes that one is used. The mutex is held.
func (a *Answers) use(name string) {
	a.last++
	a.uses[name] = a.last
}

// trim lets the least lately used go. The mutex is held.
func (a *Answers) trim() {
	for len(a.uses) > a.limit {
		oldest := ""
		for name, used := range a.uses {
			if oldest == "" || used < a.uses[oldest] {
				oldest = name
			}
		}
		a.drop(oldest)
	}
}

// drop lets one go. The mutex is held.
func (a *Answers) drop(name string) {
	delete(a.uses, name)
	os.Remove(filepath.Join(a.dir, name))
}

// get returns a kept answer; nil where there is none that can be read.
func (a *Answers) get(name string) *keptAnswer {
	a.mu.Lock()
	defer a.mu.Unlock()
	// Read when it is first needed, and not at the start, which need not wait for a directory of
	// thousands.
	a.open()
	if a.uses[name] == 0 {
		return nil
	}

	// Under the lock: another call may be about to drop the file, or to put a new one in its
	// place.
	kept, err := readAnswer(filepath.Join(a.dir, name))
	if err != nil {
		a.drop(name) // the host is asked again, and the answer kept anew
		return nil
	}
	a.use(name)
	return kept
}

func readAnswer(path string) (*keptAnswer, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()

	// The sum at the end of the stream finds what is damaged.
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(z, 2*maxKept))
	if err != nil {
		return nil, err
	}

	kept := &keptAnswer{}
	return kept, json.Unmarshal(text, kept)
}

// put keeps an answer in place of the last one.
func (a *Answers) put(name string, kept *keptAnswer) {
	// Not worth its place: the sum of all that may be kept is bounded by this.
	if len(kept.Body) > maxKept {
		return
	}
	text, err := json.Marshal(kept)
	if err != nil {
		return
	}

	// Packed before the lock is taken: lists of repositories are large, and repeat themselves.
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	z.Write(text)
	z.Close()

	a.mu.Lock()
	defer a.mu.Unlock()
	a.open()
	// What could not be written counts as not kept, for its name would find nothing.
	if a.write(name, b.Bytes()) {
		a.use(name)
		a.trim()
	}
}

// write puts a file in the place of another in one step: a crash leaves one of
// the two, and maybe a third that is swept up at the next start. The mutex is held.
func (a *Answers) write(name string, data []byte) bool {
	if err := os.MkdirAll(a.dir, 0o700); err != nil {
		return false
	}
	path := filepath.Join(a.dir, name)
	if err := os.WriteFile(path+".new", data, 0o600); err != nil {
		os.Remove(path + ".new")
		return false
	}
	return os.Rename(path+".new", path) == nil
}

// memoryOf is what a connection's credential is called in the names of answers.
func memoryOf(token *config.Token) string {
	if token == nil {
		return "nobody"
	}
	return "token " + budgetKey(token)
}

// errSame is the error of an answer that is the one of the last time.
var errSame = errors.New("the answer has not changed")

// recall is get for what is asked for again and again: it asks with the version
// of the answer that is kept, and takes that where the host says that it still
// holds.
func (c *client) recall(ctx context.Context, u *url.URL, into any) (http.Header, error) {
	a := c.tools.Answers
	// Without a name for the credential, answers for one could be given to another.
	if a == nil || c.memory == "" {
		return c.get(ctx, u, into)
	}

	name, known := answerName(c.memory, u), ""
	kept := a.get(name)
	if kept != nil {
		known = kept.Tag
	}

	// A kept answer that cannot be read any more is asked for like one that is not there.
	var body json.RawMessage
	head, err := c.patiently(ctx, question{at: u, known: known}, &body)
	if errors.Is(err, errSame) {
		if json.Unmarshal(kept.Body, into) == nil {
			return kept.Head, nil
		}
		head, err = c.patiently(ctx, question{at: u}, &body)
	}
	if err != nil {
		return head, err
	}

	if err := c.parse(body, http.StatusOK, into); err != nil {
		return head, err
	}
	if tag := head.Get("ETag"); tag != "" {
		a.put(name, &keptAnswer{Tag: tag, Head: onlyOf(head, keptHead), Body: body})
	}
	return head, nil
}

// onlyOf is some of the fields of a head.
func onlyOf(head http.Header, names []string) http.Header {
	out := http.Header{}
	for _, name := range names {
		if values := head.Values(name); len(values) > 0 {
			out[http.CanonicalHeaderKey(name)] = slices.Clone(values)
		}
	}
	return out
}

// parse reads the JSON of an answer.
func (c *client) parse(text []byte, status int, into any) error {
	// Gerrit puts this before its answers, so that no browser runs them as a script.
	text = bytes.TrimPrefix(text, []byte(")]}'"))
	if err := json.Unmarshal(text, into); err != nil {
		return refusal(InvalidResponse, status, "an answer of %s at %s is not the JSON that its API describes", c.product, c.base.Host)
	}
	return nil
}
