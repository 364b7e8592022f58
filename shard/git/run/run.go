package run

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Installed reports whether git is on PATH. Without git nothing can be fetched, indexed or read.
func Installed() bool {
	_, err := exec.LookPath("git")
	return err == nil
}

// MaxDepth is the greatest depth of directories that a tree may have.
const MaxDepth = 512

// maxStderr is how many bytes of git's error output are kept.
const maxStderr = 8 << 10

// Command is one run of git.
type Command struct {
	Dir     string // the repository; "" means none
	Args    []string
	Config  []string // keys and values, in addition to the fixed ones
	Env     []string // in addition to the fixed ones
	Stdin   io.Reader
	Limit   int64         // bytes of standard output; 0 means 64 MiB
	Timeout time.Duration // 0 means a minute
	Writes  bool          // the run writes to the repository, so it is killed when this process ends
	Stored  int64         // bytes of objects outside of Dir that the run works on
	Memory  int64         // bytes that the run may use; 0 means a limit by the size of its objects, see Allowance
	File    int64         // greatest size of each file that it may write; 0 means no limit
	Secrets []string      // texts that must never appear in an error
}

// fixedConfig applies to every run. Git reads no other configuration file than the mirror's own.
var fixedConfig = []string{
	"core.askPass", "",
	"core.hooksPath", "/dev/null",
	"core.fsmonitor", "false",
	"core.quotePath", "false",
	"core.bigFileThreshold", "16m",
	"credential.helper", "",
	"gc.auto", "0",
	"pack.threads", "4",
	"maintenance.auto", "false",
	"log.showSignature", "false",
	"mailmap.blob", "", // authors are as in their commits, unless a run says otherwise
	"diff.renameLimit", "2000",
	"core.maxTreeDepth", strconv.Itoa(MaxDepth),
	"transfer.unpackLimit", "1",
	"submodule.recurse", "false",
}

// passedVariables are the environment variables that git gets unchanged: where programs are, and
// which certificate authorities to trust.
var passedVariables = []string{"PATH", "TMPDIR", "SSL_CERT_FILE", "SSL_CERT_DIR", "GIT_SSL_CAINFO", "GIT_SSL_CAPATH"}

// environ returns the whole environment of a run.
func (c *Command) environ() []string {
	env := []string{
		"HOME=/nonexistent", // no .netrc, no .gitconfig

		// The output is parsed, so fix the language and the time zone.
		"LC_ALL=C",
		"TZ=UTC",

		// Configuration comes only from here, never from the machine.
		"GIT_CONFIG_NOSYSTEM=1",
		"GIT_CONFIG_GLOBAL=/dev/null",
		"GIT_ATTR_NOSYSTEM=1",

		// Nobody can type a password, and only these protocols are allowed.
		"GIT_TERMINAL_PROMPT=0",
		"GIT_ALLOW_PROTOCOL=http:https:file",
		"GIT_PROTOCOL_FROM_USER=0",

		// Reading must not lock, replace or fetch anything, and a path is not a pattern.
		"GIT_OPTIONAL_LOCKS=0",
		"GIT_NO_REPLACE_OBJECTS=1",
		"GIT_NO_LAZY_FETCH=1",
		"GIT_LITERAL_PATHSPECS=1",

		"GIT_PAGER=cat",
		"GIT_ADVICE=0",
	}

	for _, name := range passedVariables {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}

	env = append(env, caVariables()...)

	if c.Dir != "" {
		env = append(env, "GIT_DIR="+c.Dir)
	}

	// Configuration is passed in the environment too.
	n := 0
	for _, pairs := range [][]string{fixedConfig, c.Config} {
		for i := 0; i+1 < len(pairs); i += 2 {
			k := strconv.Itoa(n)
			env = append(env, "GIT_CONFIG_KEY_"+k+"="+pairs[i], "GIT_CONFIG_VALUE_"+k+"="+pairs[i+1])
			n++
		}
	}

	env = append(env, "GIT_ALLOC_LIMIT="+strconv.FormatInt(c.Allowance(), 10))
	env = append(env, c.Env...)
	return append(env, "GIT_CONFIG_COUNT="+strconv.Itoa(n))
}

