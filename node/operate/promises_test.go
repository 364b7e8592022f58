package operate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/shoalsearch/shoal/cluster"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/cluster/clustertest"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/node/host"
	"github.com/shoalsearch/shoal/node/job"
)

// fixture has the operations of n1 in a world of three nodes, and records what they call.
type fixture struct {
	*clustertest.World
	ops     *Operations
	n1      *clustertest.Node
	secrets map[string][]byte
	called  []string
	hinted  []string // connections to list soon
	audited bool
	broken  bool          // writing a snapshot fails
	late    *catalog.View // what n1 knows until it syncs; nil: everything
	noted   []string
	few     *roaring.Bitmap // repositories that an owner may see; nil: all
}

const deskFile = `{"connections": {
	"work": {"type": "gitea", "url": "https://git.example.com", "orgs": ["x"]},
	"home": {"type": "gitea", "url": "https://home.example.com", "orgs": ["y"]}}}`

// newFixture has repositories a, b and c of connection work. Nodes n1 and n2 hold all of a and b;
// only n2 holds c.
func newFixture(t *testing.T) *fixture {
	t.Helper()
	w := clustertest.New(t, deskFile, 3)
	d := &fixture{World: w, n1: w.Node("n1"), secrets: map[string][]byte{}, audited: true}
	w.Repos("work", "git.example.com/x/a", "git.example.com/x/b", "git.example.com/x/c")
	for id, nodes := range map[catalog.RepoID][]string{1: {"n1", "n2"}, 2: {"n1", "n2"}, 3: {"n2"}} {
		w.Index(id, nodes[0])
		for _, n := range nodes {
			w.Confirm(n, catalog.MirrorKey(id))
		}
	}
	d.ops = New(Deps{
		Cluster: d, Gate: account.NewGate(d.n1),
		Running:     func() []job.Progress { return nil },
		Following:   func(string) job.FollowingState { return job.FollowingState{} },
		Called:      func(connection string) { d.called = append(d.called, connection) },
		Hint:        func(connection string) { d.hinted = append(d.hinted, connection) },
		FirstSecret: func(connection string) (string, error) { return "first of " + connection, nil },
		KnownSecret: func(context.Context, string) (string, error) { return "", nil },
		Snapshot:    d.write,
		Audited:     func() bool { return d.audited },
		Replicas:    2, Now: w.Now, Log: slog.New(slog.DiscardHandler),
	})
	return d
}

func (d *fixture) Propose(ctx context.Context, cmds ...catalog.Command) (uint64, error) {
	for _, c := range cmds {
		if note, ok := c.(*catalog.NoteEvent); ok {
			d.noted = append(d.noted, note.Action)
		}
	}
	return d.n1.Propose(ctx, cmds...)
}

// View implements Cluster with what n1 knows.
func (d *fixture) View() *catalog.View {
	if d.late != nil {
		return d.late
	}
	return d.World.View()
}

// Sync implements Cluster. It fails without a leader.
func (d *fixture) Sync(ctx context.Context) (uint64, error) {
	index, err := d.n1.Propose(ctx)
	if err == nil {
		d.late = nil
	}
	return index, err
}

func (d *fixture) state(ctx context.Context, node string, s catalog.MemberState) error {
	_, err := d.Propose(ctx, &catalog.SetMemberState{ID: node, State: s})
	return err
}
func (d *fixture) Drain(ctx context.Context, node string) error {
	return d.state(ctx, node, catalog.MemberDraining)
}
func (d *fixture) Undrain(ctx context.Context, node string) error {
	return d.state(ctx, node, catalog.MemberAlive)
}
func (d *fixture) Lead(context.Context, string) error { return nil }
func (d *fixture) Remove(ctx context.Context, node string) error {
	_, err := d.Propose(ctx, &catalog.RemoveMember{ID: node})
	return err
}

