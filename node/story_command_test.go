package node_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/shoalsearch/shoal/cluster"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/cluster/wire"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/browse"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/node/configure"
	"github.com/shoalsearch/shoal/node/host"
	"github.com/shoalsearch/shoal/node/nodetest"
	"github.com/shoalsearch/shoal/node/operate"
	"github.com/shoalsearch/shoal/node/search"
)

// commands are the commands of a story; each returns its output. testdata/README.md describes
// them.
var commands = map[string]func(s *story, args []string) string{
	"expect": func(s *story, args []string) string {
		s.fleet.Expect, _ = strconv.Atoi(args[0])
		return ""
	},
	"start": (*story).start, "launch": (*story).launch, "stop": (*story).stop, "crash": (*story).crash,
	"move": (*story).move, "refused": (*story).refused, "copy": (*story).copyData, "keep": (*story).keepData, "roll-back": (*story).rollBack,
	"wipe": (*story).wipe, "keys": (*story).writeKeys, "snapshot": (*story).snapshot, "restore": (*story).restore, "recover": (*story).recover,

	"repo": (*story).repo, "big-repo": (*story).bigRepo, "push": (*story).push, "forget": (*story).forget, "configure": (*story).configure,
	"host": (*story).hostRepo, "hold": (*story).hold, "release": (*story).release, "fetching": (*story).fetching,

	"apply": (*story).apply, "file-state": (*story).fileState,

	"name": (*story).name, "said": (*story).said,

	"cut": (*story).cut, "split": (*story).split, "isolate": (*story).isolate, "slow": (*story).slow, "flap": (*story).flap, "heal": (*story).heal,

	"search": (*story).search, "file": (*story).file, "watch": (*story).watchSearch, "watched": (*story).watched, "write": (*story).write, "written": (*story).written,
	"settled": (*story).settled, "members": (*story).members, "leaders": (*story).leaders, "ready": (*story).ready, "catalogs": (*story).catalogs, "age": (*story).age,
	"drain": (*story).drain, "remove": (*story).remove, "setting": (*story).setting, "holders": (*story).holders, "generation": (*story).generation, "files": (*story).files, "running": (*story).running,
}

func (s *story) start(args []string) string {
	s.launch(args)
	for _, name := range args {
		s.node(name).WaitReady()
	}
	return ""
}

func (s *story) launch(args []string) string {
	for _, name := range args {
		s.node(name).Launch()
	}
	return ""
}

func (s *story) stop(args []string) string {
	for _, name := range args {
		if err := s.node(name).End(); err != nil && !strings.Contains(err.Error(), "it was removed") {
			s.t.Errorf("%s ended with: %v", name, err)
		}
	}
	return ""
}

func (s *story) crash(args []string) string {
	for _, name := range args {
		s.fleet.Crash(s.index(name))
	}
	return ""
}

func (s *story) move(args []string) string {
	s.node(args[0]).Move()
	return ""
}

// refused starts a node that must exit by itself, and prints why. With "as a copy" it prints
// nothing if the node reported one of the three signs of a copy; which one depends on who answers
// first.
func (s *story) refused(args []string) string {
	n := s.node(args[0])
	err := n.TryLaunch()
	if err == nil {
		err = n.Ended()
	}
	if err == nil {
		return "it ended without a word"
	}

	signs := []string{"the data directory was copied", "it was rolled back or is a copy", "went back in time"}
	if len(args) > 1 && slices.ContainsFunc(signs, func(sign string) bool { return strings.Contains(err.Error(), sign) }) {
		return ""
	}
	return err.Error()
}

// copyData: copy n2 to n4.
func (s *story) copyData(args []string) string {
	s.saveDir(s.node(args[0]).Dir, s.node(args[2]).Dir)
	return ""
}

// keepData saves a copy of a node's data.
func (s *story) keepData(args []string) string {
	s.saved[args[0]] = filepath.Join(s.t.TempDir(), args[0])
	s.saveDir(s.node(args[0]).Dir, s.saved[args[0]])
	return ""
}

// rollBack restores the data that keep saved.
func (s *story) rollBack(args []string) string {
	s.saveDir(s.saved[args[0]], s.node(args[0]).Dir)
	return ""
}

// wipe empties the data directory of a node, or a part of it.
func (s *story) wipe(args []string) string {
	s.node(args[0]).RemoveAll(strings.Join(args[1:], ""))
	return ""
}

