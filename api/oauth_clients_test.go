package api

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/nodetest"
)

// It runs the script in SHOAL_OAUTH_CLIENT (.ci/mcp/oauth.mjs, next to its packages) against
// three nodes, with each request at another one. .ci/test-oauth sets it.
func TestOAuth_officialTypeScriptClientSignsIn(t *testing.T) {
	t.Parallel()
	script := os.Getenv("SHOAL_OAUTH_CLIENT")
	if script == "" {
		t.Skip("NOT RUN: SHOAL_OAUTH_CLIENT does not name the script (make test-oauth names it)")
	}
	f := openFront(t, 3, nil)
	ann := f.person("ann@example.com")
	pre, err := f.node().OAuth().RegisterFor(t.Context(), account.Operator(), "Known", []string{"http://localhost/callback"})
	if err != nil {
		t.Fatal(err)
	}
	for _, how := range []string{"register", "document", pre.ClientID} {
		cmd := exec.CommandContext(t.Context(), "node", script, f.base+"/api/mcp", how)
		said := ann.decideFor(cmd, regexp.MustCompile(`^http\S+/oauth/authorize\S+`), func(back string) string { return back + "\n" })
		if !strings.Contains(said, "signed in") {
			t.Errorf("%.20s:\n%s", how, said)
		}
	}
}

// It runs the two scenarios of the protocol's official suite. SHOAL_CONFORMANCE is the suite's
// program; .ci/test-oauth sets it.
func TestOAuth_passesTheOfficialConformanceScenarios(t *testing.T) {
	t.Parallel()
	suite := os.Getenv("SHOAL_CONFORMANCE")
	if suite == "" {
		t.Skip("NOT RUN: SHOAL_CONFORMANCE does not name the suite's program (make test-oauth names it)")
	}
	f := openFront(t, 1, nil)
	ann := f.person("ann@example.com")
	port := freePort(t)
	known, err := f.node().OAuth().RegisterFor(t.Context(), account.Operator(), "Suite", []string{"http://127.0.0.1/callback", "http://localhost/callback"})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), suite, "authorization", "--url", f.base, "--client-id", known.ClientID, "--resource", f.base+"/api/mcp", "--port", port)
	cmd.Dir = t.TempDir() // it writes its results there
	said := ann.decideFor(cmd, regexp.MustCompile(`http://127[^\s"']+/oauth/authorize[^\s"']+`), func(back string) string {
		// The suite prints the address before it listens there, so the browser retries.
		followed := nodetest.Eventually(nodetest.Patience, func() bool {
			resp, err := http.Get(back)
			if err == nil {
				resp.Body.Close()
			}
			return err == nil
		})
		if !followed {
			t.Errorf("nobody listens at %s", back)
		}
		return ""
	})
	t.Log(string(summary([]byte(said))))
	if cmd.ProcessState.ExitCode() != 0 {
		t.Errorf("the suite ends with %d:\n%s", cmd.ProcessState.ExitCode(), said)
	}
}

// decideFor runs a program, opens the first address that it prints as a person, and gives it the
// address of the redirect. It returns the program's output.
func (p *person) decideFor(cmd *exec.Cmd, address *regexp.Regexp, tell func(back string) string) string {
	p.t.Helper()
	in, err := cmd.StdinPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}

	var said strings.Builder
	asked := false
	for lines := bufio.NewScanner(out); lines.Scan(); {
		said.WriteString(lines.Text() + "\n")
		if to := address.FindString(lines.Text()); to != "" && !asked {
			asked = true
			back, _ := p.consents(to, "allow")
			fmt.Fprint(in, tell(back.String()))
		}
	}
	if err := cmd.Wait(); err != nil {
		p.t.Errorf("%v\n%s", err, said.String())
	}
	return said.String()
}

// freePort returns a free port.
func freePort(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	_, port, _ := net.SplitHostPort(ln.Addr().String())
	return port
}
