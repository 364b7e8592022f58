package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/shoalsearch/shoal/api/auth"
	"github.com/shoalsearch/shoal/api/reply"
)

const usualURL = "http://127.0.0.1:7700"

// usualDirs are the default data directories: of `shoal serve`, and of a system service.
var usualDirs = []string{"./data", "/var/lib/shoal"}

// client calls a node's HTTP API for the commands.
type client struct {
	base string // without a trailing slash
	name string // of the node, for messages; "" means base
	key  string // "" for none
	hint string // advice if a request without a key fails
	http *http.Client

	answers io.Writer // gets every answer unchanged; nil for none
}

// clientFlags are the flags for the node's address and the credentials.
type clientFlags struct {
	url, key, dataDir, caFile string
	cmd                       *cobra.Command // the flags' command
	getenv                    func(string) string
}

func (f *clientFlags) add(cmd *cobra.Command, getenv func(string) string) {
	f.cmd, f.getenv = cmd, getenv
	fs := cmd.Flags()
	fs.StringVar(&f.url, "url", getenv("SHOAL_URL"), "address of any node [SHOAL_URL] (default: the cluster of shoal login, else the node on this host by its socket, else "+usualURL+")")
	fs.StringVar(&f.key, "key", getenv("SHOAL_API_KEY"), "API key [SHOAL_API_KEY] (not needed after shoal login, nor by who may open the node's socket, unless SHOAL_OPERATOR_SOCKET is false)")
	fs.StringVar(&f.dataDir, "data-dir", getenv("SHOAL_DATA_DIR"), "data directory of the node on this host, where its socket is [SHOAL_DATA_DIR] (default "+strings.Join(usualDirs, " or ")+")")
	addCAFile(cmd, &f.caFile, getenv)
	// --help must not print a key from the environment.
	if flag := fs.Lookup("key"); flag.DefValue != "" {
		flag.DefValue = "from SHOAL_API_KEY"
	}
}

// addCAFile adds the flag for trusted certificate authorities.
func addCAFile(cmd *cobra.Command, file *string, getenv func(string) string) {
	cmd.Flags().StringVar(file, "ca-file", getenv("SHOAL_CA_FILE"), "certificates of authorities to trust beside the system's [SHOAL_CA_FILE]")
}

// transport returns the transport for requests; nil means Go's default.
func (f *clientFlags) transport() (http.RoundTripper, error) {
	if f.caFile == "" {
		return nil, nil
	}
	text, err := os.ReadFile(f.caFile)
	if err != nil {
		return nil, fmt.Errorf("--ca-file: %w", err)
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("--ca-file %s: want certificates in PEM", f.caFile)
	}
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	return t, nil
}

// clientCommand gives cmd the flags for a node, and makes it call run with a client of the node. names
// says how the shell completes the first argument; a zero names completes nothing.
func clientCommand(getenv func(string) string, names naming, cmd *cobra.Command, run func(cmd *cobra.Command, c *client, args []string) error) *cobra.Command {
	var f clientFlags
	f.add(cmd, getenv)
	if names.path != "" {
		f.completeNames(names)
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := f.client()
		if err != nil {
			return err
		}
		return run(cmd, c, args)
	}
	return cmd
}

// actionCommand is clientCommand with the flag --json, which makes the command print the API's answers
// in place of its own output.
func actionCommand(getenv func(string) string, names naming, cmd *cobra.Command, run func(cmd *cobra.Command, c *client, args []string) error) *cobra.Command {
	var asJSON bool
	cmd = clientCommand(getenv, names, cmd, func(cmd *cobra.Command, c *client, args []string) error {
		if asJSON {
			c.answers = cmd.OutOrStdout()
			cmd.SetOut(io.Discard)
		}
		return run(cmd, c, args)
	})
	cmd.Flags().BoolVar(&asJSON, "json", false, "each answer of the API as it is, on a line")
	return cmd
}