// writeKeys: keys B A on n1 n2. Each letter is a key.
func (s *story) writeKeys(args []string) string {
	letters, names := s.on(args)
	var text []string
	for _, l := range letters {
		if s.keys[l] == "" {
			s.keys[l] = wire.NewKey().Text()
		}
		text = append(text, s.keys[l])
	}
	for _, name := range names {
		s.node(name).WriteKey(strings.Join(text, "\n"))
	}
	return ""
}

// snapshot: snapshot FILE on n1.
func (s *story) snapshot(args []string) string {
	what, names := s.on(args)
	data, err := snapshot(s.node(names[0]))
	if err != nil {
		return err.Error()
	}
	s.saved[what[0]] = string(data)
	return ""
}

// restore: restore FILE on n4.
func (s *story) restore(args []string) string {
	what, names := s.on(args)
	n := s.node(names[0])
	r, err := cluster.Restore(n.Dir, n.KeyFile, bytes.NewReader([]byte(s.saved[what[0]])))
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("a new cluster without %s", s.named(r.Removed))
}

// recover makes a stopped node the only one of a new cluster.
func (s *story) recover(args []string) string {
	r, err := cluster.Recover(s.node(args[0]).Dir)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("a new cluster without %s", s.named(r.Removed))
}

// named returns ids as names in the story, in order.
func (s *story) named(ids []string) string {
	names := strings.Fields(s.plain(strings.Join(ids, " ")))
	slices.Sort(names)
	return strings.Join(names, " ")
}

// repo: repo app a.txt=text b.txt=text. Makes a repository or adds a commit.
func (s *story) repo(args []string) string {
	s.commit(args[0], args[1:])
	return ""
}

func (s *story) commit(name string, args []string) {
	files := map[string]string{}
	for _, a := range args {
		path, text, _ := strings.Cut(a, "=")
		files[path] = text + "\n"
	}
	if r := s.repos[name]; r != nil {
		r.Commit(files)
		return
	}
	// Make it elsewhere and move it, because a listing must not see half a repository.
	dir := filepath.Join(s.t.TempDir(), name)
	nodetest.NewRepo(s.t, dir, files)
	if err := os.Rename(dir, filepath.Join(s.dir, name)); err != nil {
		s.t.Fatal(err)
	}
	s.repos[name] = nodetest.OpenRepo(s.t, filepath.Join(s.dir, name))
}

// bigRepo: big-repo app 40 whale. Makes so many files of 2 KB with a word in each.
func (s *story) bigRepo(args []string) string {
	n, _ := strconv.Atoi(args[1])
	var files []string
	for i := range n {
		text := args[2] + fmt.Sprintf(" number%dx\n", i)
		for l := range 40 {
			text += fmt.Sprintf("line %d of %d: %x\n", l, i, (l+1)*(i+7)*2654435761)
		}
		files = append(files, fmt.Sprintf("dir/f%02d.txt=%s", i, text))
	}
	s.commit(args[0], files)
	return ""
}

// push: push app a.txt=text on n1. Makes a commit and sends a push event to a node.
func (s *story) push(args []string) string {
	what, names := s.on(args)
	s.commit(what[0], what[1:])
	req := operate.WebhookRequest{Connection: "local", Event: host.Event{Pushed: true, Paths: []string{"local/" + what[0]}}}
	if s.host != nil && slices.Contains(s.host.list(), what[0]) {
		req = operate.WebhookRequest{Connection: what[0], Event: host.Event{Pushed: true}}
	}
	began := time.Now()
	for {
		_, err := s.node(names[0]).Operate.Webhook(context.Background(), account.Operator(), req)
		// Repeat it if there is no leader, as a code host does.
		if !errors.Is(err, call.ErrNoLeader) || time.Since(began) > nodetest.Patience {
			return failure(err)
		}
	}
}

// forget deletes a repository at the code host.
func (s *story) forget(args []string) string {
	if err := os.RemoveAll(filepath.Join(s.dir, args[0])); err != nil {
		s.t.Fatal(err)
	}
	delete(s.repos, args[0])
	return ""
}

// configure: configure maxFileSize=1000 on n2. One node gets another file; "nothing" is an empty
// file.
func (s *story) configure(args []string) string {
	what, names := s.on(args)
	text := s.settings(what)
	if what[0] == "nothing" {
		text = "{}"
	}
	for _, name := range names {
		s.node(name).Configure(text)
	}
	return ""
}

// settings returns a configuration file with these settings.
func (s *story) settings(what []string) string {
	more := ""
	for _, w := range what {
		name, value, _ := strings.Cut(w, "=")
		more += fmt.Sprintf(", %q: %s", name, value)
	}
	return s.config(more)
}