func (d *fixture) Self() string { return "n1" }
func (d *fixture) NameOf(node string) string {
	return map[string]string{"n1": "alpha", "n2": "beta", "n3": "beta"}[node]
}
func (*fixture) Lacks(string) bool { return false }

func (d *fixture) Handle(string, cluster.Handler) {}
func (d *fixture) Call(context.Context, string, string, []byte) ([]byte, error) {
	return nil, errors.New("there is no network")
}

func (d *fixture) KnownSecret(name string) ([]byte, bool, error) {
	plain, known := d.secrets[name]
	return plain, known, nil
}
func (d *fixture) SetSecret(ctx context.Context, name string, plain []byte) error {
	if _, err := d.Propose(ctx); err != nil {
		return err
	}
	d.secrets[name] = plain
	return nil
}
func (d *fixture) write(_ context.Context, w io.Writer) error {
	if d.broken {
		return errors.New("the disk is full")
	}
	return d.View().Save(w)
}

// kinds are the names of failures in the tests below.
var kinds = map[string]error{
	"invalid": call.ErrInvalid, "not found": call.ErrNotFound, "no repository": call.ErrRepoNotFound, "unable": call.ErrUnable,
	"exists": call.ErrExists, "held": call.ErrHeld, "no leader": call.ErrNoLeader,
}

// errorText formats an error as "kind: message".
func errorText(err error) string {
	for name, kind := range kinds {
		if errors.Is(err, kind) {
			return name + ": " + err.Error()
		}
	}
	return "other: " + err.Error()
}