// client makes the client for the flags. Without an address it uses the socket in this host's
// data directory: whoever can open it is the operator, so no key has to be sent.
func (f *clientFlags) client() (*client, error) {
	if err := f.fillFromContext(); err != nil {
		return nil, err
	}
	if f.url == "" {
		return f.localClient(), nil
	}
	u, err := url.Parse(f.url)
	if err != nil || !isWebURL(f.url) {
		return nil, fmt.Errorf("--url %q: want http://host:port", f.url)
	}

	// Warn but continue: a proxy on the way may add TLS.
	if f.key != "" && u.Scheme == "http" && !isLoopback(u.Hostname()) {
		fmt.Fprintln(f.cmd.ErrOrStderr(), "warning: the API key crosses the network in clear: use https")
	}

	transport, err := f.transport()
	if err != nil {
		return nil, err
	}
	return &client{
		base: strings.TrimSuffix(f.url, "/"),
		key:  f.key,
		hint: "on a node's host its user and root need no key: leave --url out there",
		http: &http.Client{Timeout: answerTimeout, Transport: transport},
	}, nil
}

// fillFromContext fills in the address and the credentials that `shoal login` has stored, where flags do
// not give them.
func (f *clientFlags) fillFromContext() error {
	// With a data directory the command uses that node's socket. With a URL and a key nothing is missing.
	if f.getenv == nil || f.url == "" && f.dataDir != "" || f.url != "" && f.key != "" {
		return nil
	}
	all, err := readContexts(f.getenv)
	if err != nil {
		return err
	}
	if f.url == "" && all.Current != "" {
		_, creds, err := all.lookUp(nil)
		if err != nil {
			return err
		}
		f.url = creds.URL
	}
	creds := all.credentialsAt(f.url)
	f.key, f.caFile = cmp.Or(f.key, creds.Key), cmp.Or(f.caFile, creds.CAFile)
	return nil
}

// answerTimeout is how long a command waits for an answer.
const answerTimeout = 10 * time.Minute

// localClient makes a client of the node on this host.
func (f *clientFlags) localClient() *client {
	dir, hint := f.socketDir()
	// If no socket is found, a node may still listen on the usual port and accept a key.
	if dir == "" {
		return &client{base: usualURL, key: f.key, hint: hint, http: &http.Client{Timeout: answerTimeout}}
	}

	// Every connection goes to the socket, whatever the URL's host.
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) { return auth.DialSocket(ctx, dir) }
	return &client{
		base: "http://localhost",
		name: "the node of " + dir,
		key:  f.key,
		http: &http.Client{Timeout: answerTimeout, Transport: &http.Transport{DialContext: dial}},
	}
}

