package git

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/shoalsearch/shoal/shard/git/pack"
	"github.com/shoalsearch/shoal/shard/git/run"
)

// Credential opens a remote. It is handed to git in the environment, never
// on a command line, and never printed.
type Credential struct {
	User, Password string
}

// String hides the password.
func (c Credential) String() string {
	if c == (Credential{}) {
		return "none"
	}
	return "***"
}

// GoString hides the password.
func (c Credential) GoString() string { return c.String() }

// Remote is where a mirror is fetched from.
type Remote struct {
	URL        string // http, https or file; a user and password in it count as Credential
	Credential Credential
	Within     string // of a file address: the directory that nothing of the repository may lead out of; empty is the one above it
}

// String is the address without any secret.
func (r Remote) String() string {
	plain, _, err := r.split()
	if err != nil {
		return "(unreadable address)"
	}
	return plain
}

// GoString is String.
func (r Remote) GoString() string { return r.String() }

// split takes user and password out of the address.
func (r Remote) split() (plain string, c Credential, err error) {
	u, err := url.Parse(r.URL)
	if err != nil {
		return "", Credential{}, errors.New("the address of the remote cannot be read") // err would show it
	}

	c = r.Credential
	if u.User != nil {
		if c == (Credential{}) {
			c.User = u.User.Username()
			c.Password, _ = u.User.Password()
		}
		u.User = nil
	}

	switch {
	case (u.Scheme == "http" || u.Scheme == "https") && u.Host != "":
	case u.Scheme == "file" && u.Host == "" && strings.HasPrefix(u.Path, "/"):
		c = Credential{}
	default:
		return "", Credential{}, fmt.Errorf("remotes are http, https or file addresses, not %q", u.Scheme)
	}
	return u.String(), c, nil
}

// local is the directory of a file address.
func (r Remote) local() (dir string, ok bool) {
	u, err := url.Parse(r.URL)
	if err != nil || u.Scheme != "file" || u.Host != "" || !strings.HasPrefix(u.Path, "/") {
		return "", false
	}
	return filepath.Clean(u.Path), true
}

// source is what git is told to fetch from.
type source struct {
	Remote
	shown string   // the address that people know; empty is that of Remote
	local *foreign // what Remote is a view of; nil for a server
}

// String is the address that people know, without any secret.
func (s source) String() string { return cmp.Or(s.shown, s.Remote.String()) }

// FetchOptions bounds a fetch. The zero value is useful.
type FetchOptions struct {
	Timeout time.Duration // of the whole fetch; 0 is two hours
	Stall   time.Duration // with next to nothing received; 0 is 60 s
	Most    int64         // bytes of what is received; 0 is a quarter of what is free on the volume and granted to no other fetch
}

func (o FetchOptions) timeout() time.Duration {
	if o.Timeout <= 0 {
		return 2 * time.Hour
	}
	return o.Timeout
}

func (o FetchOptions) stall() time.Duration {
	if o.Stall <= 0 {
		return time.Minute
	}
	return o.Stall
}

// commandFor prepares a run of git that talks to the remote: the arguments,
// then the address. The credential stands in the environment of git, which
// nobody else on the machine can read, and is given to that host alone, when it
// asks: git expands an address that it rewrites before it starts the program
// that connects, whose arguments everybody can read, and sends an extra header
// to wherever the host redirects it.
func commandFor(remote Remote, o FetchOptions, args ...string) (*run.Command, string, error) {
	plain, cred, err := remote.split()
	if err != nil {
		return nil, "", err
	}

	c := &run.Command{Args: args, Writes: true}
	seconds := max(1, int(o.stall()/time.Second))
	c.Config = append(c.Config, "http.lowSpeedLimit", "1", "http.lowSpeedTime", strconv.Itoa(seconds))

	u, _ := url.Parse(plain) // split has read it
	if u.Scheme != "file" {
		proxy, secrets, err := run.Proxied(u)
		if err != nil {
			return nil, "", errors.New("the address of a proxy in HTTP_PROXY or HTTPS_PROXY cannot be used") // err may show a password
		}
		c.Config = append(c.Config, "http.proxy", proxy)
		c.Secrets = append(c.Secrets, secrets...)
	}

	if cred != (Credential{}) {
		if strings.ContainsAny(cred.User+cred.Password, "\n\r\x00") {
			return nil, "", errors.New("the name or password for the remote has a line break in it")
		}
		c.Config = append(c.Config, "credential."+u.Scheme+"://"+u.Host+".helper", tellCredential)
		c.Env = append(c.Env, "SHOAL_GIT_USER="+cred.User, "SHOAL_GIT_PASSWORD="+cred.Password)
		c.Secrets = append(c.Secrets, run.Forms(cred.User, cred.Password)...)
	}
	return c, plain, nil
}

