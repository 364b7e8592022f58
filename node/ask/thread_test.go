package ask_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/ask"
	"github.com/shoalsearch/shoal/node/browse"
	"github.com/shoalsearch/shoal/node/model/modeltest"
	"github.com/shoalsearch/shoal/node/nodetest"
)

// member makes an account and returns its viewer. Threads of accounts that do not exist are
// deleted.
func member(t *testing.T, n *nodetest.Node, name string) catalog.Viewer {
	t.Helper()
	ctx := catalog.WithActor(t.Context(), catalog.Actor{Type: catalog.ActorOperator})
	u, err := n.People.CreateUser(ctx, account.Operator(), account.CreateUserRequest{Email: name + "@example.com"})
	if err != nil {
		t.Fatal(err)
	}
	return catalog.Viewer{Role: catalog.RoleMember, Name: name, Account: u.ID, All: true}
}

// mustAsk asks as a viewer and waits for the end of the answer.
func mustAsk(t *testing.T, n *ask.Asker, v catalog.Viewer, q ask.Question) *ask.Started {
	t.Helper()
	started, err := n.Ask(t.Context(), v, q)
	if err != nil {
		t.Fatal(err)
	}
	if err := n.WatchChat(t.Context(), v, started.ID, started.After, func(ask.Event) error { return nil }); err != nil {
		t.Fatal(err)
	}
	return started
}

func TestThread_keepsEarlierTurnsOverARestart(t *testing.T) {
	t.Parallel()
	s := modeltest.Start(t,
		modeltest.Turn{Calls: []modeltest.Call{call("a", "read_file", `{"repo":"local/app","path":"store/store.go"}`)}},
		modeltest.Turn{Text: "By `Open` @file:{local/app::store/store.go:4}."},
		modeltest.Turn{Text: "By `Close` @file:{local/app::store/store.go:12}."})
	n := sample(t, s)
	ann := member(t, n, "ann")
	first := mustAsk(t, n.Ask, ann, ask.Question{Query: "How is a store opened?", Repos: []string{"app"}})
	second := mustAsk(t, n.Ask, ann, ask.Question{Query: "And ended?", Thread: first.ID})

	// The model gets the earlier questions and results; the repositories stay.
	raw := s.Requests()[2].Raw
	for _, want := range []string{"How is a store opened?", "By `Open` @file:{local/app::store/store.go:4}", "Read earlier in this conversation", "- local/app store/store.go:4-4", "And ended?"} {
		if !strings.Contains(raw, want) {
			t.Errorf("the model was not told %q: %s", want, raw)
		}
	}
	if second.ID != first.ID || second.After == 0 {
		t.Errorf("%+v after %+v", second, first)
	}

	// After a restart all of it is there, with the same numbers.
	numbers := func() (list []int) {
		if err := n.Ask.WatchChat(t.Context(), ann, first.ID, 0, func(e ask.Event) error { list = append(list, e.N); return nil }); err != nil {
			t.Fatal(err)
		}
		return list
	}
	before := numbers()
	n.Stop()
	assertSealed(t, n.Dir, "How is a store opened?", "store.go")
	n.Start()
	n.Wait("the thread after the restart", func() error { _, err := n.Ask.Chat(t.Context(), ann, first.ID); return err })
	if after := numbers(); !slices.Equal(before, after) || before[len(before)-1] != len(before) {
		t.Errorf("numbers %v, before the restart %v", after, before)
	}
	c, err := n.Ask.Chat(t.Context(), ann, first.ID)
	if err != nil || len(c.Turns) != 2 || c.Title != "How is a store opened?" || c.Turns[1].Repos[0] != "local/app" || c.Turns[1].First != second.After+1 {
		t.Fatalf("%v: %+v", err, c)
	}
}