// apply: apply maxFileSize=1000 on n2. An operator applies a file there.
func (s *story) apply(args []string) string {
	what, names := s.on(args)
	r, err := s.node(names[0]).Config.ApplyConfig(context.Background(), account.Operator(), configure.ApplyConfigRequest{Text: []byte(s.settings(what))})
	switch {
	case err != nil:
		return failure(err)
	case r.Changed:
		return "changed"
	}
	return "not changed"
}

// fileState prints whether the file of a node is in force.
func (s *story) fileState(args []string) string {
	_, names := s.on(args)
	return s.each(names, func(n *nodetest.Node) string {
		switch c := n.Status().Config; {
		case len(c.Errors) > 0:
			return "refused"
		case c.Differs:
			return "another one"
		case c.FileHash == "":
			return "not read yet"
		}
		return "in force"
	})
}

// hostRepo: host app a.txt=text. Makes a repository of a host that can hang.
func (s *story) hostRepo(args []string) string {
	if s.host == nil {
		s.host = newGitHost(s.t, s.t.TempDir())
	}
	s.commit(args[0], args[1:])
	if err := os.Rename(filepath.Join(s.dir, args[0]), filepath.Join(s.host.root, args[0])); err != nil {
		s.t.Fatal(err)
	}
	s.repos[args[0]] = nodetest.OpenRepo(s.t, filepath.Join(s.host.root, args[0]))
	s.host.add(args[0])
	for _, n := range s.fleet.Nodes {
		n.Configure(s.config(""))
	}
	return ""
}

func (s *story) hold(args []string) string {
	s.host.hold(args[0])
	return ""
}

func (s *story) release(args []string) string {
	s.host.release(args[0])
	return ""
}

// fetching prints how often a held repository was requested.
func (s *story) fetching(args []string) string {
	return fmt.Sprintf("fetched %d times", s.host.fetches(args[0]))
}

// cut: cut n1 n2, cut n1 > n2.
func (s *story) cut(args []string) string {
	if args[1] == ">" {
		s.fleet.CutOneWay(s.index(args[0]), s.index(args[2]))
	} else {
		s.fleet.Cut(s.index(args[0]), s.index(args[1]))
	}
	return ""
}

func (s *story) isolate(args []string) string {
	for _, name := range args {
		s.fleet.Isolate(s.index(name))
	}
	return ""
}

// split: split n1 n2 / n3 n4 n5.
func (s *story) split(args []string) string {
	var sides [2][]int
	i := 0
	for _, a := range args {
		if a == "/" {
			i = 1
			continue
		}
		sides[i] = append(sides[i], s.index(a))
	}
	s.fleet.Split(sides[0], sides[1])
	return ""
}

// slow: slow n1 n2 100ms.
func (s *story) slow(args []string) string {
	d, err := time.ParseDuration(args[2])
	if err != nil {
		s.t.Fatal(err)
	}
	s.fleet.Slow(s.index(args[0]), s.index(args[1]), d)
	return ""
}

// flap: flap n1 n2 100ms.
func (s *story) flap(args []string) string {
	d, err := time.ParseDuration(args[2])
	if err != nil {
		s.t.Fatal(err)
	}
	s.fleet.Flap(s.index(args[0]), s.index(args[1]), d)
	return ""
}

func (s *story) heal([]string) string {
	s.fleet.Heal()
	return ""
}

func (s *story) search(args []string) string {
	query, names := s.on(args)
	return s.each(names, func(n *nodetest.Node) string { return answer(n, strings.Join(query, " ")) })
}

// file: file app a.txt on n1.
func (s *story) file(args []string) string {
	what, names := s.on(args)
	return s.each(names, func(n *nodetest.Node) string {
		src, err := n.Browse.Source(context.Background(), catalog.Operator(), browse.SourceRequest{Repo: "local/" + what[0], Path: what[1]})
		if err != nil {
			return failure(err)
		}
		return string(src.Content)
	})
}

func (s *story) watchSearch(args []string) string {
	query, names := s.on(args)
	var nodes []*nodetest.Node
	for _, name := range names {
		nodes = append(nodes, s.node(name))
	}
	s.watch = newWatch(nodes, strings.Join(query, " "))
	s.t.Cleanup(s.watch.stop)
	return ""
}

func (s *story) watched([]string) string { return s.watch.end() }