// ask runs one line and returns the outcome as text:
//
//	drain n2        2 left
//	remove n2 loss  lost git.example.com/x/c
func (d *fixture) ask(t *testing.T, line string) string {
	ctx, by := t.Context(), account.Operator()
	if d.few != nil {
		viewer := by.Viewer()
		viewer.Only = d.few
		var err error
		if by, err = account.AsOwner(viewer); err != nil {
			t.Fatal(err)
		}
	}
	word := append(strings.Fields(line), "", "")
	var err error
	switch word[0] {
	case "lose":
		d.Lose(word[1])
	case "find":
		d.Find(word[1])
	case "lead":
		d.World.Lead(word[1])
	case "pass":
		age, _ := time.ParseDuration(word[1])
		d.Pass(age)
	case "confirm":
		d.Confirm(word[1], catalog.MirrorKey(3))
	case "drop":
		d.Drop(word[1], catalog.MirrorKey(3))
	case "see": // from now on owners may see only this repository
		id := uint32(0)
		fmt.Sscan(word[1], &id)
		d.few = roaring.BitmapOf(id)
	case "lag":
		d.late = d.World.View()
	case "grant":
		d.Grant(catalog.JobIndex, catalog.RepoSubject(1), "n2")

	case "drain":
		var r *DrainResponse
		if r, err = d.ops.Drain(ctx, by, word[1]); err == nil {
			out := fmt.Sprintf("%s: %d left, done %t", r.Node, r.Remaining, r.Done)
			if r.Warning != "" {
				out += "; " + r.Warning
			}
			return out
		}
	case "undrain":
		var r *NodeResponse
		if r, err = d.ops.Undrain(ctx, by, word[1]); err == nil {
			return r.Node + " is taken back"
		}
	case "remove":
		var r *RemoveResponse
		if r, err = d.ops.Remove(ctx, by, word[1], word[2] == "loss"); err == nil {
			return r.Node + " is gone, lost " + strings.Join(r.Lost, " ")
		}

	case "reindex":
		id := uint32(0)
		fmt.Sscan(word[1], &id)
		var r *ReindexResponse
		if r, err = d.ops.Reindex(ctx, by, id); err == nil {
			return r.Job + " of " + r.Name
		}
	case "job", "retry", "cancel":
		var j *JobInfo
		switch word[0] {
		case "job":
			j, err = d.ops.Job(ctx, catalog.Operator(), word[1])
		case "retry":
			j, err = d.ops.RetryJob(ctx, by, word[1])
		default:
			j, err = d.ops.CancelJob(ctx, by, word[1])
		}
		if err == nil {
			return fmt.Sprintf("%s %s %s, urgent %t", j.ID, j.Subject, j.State, j.Urgent)
		}
	case "jobs":
		v := catalog.Operator()
		if word[1] == "guest" {
			v = catalog.Guest()
		}
		var r *JobsResponse
		if r, err = d.ops.Jobs(ctx, v, JobsRequest{State: word[2]}); err == nil {
			var ids []string
			for _, j := range r.Jobs {
				ids = append(ids, j.ID)
			}
			return fmt.Sprintf("%d: %s", r.Total, strings.Join(ids, " "))
		}

	case "sync", "accept":
		var c *ConnectionStatus
		if word[0] == "sync" {
			c, err = d.ops.SyncConnection(ctx, by, word[1])
		} else {
			c, err = d.ops.AcceptListing(ctx, by, word[1])
		}
		if err == nil {
			return fmt.Sprintf("%s was %s with %d", c.Name, c.State, c.Repos)
		}

	case "keys":
		var k WebhookKeys
		if k, err = d.ops.WebhookKeys(ctx, word[1]); err == nil {
			return fmt.Sprintf("%d good, first %t", len(k.Valid()), k.Secret == "first of "+word[1])
		}
	case "proof":
		var k WebhookKeys
		if k, err = d.ops.DeliveryKeys(ctx, word[1]); err == nil {
			return fmt.Sprintf("%q", strings.Join(k.Valid(), ","))
		}
	case "rotate":
		var k WebhookKeys
		if k, err = d.ops.RotateWebhook(ctx, by, word[1]); err == nil {
			return fmt.Sprintf("%d digits, the last for %s", len(k.Secret), k.Until.Sub(d.Now()))
		}
	case "push":
		e := host.Event{Pushed: true}
		if word[2] != "" {
			e.Paths = []string{word[2]}
		}
		delivery := ""
		if len(word) > 5 {
			delivery = word[3]
		}
		var r *WebhookResponse
		if r, err = d.ops.Webhook(ctx, by, WebhookRequest{Connection: word[1], Event: e, Delivery: delivery}); err == nil {
			return strings.Join(r.Repos, " ")
		}

	case "hinted":
		return strings.Join(d.hinted, " ")

	case "snapshot":
		var out bytes.Buffer
		if err = d.ops.Snapshot(ctx, by, &out); err == nil {
			state, err := catalog.Load(&out)
			return fmt.Sprintf("%d repositories, %v", state.View().RepoCount(), err)
		}
	default:
		t.Fatalf("nobody knows %q", line)
	}
	if err != nil {
		return errorText(err)
	}
	return ""
}