// tellCredential is run by git when a host asks who is there. It has no secret
// in it: the shell finds that in its environment.
const tellCredential = `!tell() { test "$1" = get && printf 'username=%s\npassword=%s\n' "$SHOAL_GIT_USER" "$SHOAL_GIT_PASSWORD"; }; tell`

// uploadPack is what serves the view of a local directory: it only reads, and
// without looking for deltas, as the copy is not worth the time.
const uploadPack = `--upload-pack=git -c pack.window=0 upload-pack`

// maxRefBytes is how long the names of all references of a remote may be.
const maxRefBytes = 64 << 20

// listing is what a remote says of itself.
type listing struct {
	refs   map[string]string // full name to object id, branches and tags
	head   string            // object id of HEAD; empty when unborn
	symref string            // where HEAD leads; empty when detached or unknown
}

// format is the hash algorithm of the remote; empty when it cannot be told.
func (l *listing) format() string {
	for _, oid := range l.refs {
		if len(oid) == 64 {
			return "sha256"
		}
		return "sha1"
	}
	return ""
}

// listing bounds the listing of a fetch. Servers answer it within a second or two: a
// silent one keeps other fetches of its repository waiting no longer.
func (o FetchOptions) listing() FetchOptions {
	o.Stall, o.Timeout = min(o.stall(), 20*time.Second), min(o.timeout(), 2*time.Minute)
	return o
}

// list asks a remote for its references.
func list(ctx context.Context, from source, o FetchOptions) (*listing, error) {
	o = o.listing()
	c, addr, err := commandFor(from.Remote, o, "ls-remote", "--quiet", "--symref", uploadPack, "--end-of-options")
	if err != nil {
		return nil, err
	}
	c.Args = append(c.Args, addr, "HEAD", "refs/heads/*", "refs/tags/*")
	c.Limit = 1 << 30
	c.Timeout = o.Timeout

	l := &listing{refs: map[string]string{}}
	err = c.Stream(ctx, func(r io.Reader) error { return l.read(r) })

	// An empty repository, or no repository at all.
	if err == nil && len(l.refs) == 0 && l.head == "" && !strings.HasPrefix(addr, "file:") {
		err = speaksGit(ctx, *c)
	}
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", from, err)
	}
	return l, nil
}

// speaksGit runs the same listing once more and looks for packets of git's
// protocol. A web page, as of a proxy that asks for a sign-in, lists no
// references either, and must not empty the mirror.
func speaksGit(ctx context.Context, c run.Command) error {
	// Only git's own protocol is told in packets.
	c.Env = append(slices.Clip(c.Env), "GIT_TRACE_PACKET=1")
	said, err := c.Complaints(ctx)
	if err == nil && !strings.Contains(said, "packet:") {
		err = fmt.Errorf("what answers there is no git server: %w", ErrNoRemote)
	}
	return err
}

// read parses what git ls-remote prints:
//
//	ref: refs/heads/main TAB HEAD
//	<oid> TAB HEAD
//	<oid> TAB refs/heads/main
//	<oid> TAB refs/tags/v1
//	<oid> TAB refs/tags/v1^{}        what the tag leads to: not kept
func (l *listing) read(r io.Reader) error {
	lines, held := bufio.NewScanner(r), 0
	lines.Buffer(nil, 1<<20)

	for lines.Scan() {
		value, name, ok := strings.Cut(lines.Text(), "\t")

		// Lines without a name, and what tags lead to, are passed over.
		switch {
		case !ok:
		case name == "HEAD" && strings.HasPrefix(value, "ref: "):
			l.symref = value[len("ref: "):]
		case name == "HEAD":
			l.head = value
		case strings.HasSuffix(name, "^{}"):
		case strings.HasPrefix(name, "refs/heads/"), strings.HasPrefix(name, "refs/tags/"):
			l.refs[name] = value

			// The other side decides how many there are: memory must not grow with it.
			held += len(name)
			if len(l.refs) > pack.MaxRefs || held > maxRefBytes {
				return errManyRefs
			}
		}
	}
	return lines.Err()
}

// Probe asks a remote for its references: the error is nil when the
// repository is there and may be read, also when it is empty.
func Probe(ctx context.Context, remote Remote, o FetchOptions) error {
	if dir, ok := remote.local(); ok {
		f, err := openForeign(dir, remote.Within)
		if err != nil {
			return fmt.Errorf("list %s: %w", remote, err)
		}
		f.close()
		return nil
	}

	_, err := list(ctx, source{Remote: remote}, o)
	return err
}