// write makes an API key; the write goes through the leader.
func (s *story) write(args []string) string {
	what, names := s.on(args)
	return s.each(names, func(n *nodetest.Node) string {
		began := time.Now()
		_, err := n.Keys.CreateKey(context.Background(), account.Operator(), account.CreateKeyRequest{Name: what[0]})
		if errors.Is(err, call.ErrExists) && s.saved["tried "+what[0]] != "" {
			return "" // the answer to the last try was lost, not the write
		}
		s.saved["tried "+what[0]] = "yes"
		if errors.Is(err, call.ErrNoLeader) && time.Since(began) < 8*time.Second {
			return "refused in time: no leader"
		}
		return failure(err)
	})
}

// written prints the names of the keys.
func (s *story) written(args []string) string {
	_, names := s.on(args)
	return s.each(names, func(n *nodetest.Node) string {
		r, err := n.Keys.Keys(context.Background(), account.Operator(), false)
		if err != nil {
			return failure(err)
		}
		var out []string
		for _, k := range r {
			out = append(out, k.Name)
		}
		slices.Sort(out)
		return strings.Join(out, " ")
	})
}

// failure returns the text of an error, "" for nil.
func failure(err error) string {
	if err == nil {
		return ""
	}
	return "error: " + err.Error()
}

// settled: settled 3 on n1 n2. So many repositories are indexed with all possible copies, nothing
// is running, and all voters vote.
func (s *story) settled(args []string) string {
	what, names := s.on(args)
	repos, _ := strconv.Atoi(what[0])
	for _, name := range names {
		n := s.node(name)
		n.Wait("everything to be settled", func() error {
			st := n.Status()
			if st.Leader == "" || st.Repos.Total != repos || st.Repos.Indexed != repos || st.Jobs.Pending+st.Jobs.Running > 0 || st.Placement.UnderReplicated > 0 {
				return fmt.Errorf("leader %q, repositories %+v, jobs %+v, placement %+v, failed %+v", st.Leader, st.Repos, st.Jobs, st.Placement, st.Failed)
			}
			if !n.Announced() {
				return errors.New("the catalog does not know of its start")
			}
			alive, voters := 0, 0
			for _, m := range st.Members {
				if m.Health == "alive" {
					alive++
				}
				if m.Role != "nonvoter" {
					voters++
				}
			}
			if want := map[bool]int{true: 3, false: 1}[alive > 2]; voters != want {
				return fmt.Errorf("%d voters, want %d", voters, want)
			}
			return nil
		})
	}
	return ""
}

// members prints the members of the cluster with their roles.
func (s *story) members(args []string) string {
	_, names := s.on(args)
	return s.each(names, func(n *nodetest.Node) string {
		var out []string
		for _, m := range n.Status().Members {
			role, more := m.Role, ""
			if role == "leader" {
				role = "voter" // which of them leads is random
			}
			if m.Draining {
				more = " draining"
			}
			out = append(out, strings.TrimSpace(s.plain(m.ID))+" "+role+" "+m.Health+more)
		}
		slices.Sort(out)
		return strings.Join(out, "\n")
	})
}

// leaders prints how many different leaders the nodes name.
func (s *story) leaders(args []string) string {
	_, names := s.on(args)
	leaders := map[string]bool{}
	for _, name := range names {
		leaders[s.node(name).Status().Leader] = true
	}
	if leaders[""] {
		return "not all know a leader"
	}
	return fmt.Sprintf("%d", len(leaders))
}

func (s *story) ready(args []string) string {
	_, names := s.on(args)
	return s.each(names, func(n *nodetest.Node) string {
		if r := n.Ready(); !r.Ready {
			return "not ready: " + strings.Join(r.Reasons, "; ")
		}
		return "ready"
	})
}

