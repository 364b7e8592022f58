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

// Credential gives access to a remote. Git gets it in the environment, never on a command line, and
// nothing prints it.
type Credential struct {
	User, Password string
}

// String omits the password.
func (c Credential) String() string {
	if c == (Credential{}) {
		return "none"
	}
	return "***"
}

// GoString omits the password.
func (c Credential) GoString() string { return c.String() }

// Remote is the repository that a mirror is fetched from.
type Remote struct {
	URL        string // http, https or file; a user and password in it count as Credential
	Credential Credential
	Within     string // for a file address: no path in the repository may lead out of this directory; empty means its parent
}

// String returns the address without secrets.
func (r Remote) String() string {
	plain, _, err := r.split()
	if err != nil {
		return "(unreadable address)"
	}
	return plain
}

// GoString is like String, so that %#v does not print the credential.
func (r Remote) GoString() string { return r.String() }

// split returns the address without user and password, and the credential: that of r, otherwise the
// one in the address. A file address has none.
func (r Remote) split() (plain string, c Credential, err error) {
	u, err := url.Parse(r.URL)
	if err != nil {
		return "", Credential{}, errors.New("the address of the remote cannot be read") // err would contain the address
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

// local returns the directory of a file address.
func (r Remote) local() (dir string, ok bool) {
	u, err := url.Parse(r.URL)
	if err != nil || u.Scheme != "file" || u.Host != "" || !strings.HasPrefix(u.Path, "/") {
		return "", false
	}
	return filepath.Clean(u.Path), true
}

// source is the repository that git fetches from.
type source struct {
	Remote
	shown string   // the address to show; empty means that of Remote
	local *foreign // the repository that Remote is a view of; nil for a server
}

// String returns the address to show, without secrets.
func (s source) String() string { return cmp.Or(s.shown, s.Remote.String()) }

// FetchOptions limits a fetch. The zero value is useful.
type FetchOptions struct {
	Timeout time.Duration // time limit for the whole fetch; 0 means two hours
	Stall   time.Duration // time limit for receiving next to nothing; 0 means 60 s
	Most    int64         // limit on the received bytes; 0 means a quarter of the volume's free space that no other fetch has reserved
}

// timeout returns the time limit for the whole fetch.
func (o FetchOptions) timeout() time.Duration {
	if o.Timeout <= 0 {
		return 2 * time.Hour
	}
	return o.Timeout
}

// stall returns the time limit for receiving next to nothing.
func (o FetchOptions) stall() time.Duration {
	if o.Stall <= 0 {
		return time.Minute
	}
	return o.Stall
}

// commandFor prepares a run of git that connects to the remote. The address follows the arguments.
// Git gets the credential in its environment, which other users of the machine cannot read, and
// gives it only to that host, when the host asks. Other ways would leak it: git puts a rewritten
// address in the arguments of the program that connects, which every user can read, and it sends an
// extra header to any host that it is redirected to.
func commandFor(remote Remote, o FetchOptions, args ...string) (*run.Command, string, error) {
	plain, cred, err := remote.split()
	if err != nil {
		return nil, "", err
	}

	c := &run.Command{Args: args, Writes: true}
	seconds := max(1, int(o.stall()/time.Second))
	c.Config = append(c.Config, "http.lowSpeedLimit", "1", "http.lowSpeedTime", strconv.Itoa(seconds))

	u, _ := url.Parse(plain) // split has parsed it
	if u.Scheme != "file" {
		proxy, secrets, err := run.Proxied(u)
		if err != nil {
			return nil, "", errors.New("the address of a proxy in HTTP_PROXY or HTTPS_PROXY cannot be used") // err may contain a password
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

// tellCredential is the command that git runs when a host asks for a credential. It contains no
// secret: the shell reads the credential from its environment.
const tellCredential = `!tell() { test "$1" = get && printf 'username=%s\npassword=%s\n' "$SHOAL_GIT_USER" "$SHOAL_GIT_PASSWORD"; }; tell`

// uploadPack is the command that serves the view of a local directory. It searches no deltas, because
// copying bytes is faster.
const uploadPack = `--upload-pack=git -c pack.window=0 upload-pack`

// maxRefBytes limits the total length of the names of all references of a remote.
const maxRefBytes = 64 << 20

// listing is what a remote says about itself.
type listing struct {
	refs   map[string]string // full name to object id, of branches and tags
	head   string            // object id of HEAD; empty when unborn
	symref string            // full name of the branch that HEAD names; empty if detached or unknown
}

// format returns the hash algorithm of the remote, by the length of an id; empty if it has no
// references.
func (l *listing) format() string {
	for _, oid := range l.refs {
		if len(oid) == 64 {
			return "sha256"
		}
		return "sha1"
	}
	return ""
}

// listing returns the limits for the listing of a fetch. Servers answer within a second or two, and
// other fetches of the repository should not wait long for a silent one.
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

	// Without references, the repository is empty or there is no repository at all.
	if err == nil && len(l.refs) == 0 && l.head == "" && !strings.HasPrefix(addr, "file:") {
		err = checkSpeaksGit(ctx, *c)
	}
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", from, err)
	}
	return l, nil
}

// checkSpeaksGit repeats the listing and returns an error if no packets of git's protocol came. A
// web page, such as the sign-in page of a proxy, lists no references either, and must not empty the
// mirror.
func checkSpeaksGit(ctx context.Context, c run.Command) error {
	// GIT_TRACE_PACKET prints packets only for git's own protocol.
	c.Env = append(slices.Clip(c.Env), "GIT_TRACE_PACKET=1")
	said, err := c.Complaints(ctx)
	if err == nil && !strings.Contains(said, "packet:") {
		err = fmt.Errorf("what answers there is no git server: %w", ErrNoRemote)
	}
	return err
}

// read parses the output of git ls-remote:
//
//	ref: refs/heads/main TAB HEAD
//	<oid> TAB HEAD
//	<oid> TAB refs/heads/main
//	<oid> TAB refs/tags/v1
//	<oid> TAB refs/tags/v1^{}        the target of the tag: ignored
func (l *listing) read(r io.Reader) error {
	lines, nameBytes := bufio.NewScanner(r), 0
	lines.Buffer(nil, 1<<20)

	for lines.Scan() {
		value, name, ok := strings.Cut(lines.Text(), "\t")

		// Skip lines without a name, and the commits that tags lead to.
		switch {
		case !ok:
		case name == "HEAD" && strings.HasPrefix(value, "ref: "):
			l.symref = value[len("ref: "):]
		case name == "HEAD":
			l.head = value
		case strings.HasSuffix(name, "^{}"):
		case strings.HasPrefix(name, "refs/heads/"), strings.HasPrefix(name, "refs/tags/"):
			l.refs[name] = value

			// The remote decides how many references there are, so limit their memory.
			nameBytes += len(name)
			if len(l.refs) > pack.MaxRefs || nameBytes > maxRefBytes {
				return errManyRefs
			}
		}
	}
	return lines.Err()
}

// Probe asks a remote for its references. The error is nil if the repository exists and may be
// read, even if it is empty.
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