// newProcess returns a command that is ready to start, and the buffer for the end of its error
// output. When ctx ends, the command kills its whole process group.
func (c *Command) newProcess(ctx context.Context) (*exec.Cmd, *tail) {
	cmd := exec.CommandContext(ctx, "git", c.Args...)

	// Git must not find a repository in a directory above the working directory.
	cmd.Dir = "/"
	cmd.Env = c.environ()
	cmd.Stdin = c.Stdin

	complaint := &tail{}
	cmd.Stderr = complaint

	// Processes that git starts may outlive it and keep its output open, so do not wait long for
	// them.
	cmd.SysProcAttr = ownGroup(c.Writes)
	cmd.Cancel = func() error { return killGroup(cmd.Process) }
	cmd.WaitDelay = 5 * time.Second
	return cmd, complaint
}

// Output runs the command and returns what it prints. If that is more than the limit, the error is
// ErrTooLarge.
func (c *Command) Output(ctx context.Context) ([]byte, error) {
	var out []byte
	err := c.Stream(ctx, func(r io.Reader) error {
		var err error
		out, err = io.ReadAll(r)
		return err
	})
	return out, err
}

// Run runs the command for its effect.
func (c *Command) Run(ctx context.Context) error {
	_, err := c.Output(ctx)
	return err
}

// ErrStop, returned by the reader of a stream, ends the stream early without an error.
var ErrStop = errors.New("stop")

// Stream runs the command and passes its output to read. If read fails, the command is killed and
// the error returned, unless it is ErrStop. If the command fails after read succeeded, that is an
// error too.
func (c *Command) Stream(ctx context.Context, read func(io.Reader) error) error {
	timeout := c.Timeout
	if timeout == 0 {
		timeout = time.Minute
	}
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("git %s took longer than %v: %w", c.name(), timeout, context.DeadlineExceeded))
	defer cancel()

	cmd, complaint := c.newProcess(ctx)
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return fmt.Errorf("git %s: %w", c.name(), err)
	}

	release, err := c.startLimited(cmd)
	if err != nil {
		return fmt.Errorf("git %s: %w", c.name(), err)
	}
	defer release()

	limit := c.Limit
	if limit == 0 {
		limit = 64 << 20
	}

	bounded := &limitedReader{r: stdout, left: limit}
	readErr := read(bounded)
	if readErr == nil && bounded.exceeded {
		readErr = ErrTooLarge
	}

	// After an error nobody reads more of the output, and git would wait forever to write it.
	if readErr != nil {
		killGroup(cmd.Process)
		cmd.Wait()

		if errors.Is(readErr, ErrStop) {
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return readErr
	}

	// If the context has ended, that is the cause, not the exit code.
	if err := cmd.Wait(); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return c.newFailure(err, complaint)
	}
	return nil
}

// Complaints runs the command and returns the end of what it prints to its error output.
func (c *Command) Complaints(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()

	cmd, said := c.newProcess(ctx)
	release, err := c.startLimited(cmd)
	if err != nil {
		return "", err
	}
	defer release()

	if err := cmd.Wait(); err != nil {
		return "", c.newFailure(err, said)
	}
	return said.String(), nil
}

// name returns the subcommand, for messages.
func (c *Command) name() string {
	if len(c.Args) == 0 {
		return ""
	}
	return c.Args[0]
}

// newFailure returns the error of a run that failed: err is the error of Wait, complaint the error
// output.
func (c *Command) newFailure(err error, complaint *tail) error {
	f := &Failure{Command: c.name(), Exit: -1, Stderr: removeSecrets(complaint.String(), c.Secrets)}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		f.Exit = exit.ExitCode()
	}

	// A run that was killed may have printed nothing.
	if f.Stderr == "" {
		f.Stderr = err.Error()
	}
	f.kind = kindOf(f.Stderr)
	return f
}

// Failure is a run of git that ended with an error.
type Failure struct {
	Command string // the subcommand
	Exit    int    // -1 if it was killed
	Stderr  string // the end of its error output, without secrets
	kind    error
}

