package git

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"
	"time"
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

// FetchOptions bounds a fetch. The zero value is useful.
type FetchOptions struct {
	Timeout time.Duration // of the whole fetch; 0 is two hours
	Stall   time.Duration // with next to nothing received; 0 is 60 s
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
// then the address. The credential goes into an address rewritten by
// configuration, which lives in the environment.
func commandFor(remote Remote, o FetchOptions, args ...string) (*command, string, error) {
	plain, cred, err := remote.split()
	if err != nil {
		return nil, "", err
	}
	c := &command{args: args, writes: true}
	seconds := max(1, int(o.stall()/time.Second))
	c.config = append(c.config, "http.lowSpeedLimit", "1", "http.lowSpeedTime", strconv.Itoa(seconds))
	if cred != (Credential{}) {
		u, _ := url.Parse(plain)
		base := u.Scheme + "://" + u.Host + "/"
		full := url.URL{Scheme: u.Scheme, Host: u.Host, Path: "/", User: url.UserPassword(cred.User, cred.Password)}
		c.config = append(c.config, "url."+full.String()+".insteadOf", base)
		c.secrets = []string{full.User.String(), cred.Password, url.QueryEscape(cred.Password), url.PathEscape(cred.Password)}
	}
	return c, plain, nil
}

// uploadPack is what serves a local directory: it only reads, and without
// looking for deltas, as the copy is not worth the time.
const uploadPack = `--upload-pack=git -c 'safe.directory=*' -c pack.window=0 upload-pack`

// maxRefs is how many references a remote may have.
const maxRefs = 2_000_000

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

// list asks a remote for its references.
func list(ctx context.Context, remote Remote, o FetchOptions) (*listing, error) {
	c, addr, err := commandFor(remote, o, "ls-remote", "--quiet", "--symref", uploadPack, "--end-of-options")
	if err != nil {
		return nil, err
	}
	c.args = append(c.args, addr, "HEAD", "refs/heads/*", "refs/tags/*")
	c.limit = 1 << 30
	c.timeout = min(o.timeout(), o.stall()+5*time.Minute)
	l := &listing{refs: map[string]string{}}
	err = c.stream(ctx, func(r io.Reader) error { return l.read(r) })
	if err == nil && len(l.refs) == 0 && l.head == "" && !strings.HasPrefix(addr, "file:") {
		err = c.speaksGit(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", addr, err)
	}
	return l, nil
}

// speaksGit asks once more, with the packets of git's protocol shown: a page
// of a proxy or a portal has no references either, and is no reason to empty
// a mirror.
func (c *command) speaksGit(ctx context.Context) error {
	k := *c
	k.env = []string{"GIT_TRACE_PACKET=1"}
	ctx, cancel := context.WithTimeout(ctx, k.timeout)
	defer cancel()
	cmd, said := k.process(ctx)
	release, err := start(cmd, k.writes)
	if err != nil {
		return err
	}
	defer release()
	if err := cmd.Wait(); err != nil {
		return k.failure(err, said)
	}
	if !strings.Contains(said.String(), "packet:") {
		return fmt.Errorf("what answers there is no git server: %w", ErrNoRemote)
	}
	return nil
}

func (l *listing) read(r io.Reader) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		value, name, ok := strings.Cut(lines.Text(), "\t")
		switch {
		case !ok:
		case name == "HEAD" && strings.HasPrefix(value, "ref: "):
			l.symref = value[len("ref: "):]
		case name == "HEAD":
			l.head = value
		case strings.HasSuffix(name, "^{}"):
		case strings.HasPrefix(name, "refs/heads/"), strings.HasPrefix(name, "refs/tags/"):
			l.refs[name] = value
			if len(l.refs) > maxRefs {
				return fmt.Errorf("more than %d branches and tags: %w", maxRefs, ErrTooLarge)
			}
		}
	}
	return lines.Err()
}

// Probe asks a remote for its references: the error is nil when the
// repository is there and may be read, also when it is empty.
func Probe(ctx context.Context, remote Remote, o FetchOptions) error {
	_, err := list(ctx, remote, o)
	return err
}
