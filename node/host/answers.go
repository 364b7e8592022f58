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
	maxAnswers    = 10_000  // cached answers on a node
	maxAnswerSize = 1 << 20 // bytes of a cached answer
)

// Answers cache versioned answers of hosts, in a directory of the node. The next request sends the
// version, and the host may answer that nothing changed, which some hosts do not count as a call.
// The cache survives restarts. An unreadable answer is requested again; one that cannot be written
// is not cached. The least recently used are removed first. Answers are safe for concurrent use.
type Answers struct {
	dir   string
	limit int

	mu   sync.Mutex        // guards the fields below
	uses map[string]uint64 // number of the last use, by name; nil: directory not read yet
	last uint64            // number of the last use of all
}

// NewAnswers returns the answers in a directory, which need not exist yet.
func NewAnswers(dir string) *Answers { return &Answers{dir: dir, limit: maxAnswers} }

// cachedAnswer is the content of an answer's file.
type cachedAnswer struct {
	Tag  string      // version, as the host names it
	Head http.Header // headers about the next page and missing entries
	Body json.RawMessage
}

// cachedHeaders are the headers that belong to the answer and not to the call.
var cachedHeaders = []string{"Link", "X-Total-Count", "X-Github-Sso"}

// answerName returns the file name of an answer. It depends on the credential's name in the
// configuration, and never on the secret. The host decides whether a new secret may read the same.
func answerName(credential string, u *url.URL) string {
	sum := sha256.Sum256([]byte(credential + "\x00" + u.String()))
	return hex.EncodeToString(sum[:])
}

// readDir reads the directory at the first call: the start of a node must not wait for thousands of
// files. Callers hold the mutex.
func (a *Answers) readDir() {
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
		// Remove files that a crash left half written. Their names have another length.
		if len(f.name) != 2*sha256.Size {
			os.Remove(filepath.Join(a.dir, f.name))
			continue
		}
		a.recordUse(f.name)
	}
	a.dropLeastUsed()
}

// recordUse records a use. Callers hold the mutex.
func (a *Answers) recordUse(name string) {
	a.last++
	a.uses[name] = a.last
}

// dropLeastUsed removes the least recently used answers beyond the limit. Callers hold the mutex.
func (a *Answers) dropLeastUsed() {
	for len(a.uses) > a.limit {
		oldest := ""
		for name, used := range a.uses {
			if oldest == "" || used < a.uses[oldest] {
				oldest = name
			}
		}
		a.dropAnswer(oldest)
	}
}

// dropAnswer removes an answer. Callers hold the mutex.
func (a *Answers) dropAnswer(name string) {
	delete(a.uses, name)
	os.Remove(filepath.Join(a.dir, name))
}

// load returns a cached answer, or nil.
func (a *Answers) load(name string) *cachedAnswer {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.readDir()
	if a.uses[name] == 0 {
		return nil
	}

	answer, err := readAnswer(filepath.Join(a.dir, name))
	if err != nil {
		a.dropAnswer(name) // the host is asked again
		return nil
	}
	a.recordUse(name)
	return answer
}

// readAnswer reads and checks the file of a cached answer.
func readAnswer(path string) (*cachedAnswer, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()

	// The checksum at the end of the stream detects damage.
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(z, 2*maxAnswerSize))
	if err != nil {
		return nil, err
	}

	answer := &cachedAnswer{}
	return answer, json.Unmarshal(text, answer)
}

// store stores an answer in place of the last one.
func (a *Answers) store(name string, answer *cachedAnswer) {
	// Large answers are not cached, so that the total size is limited.
	if len(answer.Body) > maxAnswerSize {
		return
	}
	text, err := json.Marshal(answer)
	if err != nil {
		return
	}

	// Compress before taking the lock, because lists of repositories are large.
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	z.Write(text)
	z.Close()

	a.mu.Lock()
	defer a.mu.Unlock()
	a.readDir()
	if a.writeFile(name, b.Bytes()) {
		a.recordUse(name)
		a.dropLeastUsed()
	}
}

// writeFile replaces a file in one step, and reports whether it could. A crash may leave a temporary
// file, which the next start removes. Callers hold the mutex.
func (a *Answers) writeFile(name string, data []byte) bool {
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

// cacheKeyOf returns the part of a cached answer's name that stands for a connection's credential.
func cacheKeyOf(token *config.Token) string {
	if token == nil {
		return "nobody"
	}
	return "token " + budgetKey(token)
}

// errSame is the error for an answer that has not changed.
var errSame = errors.New("the answer has not changed")

// getCached requests JSON and decodes it. It sends the version of the cached answer, and uses that
// answer if the host says it is unchanged.
func (c *client) getCached(ctx context.Context, u *url.URL, into any) (http.Header, error) {
	a := c.tools.Answers
	// Without a name, the cache could not tell the answers for different credentials apart.
	if a == nil || c.cacheKey == "" {
		return c.get(ctx, u, into)
	}

	name := answerName(c.cacheKey, u)
	cached, version := a.load(name), ""
	if cached != nil {
		version = cached.Tag
	}

	// If the cached answer cannot be decoded any more, ask without its version.
	var body json.RawMessage
	head, err := c.callWithRetry(ctx, apiCall{at: u, version: version}, &body)
	if errors.Is(err, errSame) {
		if json.Unmarshal(cached.Body, into) == nil {
			return cached.Head, nil
		}
		head, err = c.callWithRetry(ctx, apiCall{at: u}, &body)
	}
	if err != nil {
		return head, err
	}

	if err := c.parse(body, http.StatusOK, into); err != nil {
		return head, err
	}
	if tag := head.Get("ETag"); tag != "" {
		a.store(name, &cachedAnswer{Tag: tag, Head: selectHeaders(head, cachedHeaders), Body: body})
	}
	return head, nil
}

// selectHeaders returns the named fields of a header.
func selectHeaders(head http.Header, names []string) http.Header {
	out := http.Header{}
	for _, name := range names {
		if values := head.Values(name); len(values) > 0 {
			out[http.CanonicalHeaderKey(name)] = slices.Clone(values)
		}
	}
	return out
}

// parse decodes a JSON answer.
func (c *client) parse(text []byte, status int, into any) error {
	// Gerrit's answers begin with this, so that no browser runs them as scripts.
	text = bytes.TrimPrefix(text, []byte(")]}'"))
	if err := json.Unmarshal(text, into); err != nil {
		return refusal(InvalidResponse, status, "an answer of %s at %s is not the JSON that its API describes", c.product, c.base.Host)
	}
	return nil
}