// Each case is a list of commands, with the outcome of each.
func TestOperatorCommands_returnTheOutcomesOfTheirTable(t *testing.T) {
	t.Parallel()
	for name, story := range map[string][][2]string{
		"a drain begins, is watched, and is taken back": {
			{"drain n2", "n2: 3 left, done false"},
			{"drain n2", "n2: 3 left, done false"},
			{"undrain n2", "n2 is taken back"},
			{"undrain n2", "n2 is taken back"},
		},
		"a drain is done when others have enough": {
			{"drain n3", "n3: 0 left, done true"},
		},
		"a drain that leaves too few copies says so": {
			{"drain n3", "n3: 0 left, done true"},
			{"drain n2", "n2: 1 left, done false; 2 copies of everything are wanted, and only 1 node is left to hold them: add a node, or take one back with `shoal undrain`"},
		},
		"nobody is drained where nobody takes what it has": {
			{"drain n2", "n2: 3 left, done false"},
			{"lose n3", ""},
			{"drain n1", "unable: node alpha (n1) cannot give away what it holds: beta (n2) is being drained, beta (n3) cannot be reached. Start another node that joins this one and drain it then; to stop it for a while, just stop it: its data stays"},
			{"find n3", ""},
			{"drain n1", "n1: 2 left, done false; 2 copies of everything are wanted, and only 1 node is left to hold them: add a node, or take one back with `shoal undrain`"},
		},
		// Otherwise both would count as drained and be stopped, with the only copies.
		"copies on another node that leaves are none that stay": {
			{"drain n2", "n2: 3 left, done false"},
			{"drain n1", "n1: 2 left, done false; 2 copies of everything are wanted, and only 1 node is left to hold them: add a node, or take one back with `shoal undrain`"},
			{"confirm n3", ""},
			{"drain n2", "n2: 2 left, done false; 2 copies of everything are wanted, and only 1 node is left to hold them: add a node, or take one back with `shoal undrain`"},
			{"remove n2", "n2 is gone, lost "}, // n1 still has them
		},
		"a drain needs a leader, watching one does not": {
			{"drain n2", "n2: 3 left, done false"},
			{"lead", ""},
			{"drain n2", "n2: 3 left, done false"},
			{"drain n1", "no leader: "},
			{"undrain n2", "no leader: "},
		},
		"a node is named by its id, its address, the host of that, or its name": {
			{"drain n1", "n1: 2 left, done false"},
			{"undrain alpha", "n1 is taken back"},
			{"drain beta", `not found: more than one node is called "beta"; the nodes are alpha (n1) at n1:1, beta (n2) at n2:1, beta (n3) at n3:1`},
			{"drain n2:1", "n2: 3 left, done false"},
			{"drain n", `not found: there is no node "n"; the nodes are alpha (n1) at n1:1, beta (n2) at n2:1, beta (n3) at n3:1`},
			{"undrain n9", `not found: there is no node "n9"; the nodes are alpha (n1) at n1:1, beta (n2) at n2:1, beta (n3) at n3:1`},
		},
		"the last copy is not removed unless that is meant": {
			{"remove n2", "held: node beta (n2) has the last copy of 1 of the repositories (git.example.com/x/c): drain it, or accept the loss"},
			{"remove n2 loss", "n2 is gone, lost git.example.com/x/c"},
			{"remove n2 loss", `not found: there is no node "n2"; the nodes are alpha (n1) at n1:1, beta (n3) at n3:1`},
		},
		"what an owner is not shown is kept from loss without its name": {
			{"see 1", ""},
			{"remove n2", "held: node beta (n2) has the last copy of something: drain it, or accept the loss"},
			{"remove n2 loss", "n2 is gone, lost "},
		},
		"what others have is not lost with a node": {
			{"confirm n3", ""},
			{"remove n2", "n2 is gone, lost "},
		},
		"a copy on a node that cannot be reached is none": {
			{"confirm n3", ""},
			{"lose n3", ""},
			{"remove n2", "held: node beta (n2) has the last copy of 1 of the repositories (git.example.com/x/c): drain it, or accept the loss"},
		},

		"a node that lags misses no loss": {
			{"confirm n3", ""},
			{"lag", ""},
			{"drop n3", ""},
			{"remove n2", "held: node beta (n2) has the last copy of 1 of the repositories (git.example.com/x/c): drain it, or accept the loss"},
		},
		"whether something is lost is not known without a leader": {
			{"lead", ""},
			{"remove n2", "no leader: "},
		},

		"a repository is indexed before others": {
			{"reindex 1", "index:1 of git.example.com/x/a"},
			{"job index:1", "index:1 git.example.com/x/a waiting, urgent true"},
			{"reindex 9", "no repository: "},
			{"lead", ""},
			{"reindex 1", "no leader: "},
		},
		"a job is retried and cancelled, and told as it was before": {
			{"retry index:1", "index:1 git.example.com/x/a done, urgent false"},
			{"cancel index:1", "index:1 git.example.com/x/a waiting, urgent true"},
			{"retry index:9", `not found: There is no job "index:9".`},
			{"cancel laundry:1", `not found: There is no job "laundry:1".`},
			{"cancel index:1", "unable: "},
		},
		"jobs are listed by state, and to others only where they may know of them": {
			{"reindex 1", "index:1 of git.example.com/x/a"},
			{"reindex 2", "index:2 of git.example.com/x/b"},
			{"grant", ""},
			{"jobs owner running", "1: index:1"},
			{"jobs guest running", "1: index:1"},
			{"jobs owner asleep", "invalid: state must be one of running, failed, retrying, waiting, done"},
		},

		"a connection is listed now": {
			{"sync work", "work was synced with 3"},
			{"sync home", "home was pending with 0"},
			{"sync none", `not found: Connection "none" not found`},
			{"accept none", `not found: Connection "none" not found`},
			{"lead", ""},
			{"sync work", "no leader: "},
		},
		"nothing is accepted where nothing is held": {
			{"accept work", "unable: "},
		},

		"a webhook's secret is replaced, and the last one is good for a day": {
			{"keys work", "1 good, first true"},
			{"proof work", `""`},
			{"rotate work", "64 digits, the last for 24h0m0s"},
			{"keys work", "2 good, first false"},
			{"pass 23h59m", ""},
			{"keys work", "2 good, first false"},
			{"pass 1m", ""},
			{"keys work", "1 good, first false"},
			{"keys none", `not found: Connection "none" not found`},
			{"rotate none", `not found: Connection "none" not found`},
			{"lead", ""},
			{"rotate work", "no leader: "},
		},
		"a push has what it names fetched, once for each delivery": {
			{"push work x/a d1", "git.example.com/x/a"},
			{"job index:1", "index:1 git.example.com/x/a waiting, urgent true"},
			{"push work x/a d1", ""},
			{"push work x/a d2", "git.example.com/x/a"},
			{"push home x/a", ""},
			{"push work", "git.example.com/x/a git.example.com/x/b git.example.com/x/c"},
			{"push none", `not found: Connection "none" not found`},
		},
		"a push to what nobody knows has the connection listed": {
			{"push work x/a d1", "git.example.com/x/a"},
			{"hinted", ""},
			{"push work x/new", ""},
			{"hinted", "work"},
		},
		"a push without a leader is not taken for done": {
			{"lead", ""},
			{"push work x/a d1", "no leader: "},
			{"lead n1", ""},
			{"push work x/a d1", "git.example.com/x/a"},
		},

		"a snapshot is whole, with and without a leader": {
			{"snapshot", "3 repositories, <nil>"},
			{"lead", ""},
			{"snapshot", "3 repositories, <nil>"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newFixture(t)
			for _, step := range story {
				got, want := d.ask(t, step[0]), step[1]
				// A want that ends with ": " checks only the kind, because the catalog or cluster
				// words the message.
				if cut, ok := strings.CutSuffix(want, ": "); ok && kinds[cut] != nil && strings.HasPrefix(got, want) {
					continue
				}
				if got != want {
					t.Errorf("%s\n got %s\nwant %s", step[0], got, want)
				}
			}
		})
	}
}

// A snapshot records an event if events are kept. A failure to write is returned.
func TestSnapshot_recordsAnEvent(t *testing.T) {
	t.Parallel()
	d := newFixture(t)
	d.ask(t, "snapshot")
	if got := strings.Join(d.noted, " "); got != "snapshot.taken" {
		t.Errorf("the events of one snapshot are %q", got)
	}

	d.audited = false
	d.ask(t, "snapshot")
	if len(d.noted) != 1 {
		t.Errorf("%q where no events are kept", d.noted)
	}

	d.broken = true
	if err := d.ops.Snapshot(t.Context(), account.Operator(), io.Discard); err == nil || err.Error() != "snapshot of the catalog: the disk is full" {
		t.Errorf("a disk that is full: %v", err)
	}
}