// socketDir returns the data directory with a node's socket. If there is none, dir is "" and problem is
// a sentence that says where it searched.
func (f *clientFlags) socketDir() (dir, problem string) {
	dirs := usualDirs
	if f.dataDir != "" {
		dirs = []string{f.dataDir}
	}

	for _, dir := range dirs {
		if auth.HasSocket(dir) {
			return dir, ""
		}
	}
	return "", "there is no socket of a running node in " + strings.Join(dirs, " or ") + ": name its --data-dir, or be its user"
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// apiError is an error response of the API.
type apiError struct {
	Status  int    `json:"statusCode"`
	Code    string `json:"errorCode"`
	Message string `json:"message"`
}

func (e *apiError) Error() string {
	// Say how to pass a key to a command, because the API's message does not.
	if e.Code == "NOT_AUTHENTICATED" {
		return strings.TrimSuffix(e.Message, ".") + ". Make an API key with `shoal key create` on a node's host and sign in with it by `shoal login URL`, or pass it with --key or SHOAL_API_KEY."
	}

	// Leave out what makes no sense to a user, who has given flags.
	for _, prefix := range []string{"Schema validation failed with: ", "Query params validation failed with: "} {
		if text, ok := strings.CutPrefix(e.Message, prefix); ok {
			return text
		}
	}
	return e.Message
}

// nodeName returns the node's name for messages.
func (c *client) nodeName() string { return cmp.Or(c.name, c.base) }

// rawBody is a request body that is sent unchanged.
type rawBody []byte

// call sends a request with body (nil for none), decodes the answer into out (nil ignores it), and
// prints the answer unchanged to c.answers if that is set.
func (c *client) call(ctx context.Context, method, path string, body, out any) error {
	resp, err := c.send(ctx, method, path, body)
	if err != nil {
		return err
	}
	defer resp.Body.Close()

	// Nobody needs the answer. Closing the body unread closes the connection, which does no harm.
	if out == nil && c.answers == nil {
		return nil
	}

	text, err := io.ReadAll(resp.Body)
	if err == nil && out != nil {
		err = reply.Decode(text, out)
	}
	if err == nil && c.answers != nil {
		_, err = fmt.Fprintf(c.answers, "%s\n", bytes.TrimSpace(text))
	}
	if err != nil {
		return fmt.Errorf("answer of %s to %s: %w", c.nodeName(), path, err)
	}
	return nil
}

// retryAdvice returns advice, to append to the error err of a request that got no answer; "" for none.
func (c *client) retryAdvice(err error) string {
	unknown := x509.UnknownAuthorityError{}
	switch {
	case errors.As(err, &unknown):
		return "; name the authority of its certificate by --ca-file"
	case errors.Is(err, io.EOF) && strings.HasPrefix(c.base, "http://"):
		return "; if it speaks TLS, begin its address with https"
	}
	if c.base != usualURL || c.hint == "" {
		return ""
	}
	return "; " + c.hint
}

// send returns a successful response, whose body the caller must close, or an error.
func (c *client) send(ctx context.Context, method, path string, body any) (*http.Response, error) {
	req, err := c.newRequest(ctx, method, path, body)
	if err != nil {
		return nil, err
	}

	resp, err := c.http.Do(req)
	if err != nil {
		// Unwrap the library's error, which repeats the method and the address.
		var failed *url.Error
		if errors.As(err, &failed) {
			err = failed.Err
		}
		return nil, fmt.Errorf("no answer from %s: %w (is `shoal serve` running there?)%s", c.nodeName(), err, c.retryAdvice(err))
	}

	// The HTTP client has followed redirects, so all other statuses are errors.
	if resp.StatusCode < 300 {
		return resp, nil
	}

	defer resp.Body.Close()
	return nil, c.errorOf(resp)
}

// newRequest makes a request with the client's key.
func (c *client) newRequest(ctx context.Context, method, path string, body any) (*http.Request, error) {
	var reader io.Reader
	mime := "application/json"

	// Send a rawBody unchanged: the node's errors name the lines of a configuration.
	switch body := body.(type) {
	case nil:
	case rawBody:
		reader, mime = bytes.NewReader(body), "text/plain"
	default:
		text, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		reader = bytes.NewReader(text)
	}

	req, err := http.NewRequestWithContext(ctx, method, c.base+path, reader)
	if err != nil {
		return nil, err
	}

	req.Header.Set("Content-Type", mime)

	// Send a key over the socket too: then the user acts as the key's owner, not as the operator.
	if c.key != "" {
		req.Header.Set("Authorization", "Bearer "+c.key)
	}
	return req, nil
}

// errorOf returns the error that a response reports.
func (c *client) errorOf(resp *http.Response) error {
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<16))

	// A proxy in front of the node may answer with a page of its own.
	e := &apiError{}
	if json.Unmarshal(text, e) != nil || e.Message == "" {
		e = &apiError{Status: resp.StatusCode, Message: fmt.Sprintf("%s answered %s", c.nodeName(), resp.Status)}
	}

	isRefusal := e.Status == http.StatusUnauthorized || e.Status == http.StatusForbidden
	if isRefusal && c.key == "" && c.hint != "" {
		return fmt.Errorf("%w (%s)", e, c.hint)
	}
	return e
}

// isWebURL reports whether the text is an http or https URL.
func isWebURL(text string) bool {
	u, err := url.Parse(text)
	return err == nil && u.Host != "" && (u.Scheme == "http" || u.Scheme == "https")
}

// events reads the events of a stream. Each is a line that begins with "data: ".
type events struct{ lines *bufio.Scanner }

func eventsOf(body io.Reader) events {
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, 256<<20) // an event may have a whole answer
	return events{lines}
}

// next returns the data of the next event; ok is false at the end of the stream, and if it breaks.
func (e events) next() (data string, ok bool) {
	for e.lines.Scan() {
		if data, ok := strings.CutPrefix(e.lines.Text(), "data: "); ok && data != "[DONE]" {
			return data, true
		}
	}
	return "", false
}