// catalogs compares the state of nodes at an equal index.
func (s *story) catalogs(args []string) string {
	_, names := s.on(args)
	var top uint64
	for _, name := range names {
		top = max(top, s.node(name).View().Index())
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	type at struct{ index, hash uint64 }
	seen := map[at]bool{}
	for _, name := range names {
		if err := s.node(name).Await(ctx, top); err != nil {
			return name + " is behind"
		}
		v := s.node(name).View()
		seen[at{v.Index(), v.Hash()}] = true
	}
	if len(seen) > 1 {
		return "different, or on the move"
	}
	return "equal"
}

// age prints whether a node warns that its catalog may be old.
func (s *story) age(args []string) string {
	_, names := s.on(args)
	return s.each(names, func(n *nodetest.Node) string {
		// This search needs no shard, because holders may be cut off.
		r, err := n.Node.Search.Search(context.Background(), catalog.Operator(), search.Request{Query: "repo:^none$ anything"})
		switch {
		case err != nil:
			return failure(err)
		case r.Cluster.CatalogAge > time.Second:
			return "the answer says that it may be old"
		}
		return "the answer is current"
	})
}

// drain: drain n3 on n1.
func (s *story) drain(args []string) string {
	what, names := s.on(args)
	d, err := s.node(names[0]).Operate.Drain(context.Background(), account.Operator(), s.node(what[0]).ID())
	if err != nil {
		return failure(err)
	}
	if !d.Done {
		return fmt.Sprintf("%d to go", d.Remaining)
	}
	return "done"
}

// remove: remove n3 on n1, remove n3 accepting loss on n1.
func (s *story) remove(args []string) string {
	what, names := s.on(args)
	node, loss := s.node(what[0]).ID(), strings.Join(what[1:], " ") == "accepting loss"
	r, err := s.node(names[0]).Operate.Remove(context.Background(), account.Operator(), node, loss)
	if err != nil {
		return failure(err)
	}
	if len(r.Lost) > 0 {
		return "removed, and lost " + strings.Join(r.Lost, " ")
	}
	return "removed"
}

// setting: setting maxFileSize on n1 n2.
func (s *story) setting(args []string) string {
	what, names := s.on(args)
	return s.each(names, func(n *nodetest.Node) string {
		set := n.View().File().Settings
		switch what[0] {
		case "maxFileSize":
			return fmt.Sprint(set.MaxFileSize)
		case "maxTrigramCount":
			return fmt.Sprint(set.MaxTrigramCount)
		}
		return "unknown setting"
	})
}

// holders: holders app on n1. Prints the number of copies of each shard, and over how many nodes
// they are spread.
func (s *story) holders(args []string) string {
	what, names := s.on(args)
	return s.each(names, func(n *nodetest.Node) string {
		v := n.View()
		repo := v.RepoByName("local/" + what[0])
		if repo == nil {
			return "no such repository"
		}
		nodes, fewest := map[string]bool{}, 1000
		for _, sh := range repo.Shards {
			hs := v.Holders(catalog.ShardKey(sh.ID))
			fewest = min(fewest, len(hs))
			for _, h := range hs {
				nodes[h] = true
			}
		}
		many := "1 shard"
		if len(repo.Shards) > 1 {
			many = "many shards"
		}
		return fmt.Sprintf("%s on %d nodes, %d copies of each", many, len(nodes), fewest)
	})
}

// generation: generation app on n1 n2. Prints how often the repository was rebuilt.
func (s *story) generation(args []string) string {
	what, names := s.on(args)
	return s.each(names, func(n *nodetest.Node) string {
		name := "local/" + what[0]
		if s.host != nil {
			name = s.host.name() + "/" + what[0]
		}
		if repo := n.View().RepoByName(name); repo != nil {
			return fmt.Sprint(repo.Generation)
		}
		return "no such repository"
	})
}

// files prints whether the disks have exactly what the catalog names.
func (s *story) files(args []string) string {
	_, names := s.on(args)
	return s.each(names, func(n *nodetest.Node) string {
		dir, err := os.ReadDir(filepath.Join(n.Dir, "shards"))
		if err != nil {
			return err.Error()
		}
		live := n.LiveFiles()
		for _, f := range dir {
			if !f.IsDir() && !slices.Contains(live, f.Name()) {
				return "there are files that no repository has"
			}
		}
		return "no file too many"
	})
}

// running: running on n1. Prints whether the worker, another node or nobody has an index job.
func (s *story) running(args []string) string {
	_, names := s.on(args)
	return s.each(names, func(n *nodetest.Node) string {
		for j := range n.View().JobsOf(catalog.JobRunning) {
			switch {
			case j.Kind != catalog.JobIndex:
			case j.Node == s.node("worker").ID():
				return "worker"
			default:
				return "another"
			}
		}
		return "nobody"
	})
}

// name calls the node with an index job worker, and one without it other.
func (s *story) name([]string) string {
	for _, n := range s.fleet.Nodes {
		for j := range n.View().JobsOf(catalog.JobRunning) {
			for i, m := range s.fleet.Nodes {
				if j.Kind == catalog.JobIndex && m.ID() == j.Node {
					s.alias["worker"], s.alias["other"] = i, (i+1)%len(s.fleet.Nodes)
					return "found"
				}
			}
		}
	}
	return "nobody works"
}

// said: said TEXT on n1 n2. Prints how often the text is in their logs together.
func (s *story) said(args []string) string {
	what, names := s.on(args)
	count := 0
	for _, name := range names {
		count += strings.Count(s.logs[s.node(name).Dir].String(), strings.Join(what, " "))
	}
	return fmt.Sprintf("%d times", count)
}