// Error returns one line: the last complaint of git.
func (f *Failure) Error() string {
	line := ""
	for l := range strings.Lines(f.Stderr) {
		l = strings.TrimSpace(l)

		// Take the last line with such a prefix, or else the first line.
		if l != "" && (line == "" || strings.HasPrefix(l, "fatal:") || strings.HasPrefix(l, "error:")) {
			line = l
		}
	}

	if f.kind != nil {
		return fmt.Sprintf("git %s: %v (%s)", f.Command, f.kind, line)
	}
	return fmt.Sprintf("git %s: %s", f.Command, line)
}

// Unwrap returns the kind of the failure, which may be nil.
func (f *Failure) Unwrap() error { return f.kind }

// kinds maps what git and curl print in the C locale to the cause of the failure.
var kinds = []struct {
	pattern *regexp.Regexp
	kind    error
}{
	{regexp.MustCompile(`HTTP code 407 from proxy|tunnel failed, response 407|returned error: 407`), ErrProxy},
	{regexp.MustCompile(`(?i)certificate verif|certificate problem|certificate subject name|certificate has expired|SSL: no alternative certificate`), ErrCertificate},
	{regexp.MustCompile(`could not read (Username|Password)|Authentication failed|returned error: 40[13]|terminal prompts disabled`), ErrAuth},
	{regexp.MustCompile(`unknown repository extension|Expected git repo version|unknown object format|unknown ref storage format`), ErrUnknown},
	{regexp.MustCompile(`returned error: 404|repository '.*' not found|does not appear to be a git repository|not a git repository|No such file or directory`), ErrNoRemote},
	{regexp.MustCompile(`possible repository corruption on the remote side`), ErrDamaged},
	{regexp.MustCompile(`^signal: segmentation fault`), errCrashed}, // a git without core.maxTreeDepth
	{regexp.MustCompile(`exceeded maximum allowed tree depth`), ErrDeep},
	{regexp.MustCompile(`(?i)out of memory|attempting to allocate .* over limit|cannot allocate memory|unable to create thread`), memoryError{}},
	{regexp.MustCompile(`Operation too slow|Operation timed out|Connection timed out|Timeout was reached`), ErrStalled},
}

// kindOf returns the kind of the error that git has printed; nil if no pattern in kinds matches.
func kindOf(stderr string) error {
	for _, k := range kinds {
		if k.pattern.MatchString(stderr) {
			return k.kind
		}
	}
	return nil
}

// inURL matches a user, and perhaps a password, in an address.
var inURL = regexp.MustCompile(`://[^/\s'"]*@`)

// removeSecrets removes secrets from a text that git printed.
func removeSecrets(s string, secrets []string) string {
	s = inURL.ReplaceAllString(s, "://")
	for _, secret := range secrets {
		if secret != "" {
			s = strings.ReplaceAll(s, secret, "***")
		}
	}
	return strings.ToValidUTF8(s, "?")
}

// tail is a writer that stores the last maxStderr bytes.
type tail struct{ buf []byte }

// Write appends p, and drops all but the last maxStderr bytes.
func (t *tail) Write(p []byte) (int, error) {
	n := len(p)
	if n > maxStderr {
		p = p[n-maxStderr:]
	}
	if over := len(t.buf) + len(p) - maxStderr; over > 0 {
		t.buf = append(t.buf[:0], t.buf[over:]...)
	}
	t.buf = append(t.buf, p...)
	return n, nil
}

// String returns the stored text without progress lines.
func (t *tail) String() string {
	var b strings.Builder
	for _, l := range bytes.FieldsFunc(t.buf, func(r rune) bool { return r == '\n' || r == '\r' }) {
		if !bytes.Contains(l, []byte("% (")) {
			b.Write(l)
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// limitedReader is a reader that fails if the stream is longer than allowed.
type limitedReader struct {
	r        io.Reader
	left     int64 // bytes that may still be read
	exceeded bool  // the stream is longer than allowed
}

// Read reads from the stream, and returns ErrTooLarge once it is longer than allowed.
func (l *limitedReader) Read(p []byte) (int, error) {
	// At the limit, the stream must end: try to read one more byte.
	if l.left <= 0 {
		n, err := l.r.Read(p[:min(1, len(p))])
		if n > 0 {
			l.exceeded = true
			return 0, ErrTooLarge
		}
		return 0, err
	}

	if int64(len(p)) > l.left {
		p = p[:l.left]
	}
	n, err := l.r.Read(p)
	l.left -= int64(n)
	return n, err
}
