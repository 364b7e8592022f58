package node_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/node/nodetest"
	"github.com/shoalsearch/shoal/node/operate"
)

// A hanging job is cancelled: its attempt ends, the connection shows who cancelled it, and the
// job can run again.
func TestCancelledJob_canRunAgain(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{}, 100)
	left := make(chan struct{}, 100)
	host := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		<-r.Context().Done() // until the client leaves
		left <- struct{}{}
	}))
	t.Cleanup(host.Close)
	n := nodetest.Start(t, nodetest.Config{File: fmt.Sprintf(`{"connections": {"slow": {"type": "gitea", "url": %q, "orgs": ["acme"]}}}`, host.URL)})
	is := func(state string) {
		t.Helper()
		n.Wait("the job to be "+state, func() error {
			j, err := n.Operate.Job(t.Context(), catalog.Operator(), "sync:slow")
			if err != nil {
				return err
			}
			if j.State != state {
				return fmt.Errorf("it is %s", j.State)
			}
			return nil
		})
	}
	<-asked
	is("running")

	if _, err := n.Operate.CancelJob(t.Context(), account.Operator(), "sync:slow"); err != nil {
		t.Fatal(err)
	}
	is("failed")
	<-left // the attempt has ended
	if c := n.View().Connection("slow"); c.Error != "cancelled by operator" {
		t.Errorf("the connection says %q", c.Error)
	}
	if _, err := n.Operate.CancelJob(t.Context(), account.Operator(), "sync:slow"); !errors.Is(err, call.ErrUnable) {
		t.Errorf("a job that has ended is cancelled: %v", err)
	}

	if before, err := n.Operate.RetryJob(t.Context(), account.Operator(), "sync:slow"); err != nil || before.State != "failed" {
		t.Fatalf("%+v, %v", before, err)
	}
	<-asked
	is("running")
}

// Jobs are filtered before they are counted. Viewers who are no owners only see index jobs of
// repositories that they may see.
func TestJobList_showsOnlyJobsOfVisibleRepositories(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"app", "lib"} {
		nodetest.NewRepo(t, filepath.Join(dir, name), map[string]string{"a.go": "package a"})
	}
	member := catalog.Viewer{Role: catalog.RoleMember, Name: "m"}
	for enforced, want := range map[bool]int{true: 0, false: 2} {
		n := nodetest.Start(t, nodetest.Config{File: fmt.Sprintf(`{"connections": {"local": {"type": "git", "url": "file://%s/*", "enforcePermissions": %t}}}`, dir, enforced)})
		n.WaitIndexed(2)
		total := func(v catalog.Viewer, req operate.JobsRequest) int {
			t.Helper()
			req.PerPage = 1
			r, err := n.Operate.Jobs(t.Context(), v, req)
			if err != nil {
				t.Fatal(err)
			}
			return r.Total
		}
		if got := total(catalog.Operator(), operate.JobsRequest{State: "done"}); got < 3 {
			t.Errorf("an owner is told of %d jobs that are done, want those of a listing and two repositories", got)
		}
		if got := total(catalog.Operator(), operate.JobsRequest{State: "done", Kind: "index", Query: "LIB"}); got != 1 {
			t.Errorf("%d jobs index lib", got)
		}
		if got := total(member, operate.JobsRequest{State: "done"}); got != want {
			t.Errorf("enforced %t: a member is told of %d jobs, want %d", enforced, got, want)
		}
		if _, err := n.Operate.Job(t.Context(), member, "sync:local"); !errors.Is(err, call.ErrNotFound) {
			t.Errorf("a member is told of the listing of a connection: %v", err)
		}
		for _, wrong := range []operate.JobsRequest{{State: "odd"}, {Kind: "odd"}, {Page: -1}, {PerPage: 101}} {
			if _, err := n.Operate.Jobs(t.Context(), member, wrong); !errors.Is(err, call.ErrInvalid) {
				t.Errorf("%+v: %v", wrong, err)
			}
		}
	}
}