// assertSealed checks that the words of a question are not in a node's files.
func assertSealed(t *testing.T, dir string, words ...string) {
	t.Helper()
	files := 0
	for _, part := range []string{"threads", "raft"} {
		err := filepath.WalkDir(filepath.Join(dir, part), func(path string, d os.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			b, err := os.ReadFile(path)
			if files++; err != nil {
				return err
			}
			for _, w := range words {
				if strings.Contains(string(b), w) {
					t.Errorf("%s has %q in clear", path, w)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if files < 2 {
		t.Errorf("%d files", files)
	}
}

func TestThread_isVisibleOnlyToItsOwnerUnlessShared(t *testing.T) {
	t.Parallel()
	s := modeltest.Start(t,
		modeltest.Turn{Calls: []modeltest.Call{
			call("a", "read_file", `{"repo":"local/app","path":"store/store.go"}`), call("b", "read_file", `{"repo":"local/hidden","path":"secret.go"}`),
		}},
		modeltest.Turn{Text: "By `Open` @file:{local/app::store/store.go:4}, and `planted` @file:{local/hidden::secret.go:3}."})
	n := sample(t, s)
	ann, bob := member(t, n, "ann"), member(t, n, "bob")
	id := mustAsk(t, n.Ask, ann, ask.Question{Query: "What?"}).ID

	// For others it does not exist.
	for what, err := range map[string]error{
		"sees": n.Ask.Sees(t.Context(), bob, id), "deletes": n.Ask.DeleteChat(t.Context(), bob, id), "stops": n.Ask.StopChat(t.Context(), bob, id),
		"guest": n.Ask.Sees(t.Context(), catalog.Guest(), id), "nobody": n.Ask.Sees(t.Context(), catalog.Viewer{}, id),
	} {
		if err == nil || !strings.Contains(err.Error(), "There is no such chat") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := n.Ask.Ask(t.Context(), bob, ask.Question{Query: "And?", Thread: id}); err == nil || !strings.Contains(err.Error(), "no such chat") {
		t.Errorf("asks on: %v", err)
	}
	if list, total, err := n.Ask.Chats(t.Context(), bob, 0, 10); err != nil || total != 0 || len(list) != 0 {
		t.Errorf("%v: bob has %d threads", err, total)
	}

	// When shared, all can read it, and only its owner can change it.
	yes := true
	if err := n.Ask.ChangeChat(t.Context(), ann, id, "Shared", &yes); err != nil {
		t.Fatal(err)
	}
	if err := n.Ask.Sees(t.Context(), bob, id); err != nil {
		t.Error(err)
	}
	if err := n.Ask.ChangeChat(t.Context(), bob, id, "Mine", nil); err == nil || !strings.Contains(err.Error(), "somebody else's") {
		t.Errorf("bob changes it: %v", err)
	}

	// Each reader only gets sources that they may read.
	app := bob
	repos, err := n.Browse.Repos(t.Context(), catalog.Operator(), browse.ReposRequest{Query: "local/app"})
	if err != nil || len(repos.Repos) != 1 {
		t.Fatalf("%v: %+v", err, repos)
	}
	app.Only = roaring.BitmapOf(repos.Repos[0].ID)
	c, err := n.Ask.Chat(t.Context(), app, id)
	if err != nil {
		t.Fatal(err)
	}
	if text := ask.Markdown(c.Turns[0].Answer, ""); !strings.Contains(text, "[store/store.go:4](") || strings.Contains(text, "secret.go") || len(c.Turns[0].Reads) != 1 {
		t.Errorf("%s, read %v", text, c.Turns[0].Reads)
	}
	count := 0
	if err := n.Ask.WatchChat(t.Context(), app, id, 0, func(e ask.Event) error {
		if count++; e.N != count {
			t.Errorf("event %d has the number %d", count, e.N)
		}
		if strings.Contains(e.Text, "hidden") || strings.Contains(e.Text, "secret") || e.Cite != nil && e.Cite.Repo == "local/hidden" {
			t.Errorf("shown: %+v", e)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}

	// A copy belongs to its maker, and stays when the thread is deleted.
	fork, err := n.Ask.ForkChat(t.Context(), bob, id)
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Ask.DeleteChat(t.Context(), ann, id); err != nil {
		t.Fatal(err)
	}
	if err := n.Ask.Sees(t.Context(), ann, id); err == nil {
		t.Error("the deleted thread is there")
	}
	if c, err := n.Ask.Chat(t.Context(), bob, fork); err != nil || !c.Mine || c.Public || c.Title != "Shared" || len(c.Turns) != 1 {
		t.Errorf("%v: %+v", err, c)
	}
}

// A question continues a copy of a shared thread, which is no longer shared.
func TestThreadCopy_isIndependentOfTheOriginal(t *testing.T) {
	t.Parallel()
	s := modeltest.Start(t, modeltest.Turn{Text: "By Open @file:{local/app::store/store.go:4}."}, modeltest.Turn{Text: "Never, as @file:{local/app::store/store.go:12} shows."})
	n := sample(t, s)
	ann, bob := member(t, n, "ann"), member(t, n, "bob")
	id := mustAsk(t, n.Ask, ann, ask.Question{Query: "How is it opened?", Public: true}).ID
	fork, err := n.Ask.ForkChat(t.Context(), bob, id)
	if err != nil {
		t.Fatal(err)
	}
	no := false
	if err := n.Ask.ChangeChat(t.Context(), ann, id, "", &no); err != nil {
		t.Fatal(err)
	}

	// The copy belongs to bob: he continues it, and the model knows what was said before.
	mustAsk(t, n.Ask, bob, ask.Question{Query: "When does it fail?", Thread: fork})
	if raw := s.Requests()[len(s.Requests())-1].Raw; !strings.Contains(raw, "How is it opened?") || !strings.Contains(raw, "By Open") {
		t.Errorf("the model was not told what was said: %s", raw)
	}
	c, err := n.Ask.Chat(t.Context(), bob, fork)
	if err != nil || len(c.Turns) != 2 || c.Turns[0].Query != "How is it opened?" || c.Turns[1].Query != "When does it fail?" || c.Turns[1].First != c.Turns[0].Last+1 || c.Turns[0].ID != fork {
		t.Errorf("the copy: %v: %+v", err, c)
	}

	// The original is unchanged, and bob cannot see it any more; ann cannot see the copy.
	if c, err := n.Ask.Chat(t.Context(), ann, id); err != nil || len(c.Turns) != 1 || c.Turns[0].ID != id || c.Public {
		t.Errorf("the original: %v: %+v", err, c)
	}
	if err := n.Ask.Sees(t.Context(), bob, id); err == nil {
		t.Error("bob sees what is shared no more")
	}
	if err := n.Ask.Sees(t.Context(), ann, fork); err == nil {
		t.Error("ann sees bob's copy")
	}
	if _, err := n.Ask.ForkChat(t.Context(), bob, id); err == nil || !strings.Contains(err.Error(), "no such chat") {
		t.Errorf("a copy of what is shared no more: %v", err)
	}

	// A guest's question can be continued by every guest with the link, but not changed.
	guest := mustAsk(t, n.Ask, catalog.Guest(), ask.Question{Query: "And for a guest?"}).ID
	if err := n.Ask.Sees(t.Context(), bob, guest); err != nil {
		t.Errorf("bob has the link: %v", err)
	}
	if err := n.Ask.DeleteChat(t.Context(), catalog.Guest(), guest); err == nil || !strings.Contains(err.Error(), "nobody changes it") {
		t.Errorf("a guest deletes it: %v", err)
	}
	mustAsk(t, n.Ask, catalog.Guest(), ask.Question{Query: "And now?", Thread: guest})
	if list, total, err := n.Ask.Chats(t.Context(), catalog.Guest(), 0, 10); err != nil || total != 0 || list != nil {
		t.Errorf("guests have a list: %v %+v", err, list)
	}
}

// The clock moves on: threads are deleted some days after their last change, those of guests
// earlier, those of deleted accounts at once, and none that is being answered.
func TestThreads_expire(t *testing.T) {
	t.Parallel()
	var days atomic.Int64
	goOn := make(chan struct{})
	s := modeltest.Play(t, func(r *modeltest.Request) modeltest.Turn {
		if strings.Contains(r.Raw, "Take your time") {
			<-goOn
		}
		return modeltest.Turn{Text: "Yes @file:{local/app::store/store.go:4}."}
	})
	n := sampleWith(t, s, func(o *node.Options) {
		o.Now = func() time.Time { return time.Now().Add(time.Duration(days.Load()) * 24 * time.Hour) }
	})
	key := catalog.Viewer{Role: catalog.RoleMember, Name: "k", KeyID: "k", All: true}
	first := mustAsk(t, n.Ask, catalog.Operator(), ask.Question{Query: "One?"}).ID
	changed := mustAsk(t, n.Ask, catalog.Operator(), ask.Question{Query: "Two?"}).ID
	guest := mustAsk(t, n.Ask, catalog.Guest(), ask.Question{Query: "Three?"}).ID
	running, err := n.Ask.Ask(t.Context(), catalog.Operator(), ask.Question{Query: "Take your time"})
	if err != nil {
		t.Fatal(err)
	}
	gone := func(what string, v catalog.Viewer, id string) {
		t.Helper()
		n.Wait(what, func() error {
			if n.Ask.Sees(t.Context(), v, id) == nil {
				return errors.New("it is there")
			}
			return nil
		})
	}
	there := func(what string, v catalog.Viewer, id string) {
		t.Helper()
		if err := n.Ask.Sees(t.Context(), v, id); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}

	// The account does not exist any more: its threads are deleted in the next round.
	ann := catalog.Viewer{Role: catalog.RoleMember, Name: "ann", Account: "gone", All: true}
	orphan := mustAsk(t, n.Ask, ann, ask.Question{Query: "Four?"}).ID
	days.Add(1)
	gone("the thread of an account that is gone", ann, orphan)
	there("a guest's after a day", catalog.Guest(), guest)

	days.Add(7)
	gone("a guest's after eight days", catalog.Guest(), guest)
	there("the operator's after eight days", catalog.Operator(), first)
	mustAsk(t, n.Ask, catalog.Operator(), ask.Question{Query: "And now?", Thread: changed})

	days.Add(84)
	gone("the operator's after 92 days", catalog.Operator(), first)
	there("one that has changed since", catalog.Operator(), changed)
	there("one that is being answered", catalog.Operator(), running.ID)
	if err := n.Ask.Sees(t.Context(), key, changed); err == nil {
		t.Error("a key sees the operator's")
	}
	close(goOn)
}

// The node is stopped in the middle of an answer, after any number of seen events, and the next
// question continues the thread.
func TestTurnEvents_haveUniqueNumbersAcrossRestarts(t *testing.T) {
	t.Parallel()
	goOn := make(chan struct{})
	defer close(goOn)
	s := modeltest.Play(t, func(r *modeltest.Request) modeltest.Turn {
		if strings.Contains(r.Raw, "And again?") {
			return modeltest.Turn{Text: "Yes."}
		}
		if r.Step > 0 {
			select {
			case <-goOn:
			case <-t.Context().Done():
			}
		}
		return modeltest.Turn{Calls: []modeltest.Call{call("a", "read_file", `{"repo":"local/app","path":"store/store.go"}`)}}
	})
	n := sample(t, s)
	started, err := n.Ask.Ask(t.Context(), catalog.Operator(), ask.Question{Query: "How is a store opened?"})
	if err != nil {
		t.Fatal(err)
	}

	// A watcher sees some events, and then the node is stopped.
	seen, enough := 0, errors.New("enough")
	err = n.Ask.WatchChat(t.Context(), catalog.Operator(), started.ID, 0, func(e ask.Event) error {
		if seen = e.N; e.Kind == ask.KindResult {
			return enough
		}
		return nil
	})
	if !errors.Is(err, enough) || seen < 3 {
		t.Fatalf("%v after %d events", err, seen)
	}
	n.Stop()
	n.Start()

	// The text is kept. A returning watcher sees the end with unused numbers.
	watch := func(after int) (events []ask.Event) {
		t.Helper()
		if err := n.Ask.WatchChat(t.Context(), catalog.Operator(), started.ID, after, func(e ask.Event) error { events = append(events, e); return nil }); err != nil {
			t.Fatal(err)
		}
		return events
	}
	told := watch(seen)
	end := len(told) - 1
	if end < 1 || told[end-1].Kind != ask.KindError || !strings.Contains(told[end-1].Text, "was stopped") || told[end].Kind != ask.KindDone || told[0].N != seen+1 {
		t.Fatalf("after event %d: %+v", seen, told)
	}
	last := told[end].N
	if again := watch(last); again != nil {
		t.Errorf("after the last one: %+v", again)
	}

	// The next question of the thread has later numbers, for old and new watchers.
	waitModels(n)
	next := mustAsk(t, n.Ask, catalog.Operator(), ask.Question{Query: "And again?", Thread: started.ID})
	for _, after := range []int{0, seen, last} {
		events := watch(after)
		for i, e := range events {
			if e.N <= after || i > 0 && e.N != events[i-1].N+1 {
				t.Errorf("after %d: %+v behind %+v", after, e, events[max(i, 1)-1])
			}
		}
		if end := events[len(events)-1]; end.Kind != ask.KindDone || end.Text != string(ask.Done) || next.After != last {
			t.Errorf("after %d: ended with %+v; the next question begins after %d, want %d", after, end, next.After, last)
		}
	}
	c, err := n.Ask.Chat(t.Context(), catalog.Operator(), started.ID)
	if err != nil || len(c.Turns) != 2 || c.Turns[0].Status != ask.Failed || c.Turns[0].First != 1 || c.Turns[0].Last != last || c.Turns[1].First != last+1 {
		t.Errorf("%v: %+v", err, c)
	}
}
