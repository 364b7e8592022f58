package catalog

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/RoaringBitmap/roaring/v2"
)

// drawEntry returns random commands that mostly fit the state. Some have wrong fences, epochs or
// subjects.
func drawEntry(rng *rand.Rand, v *View, index uint64, now time.Time) Entry {
	e := Entry{Index: index, At: now, Node: "n1"}
	if rng.IntN(2) == 0 {
		e.Request = [16]byte{1, byte(rng.IntN(8)), byte(index / 50)}
	}
	if rng.IntN(2) == 0 {
		e.Commands = append(e.Commands, &Attribute{Actor: Actor{Type: ActorUser, ID: "a1"}, Keep: time.Hour})
	}
	for range 1 + rng.IntN(4) {
		e.Commands = append(e.Commands, drawCommand(rng, v, now))
	}
	return e
}

func drawCommand(rng *rand.Rand, v *View, now time.Time) Command {
	node := fmt.Sprintf("n%d", 1+rng.IntN(4))
	kind, subject, fence, epoch := drawJob(rng, v)
	repo := SubjectRepo(subject)
	if kind == JobPack && rng.IntN(2) == 0 {
		return drawPack(rng, v, subject, fence, node)
	}
	switch rng.IntN(36) {
	case 35:
		return &SetHistory{Glob: string('a' + rune(rng.IntN(4))), Include: rng.IntN(2) == 0, Remove: rng.IntN(3) == 0}
	case 0:
		return &PutMember{Member{ID: node, Epoch: uint64(1+rng.IntN(1+int(v.Index()/40)))<<24 + rng.Uint64N(2), Addr: fmt.Sprint(rng.IntN(3)), Highest: uint64(rng.IntN(3))}}
	case 1:
		text := []string{"a", "b", "a b", "a b c", ""}[rng.IntN(5)]
		c := &SetConfig{Raw: []byte(text), Hash: hashText(text), Instead: InsteadOfAny, Careful: rng.IntN(4) == 0, Renames: rng.IntN(2) == 0, Keep: time.Duration(rng.IntN(2)) * time.Hour}
		for _, n := range bytes.Fields([]byte(text)) {
			c.Connections = append(c.Connections, ConnectionDef{string(n), "git", fmt.Sprint(rng.IntN(3))})
		}
		return c
	case 2, 3:
		return &EnqueueJob{Kind: kind, Subject: subject, Urgent: rng.IntN(3) == 0}
	case 4, 5, 6:
		return &GrantJob{Kind: kind, Subject: subject, Node: node, Epoch: epoch, Deadline: now.Add(time.Hour)}
	case 7:
		return &FinishJob{Kind: kind, Subject: subject, Fence: fence, Error: "e", Permanent: rng.IntN(3) == 0, NotBefore: now.Add(time.Second), TokenRefused: rng.IntN(2) == 0}
	case 8:
		return &RevokeJob{Kind: kind, Subject: subject, Fence: fence, Reason: "r"}
	case 9, 10:
		p := &SyncPage{Connection: subject, Fence: fence}
		for range rng.IntN(6) {
			p.Repos = append(p.Repos, randomListed(rng))
		}
		return p
	case 11, 12:
		return drawListing(rng, v, subject, fence)
	case 13, 14:
		return &FinishIndex{Repo: repo, Fence: fence, Unchanged: rng.IntN(4) == 0, Holder: node, Second: fmt.Sprintf("n%d", rng.IntN(6)), Continue: rng.IntN(4) == 0,
			Revisions: []Revision{{"HEAD", hash(rng.IntN(9))[:40]}},
			Shards:    []ShardRef{{ID: hash(rng.IntN(20)), Bytes: 5}, {ID: hash(20 + rng.IntN(20)), Dead: hash(rng.IntN(40))}}}
	case 15:
		return &FinishCollect{Repo: repo, Fence: fence}
	case 16:
		return &Confirm{Node: node, Epoch: epoch, Held: []string{ShardKey(hash(rng.IntN(40))), MirrorKey(repo)}, Lost: []string{ShardKey(hash(rng.IntN(40)))}}
	case 17:
		return &CreateKey{Key{ID: fmt.Sprint(rng.IntN(9)), Name: fmt.Sprint(rng.IntN(9)), Hash: bytes.Repeat([]byte{byte(rng.IntN(9))}, 32), Role: RoleOwner}}
	case 18:
		return &RevokeKey{fmt.Sprint(rng.IntN(9))}
	case 20, 21, 22:
		return drawPeople(rng, v)
	case 23, 24:
		return drawConsent(rng, v)
	case 25, 26, 27:
		return drawThread(rng, v, node)
	case 28, 29:
		return drawAccess(rng, v, node)
	case 30, 31, 32:
		return drawRest(rng, kind, subject, now)
	case 33, 34:
		return drawWatch(rng, v, repo)
	}
	return []Command{&ReleaseJob{Kind: kind, Subject: subject, Fence: fence}, &SetMemberState{node, MemberState(1 + rng.IntN(2))},
		&Place{[]Group{{Number: rng.Uint64N(9), Nodes: []uint32{1 + rng.Uint32N(4)}}}}, &InitCluster{"c"}, &CheckHash{},
		&SetSecret{"s", []byte{byte(rng.IntN(3))}, rng.IntN(2) == 0}, &SealConfig{hashText(string('a' + rune(rng.IntN(3)))), SealedConfig([]byte{byte(rng.IntN(3))})}, &RemoveMember{fmt.Sprintf("n%d", 3+rng.IntN(60))}, &RaiseLevel{Level: v.Raisable(), Version: "v"}}[rng.IntN(9)]
}

// drawListing returns a command that ends a listing, in one of the two forms.
func drawListing(rng *rand.Rand, v *View, connection string, fence uint64) Command {
	c := FinishSync{Connection: connection, Fence: fence, Complete: rng.IntN(3) > 0, Hash: fmt.Sprint(rng.IntN(3)), Nothing: rng.IntN(9) == 0}
	if j := v.Job(JobSync, connection); j != nil {
		c.Listed = j.Seen
	}
	repos := []RepoID{1 + rng.Uint32N(20), 1 + rng.Uint32N(20)}
	switch rng.IntN(4) {
	case 0:
		c.Held, c.HeldRepos = 2, repos
	case 1:
		c.Kept, c.Partial = repos, []string{"orgs/h"}
		c.Issues = []ListingIssue{{Code: "c", Target: "orgs/h", Text: "t", Partial: true}}
	case 2:
		c.Warnings, c.Excluded = []string{"w"}, []ReasonCount{{"archived", rng.Uint32N(9)}}
		c.Account, c.Again = Account{Calls: rng.Uint32N(9)}, v.Time().Add(time.Hour)
	}
	if rng.IntN(3) == 0 {
		return &FinishListing{FinishSync: c, Total: c.Listed + rng.Uint32N(2), Gone: repos}
	}
	return &c
}

// drawRest returns one of the commands with few preconditions.
func drawRest(rng *rand.Rand, kind JobKind, subject string, now time.Time) Command {
	id := fmt.Sprint(rng.IntN(9))
	return []Command{
		&AcceptListing{Connection: string("abc"[rng.IntN(3)])},
		&NoteEvent{Action: "a", TargetType: "t", Target: id, Message: "m"},
		&TouchKeys{IDs: []string{id}, Used: now},
		&CancelJob{Kind: kind, Subject: subject, Reason: "r"},
		&SetSecret{"s/" + id, []byte{byte(rng.IntN(3))}, false},
		&DropSecrets{Names: []string{"s", "s/" + id}},
		&Noop{},
	}[rng.IntN(7)]
}

// drawPeople changes an account or its grants, usually an existing one.
func drawPeople(rng *rand.Rand, v *View) Command {
	id := fmt.Sprint("a", rng.IntN(5))
	a := User{ID: id, Email: fmt.Sprintf("%d@x", rng.IntN(6)), Role: Role(1 + rng.IntN(2)), State: AccountState(1 + rng.IntN(2))}
	switch rng.IntN(9) {
	case 6, 7, 8:
		return drawSession(rng, v, id)
	case 0:
		return &DeleteAccount{ID: id}
	case 1, 2:
		return &SetGrants{Account: id, Source: GrantedByOwner, Add: []RepoID{RepoID(1 + rng.IntN(20))}, Remove: []RepoID{RepoID(rng.IntN(20))}}
	case 3:
		return &CreateKey{Key{ID: fmt.Sprint(rng.IntN(9)), Name: fmt.Sprint(rng.IntN(9)), Account: id, Hash: bytes.Repeat([]byte{byte(rng.IntN(9))}, 32), Role: RoleMember}}
	}
	c := &PutAccount{Account: a}
	if old := v.Account(id); old != nil {
		c.Instead = old.Changed
	}
	return c
}

// drawWayIn changes how an account signs in.
func drawWayIn(rng *rand.Rand, account string) Command {
	x := Identity{Provider: "p", Subject: fmt.Sprint(rng.IntN(6)), Account: account}
	link := []string{"", "", "", fmt.Sprint("l", rng.IntN(9))}[rng.IntN(4)]
	return []Command{
		&SetPassword{Account: account, Hash: "h", Link: link},
		&PutLink{Link{ID: fmt.Sprint("l", rng.IntN(9)), Hash: bytes.Repeat([]byte{byte(rng.IntN(200))}, 32), Account: account, Expires: epoch.Add(time.Hour)}},
		&LinkIdentity{Identity: x, Link: link},
		&UnlinkIdentity{Account: account, Provider: "p", Subject: x.Subject},
		&Join{Account: User{ID: account, Email: account + "@join", Role: RoleMember, State: AccountPending}, Identity: x},
	}[rng.IntN(5)]
}

// drawAccess reports permissions from a code host, usually under a valid fence.
func drawAccess(rng *rand.Rand, v *View, node string) Command {
	for j := range v.JobsOf(JobRunning) {
		if rng.IntN(3) == 0 || j.Kind != JobRepoSync && j.Kind != JobAccountSync {
			continue
		}
		fence, people := j.Fence-uint64(rng.IntN(6)/5), []string{fmt.Sprint(rng.IntN(4)), fmt.Sprint(rng.IntN(4))}
		if j.Kind == JobRepoSync {
			return &FinishRepoAccess{Repo: SubjectRepo(j.Subject), Fence: fence, Seen: v.Index() - rng.Uint64N(9), Partial: rng.IntN(3) == 0, Readers: 2, Add: people[:1], Remove: people[1:], More: rng.IntN(5) == 0}
		}
		site, subject := SplitReaderKey(j.Subject)
		if rng.IntN(5) == 0 {
			return &RefuseReader{Site: site, Subject: subject, Fence: fence, Issue: "gone"}
		}
		c := &FinishReaderAccess{Site: site, Subject: subject, Fence: fence, Add: []byte{byte(rng.IntN(2))}}
		if r := v.Reader(site, subject); r != nil {
			c.Instead, c.Remove = r.Changed, r.Repos
		}
		if rng.IntN(4) > 0 {
			c.Add = encodeSet(roaring.BitmapOf(rng.Uint32N(20), rng.Uint32N(20)))
		}
		return c
	}
	switch rng.IntN(5) {
	case 4:
		return drawHostToken(rng, v)
	case 0:
		return &AgeAccess{Before: v.Time(), Repos: []RepoID{rng.Uint32N(20), rng.Uint32N(20)}, Readers: []string{ReaderKey("gitea:h", fmt.Sprint(rng.IntN(4)))}}
	case 1:
		return &SayPermissionSync{Node: node, Permissions: PermissionSync(rng.IntN(4))}
	case 2:
		return &EnqueueJob{Kind: JobAccountSync, Subject: ReaderKey("gitea:h", fmt.Sprint(rng.IntN(4)))}
	}
	return &EnqueueJob{Kind: JobRepoSync, Subject: RepoSubject(rng.Uint32N(20)), Urgent: true}
}

// drawHostToken stores a person's host token, or replaces one under the fence of a job.
func drawHostToken(rng *rand.Rand, v *View) Command {
	c := &PutHostToken{Account: fmt.Sprint("a", rng.IntN(5)), Ask: rng.IntN(2) == 0}
	c.Token = HostToken{Provider: "p", Subject: fmt.Sprint(rng.IntN(6)), Site: "gitea:h", Sealed: []byte{byte(rng.IntN(3))}}
	if x := v.Identity("p", c.Token.Subject); x != nil && rng.IntN(4) > 0 {
		c.Account = x.Account
	}
	if j := v.Job(JobAccountSync, ReaderKey("gitea:h", c.Token.Subject)); j != nil && rng.IntN(2) == 0 {
		c.Fence = j.Fence
		if old := v.hostTokens.Get(c.Token.Key()); old != nil {
			c.Instead = old.Set
		}
	}
	return c
}

// drawConsent adds, rotates or ends a consent.
func drawConsent(rng *rand.Rand, v *View) Command {
	id, account := fmt.Sprint("c", rng.IntN(6)), fmt.Sprint("a", rng.IntN(5))
	switch rng.IntN(6) {
	case 0:
		return &EndConsents{IDs: []string{id}}
	case 1:
		return &EndConsents{Account: account}
	case 2, 3:
		from := uint64(1)
		if c := v.Consent(id); c != nil {
			from = c.Generation - rng.Uint64N(2)
		}
		return &RotateConsent{ID: id, From: from, Expires: v.Time().Add(time.Hour)}
	}
	c := &PutConsent{Consent: Consent{ID: id, Account: account, Client: make([]byte, 32), Key: []string{"", "1"}[rng.IntN(2)], Expires: v.Time().Add(time.Hour)}}
	if a := v.Account(account); a != nil {
		c.Since = a.Changed
	}
	return c
}

// drawThread changes a thread, under its fence or a wrong one.
func drawThread(rng *rand.Rand, v *View, node string) Command {
	id, owner, fence := fmt.Sprint("t", rng.IntN(9)), []string{"", "a1", "a2"}[rng.IntN(3)], v.Index()
	if h := v.Thread(id); h != nil {
		owner, fence = h.Owner, h.Run.Fence+uint64(rng.IntN(5)/4)
	}
	switch rng.IntN(8) {
	case 0, 1, 2:
		return &BeginTurn{Thread: id, New: v.Thread(id) == nil, Owner: owner, Title: []byte("t"), Public: rng.IntN(2) == 0, Asked: rng.Uint64N(9), Node: node, Lost: ThreadTurn{File: hash(rng.IntN(40)), Events: 4, Failed: true}}
	case 3, 4:
		return &EndTurn{Thread: id, Fence: fence, Turn: ThreadTurn{File: hash(rng.IntN(40)), Bytes: 9, Events: 4, Failed: rng.IntN(2) == 0}}
	case 5:
		return &ChangeThread{Thread: id, Title: []byte{byte(rng.IntN(3))}, Public: rng.IntN(2) == 0}
	case 6:
		return &ForkThread{From: id, Thread: fmt.Sprint("t", rng.IntN(9)), Owner: owner}
	}
	return &DeleteThread{Thread: id}
}

// drawWatch makes, changes or removes a watch, or stores what its checks found.
func drawWatch(rng *rand.Rand, v *View, repo RepoID) Command {
	id := fmt.Sprint("w", rng.IntN(9))
	switch rng.IntN(6) {
	case 0, 1:
		w := Watch{ID: id, Account: fmt.Sprint("a", 1+rng.IntN(3)), Name: "n", Query: "q", Shared: rng.IntN(2) == 0, Mail: rng.IntN(2) == 0, Feed: []byte{byte(rng.IntN(3))}}
		if old := v.Watch(id); old != nil {
			w.Account = old.Account
		}
		return &PutWatch{w, v.Watch(id) == nil}
	case 2:
		return &DeleteWatch{id}
	case 3:
		return &NoteDeliveries{[]Delivery{{Watch: id, Number: v.Index() << 16, Missed: rng.Uint64N(2), Failing: v.Time(), Problem: "p"}}}
	}
	c := &FinishChecks{}
	for b := range v.Backlogs() {
		check := Check{Repo: b.Repo, First: b.First - rng.Uint64N(5)/4, To: []Revision{{"HEAD", hash(rng.IntN(9))[:40]}}[:rng.IntN(2)]}
		for range rng.IntN(4) {
			check.Notices = append(check.Notices, Notice{ID: "n", Watch: fmt.Sprint("w", rng.IntN(9)), Total: 1, Hits: []Hit{{Commit: hash(rng.IntN(9))[:40], Title: "t", At: v.Time()}}})
		}
		c.Checks = append(c.Checks, check)
	}
	return c
}

// drawSession begins, uses or ends a session of an account.
func drawSession(rng *rand.Rand, v *View, account string) Command {
	if c := drawWayIn(rng, account); rng.IntN(3) == 0 {
		return c
	}
	n := rng.IntN(30)
	s := Session{ID: fmt.Sprint("s", n), Hash: bytes.Repeat([]byte{byte(n)}, 32), Account: account, Idle: time.Duration(1+rng.IntN(1000)) * time.Second, Expires: v.Time().Add(time.Duration(rng.IntN(2000)) * time.Second)}
	switch rng.IntN(5) {
	case 0:
		return &EndSessions{IDs: []string{s.ID}}
	case 1:
		return &EndSessions{Account: account, But: s.ID}
	case 2:
		return &TouchSessions{Used: v.Time(), IDs: []string{s.ID}}
	}
	return &PutSession{s}
}

// drawPack packs some files of all repositories, with some wrong hashes.
func drawPack(rng *rand.Rand, v *View, subject string, fence uint64, node string) Command {
	c := &FinishPack{Subject: subject, Fence: fence, Holder: node, Packs: []ShardRef{{ID: hash(rng.IntN(40)), Bytes: 9, Pack: 9}}}
	for range 1 + rng.IntN(9) {
		c.From = append(c.From, hash(rng.IntN(40)))
	}
	for r := range v.Repos() {
		c.Repos = append(c.Repos, PackedRepo{r.ID, FilesHash(r.Shards, func(id string) bool { return slices.Contains(c.From, id) }) + rng.Uint64N(2),
			[]PackShare{{Docs: 1, Text: 3}}})
	}
	return c
}

// drawJob picks a job, its fence or a wrong one, and the epoch of a random node.
func drawJob(rng *rand.Rand, v *View) (JobKind, string, uint64, uint64) {
	kind, subject, epoch := []JobKind{JobSync, JobIndex, JobCollect, JobPack, JobRepoSync, JobAccountSync}[rng.IntN(6)], RepoSubject(RepoID(rng.IntN(20))), uint64(1<<24)
	switch kind {
	case JobSync:
		subject = string("abc"[rng.IntN(3)])
	case JobAccountSync:
		subject = ReaderKey("gitea:h", fmt.Sprint(rng.IntN(4)))
	case JobPack:
		subject = PackSubject([][]uint32{nil, {2, 1}, {3}}[rng.IntN(3)])
	}
	if jobs := slices.Collect(v.JobsOf(JobRunning)); len(jobs) > 0 && rng.IntN(2) == 0 {
		j := jobs[rng.IntN(len(jobs))]
		kind, subject = j.Kind, j.Subject
	}
	fence := v.Index()
	if j := v.Job(kind, subject); j != nil {
		fence = j.Fence - uint64(rng.IntN(5)/4)
	}
	for m := range v.Members() {
		if rng.IntN(2) == 0 {
			epoch = m.Epoch
		}
	}
	return kind, subject, fence, epoch
}

func reload(t *testing.T, s *State) *State {
	t.Helper()
	var buf, again bytes.Buffer
	if err := s.View().Save(&buf); err != nil {
		t.Fatal(err)
	}
	loaded, err := s.build.Load(bytes.NewReader(buf.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	if err := loaded.View().Save(&again); err != nil || !bytes.Equal(buf.Bytes(), again.Bytes()) {
		t.Fatalf("a snapshot of a restored state has other bytes: %v", err)
	}
	return loaded
}

// Three replicas apply the same entries. Two of them are saved and loaded at random points, and one
// starts late from the snapshot of another.
func TestReplicas_agreeThroughSnapshots(t *testing.T) {
	t.Parallel()
	for seed := range uint64(12) {
		rng := rand.New(rand.NewPCG(seed, 0))
		now := epoch
		replicas := []*State{future.New(), future.New(), nil}
		var old *View
		var oldHash uint64
		accepted := map[string]int{}
		for index := uint64(1); index <= 1500; index++ {
			now = now.Add(time.Duration(rng.IntN(2000)-200) * time.Millisecond)
			e := drawEntry(rng, replicas[0].View(), index, now)
			data, err := e.Encode()
			if err != nil {
				t.Fatal(err)
			}
			for i, s := range replicas {
				if s == nil {
					continue
				}
				e, err := DecodeEntry(index, data)
				if err != nil {
					t.Fatal(err)
				}
				for n, r := range s.Apply(e) {
					if i == 0 && r.Err == nil && n < len(e.Commands) {
						accepted[CommandName(e.Commands[n])]++
					}
				}
				if got, want := s.View().Hash(), replicas[0].View().Hash(); got != want {
					t.Fatalf("seed %d, entry %d %+v: replica %d has hash %x, the first %x", seed, index, e.Commands, i, got, want)
				}
			}
			switch rng.IntN(100) {
			case 0:
				replicas[1] = reload(t, replicas[1])
			case 1:
				replicas[2] = reload(t, replicas[rng.IntN(2)])
			case 2:
				old = replicas[0].View()
				oldHash = rehash(old)
			}
			if old != nil && index%100 == 0 && rehash(old) != oldHash {
				t.Fatalf("seed %d, entry %d: a view of entry %d changed", seed, index, old.Index())
			}
		}
		checkTables(t, replicas[0])
		for _, kind := range commandKinds {
			if name := kind.typ.Name(); accepted[name] == 0 && name != "Noop" && name != "TouchKeys" {
				t.Logf("seed %d: no %s was accepted", seed, name)
			}
		}
	}
}

// rehash computes the state hash from the records alone.
func rehash(v *View) uint64 {
	sum := metaKind.hash(&v.meta)
	if v.raised.Number > 0 {
		sum += levelKind.hash(&v.raised)
	}
	if v.config.Index > 0 {
		sum += configKind.hash(v.config)
	}
	for _, row := range v.rows {
		sum += row.(interface{ rehash(*tables) uint64 }).rehash(&v.tables)
	}
	return sum
}

func (r *row[K, T]) rehash(t *tables) uint64 {
	var sum uint64
	for rec := range r.at(t).Records() {
		sum += r.kind.hash(rec)
	}
	return sum
}

// checkTables compares the indexes with the records, and checks the invariants between tables.
func checkTables(t *testing.T, s *State) {
	t.Helper()
	v := s.View()
	if got, want := v.Hash(), rehash(v); got != want {
		t.Fatalf("the hash kept is %x, that of the records %x", got, want)
	}
	fresh := reload(t, s)
	for what, got := range map[string][2]int{
		"names": {s.names.Len(), fresh.names.Len()}, "job states": {s.jobStates.Len(), fresh.jobStates.Len()},
		"jobs to grant":         {s.turns.Len(), fresh.turns.Len()},
		"e-mails":               {s.emails.Len(), fresh.emails.Len()},
		"identities by account": {s.persons.Len(), fresh.persons.Len()},
		"key hashes":            {s.keyHashes.Len(), fresh.keyHashes.Len()}, "numbers": {s.numbers.Len(), fresh.numbers.Len()},
		"references": {s.refs.Len(), fresh.refs.Len()}, "order": {s.order.Len(), fresh.order.Len()},
		"replies": {s.replies, fresh.replies}, "running": {s.running.Len(), fresh.running.Len()},
		"threads by owner": {s.threadOwners.Len(), fresh.threadOwners.Len()}, "threads at work": {s.threadRuns.Len(), fresh.threadRuns.Len()},
		"watches by owner": {s.watchOwners.Len(), fresh.watchOwners.Len()}, "notices by watch": {s.watchNotices.Len(), fresh.watchNotices.Len()},
		"watches by feed": {s.watchFeeds.Len(), fresh.watchFeeds.Len()},
	} {
		if got[0] != got[1] {
			t.Errorf("index of %s: %d kept, %d made anew", what, got[0], got[1])
		}
	}
	for id, n := range s.refs.All() {
		if m, _ := fresh.refs.Get(id); m != n {
			t.Errorf("file %s: %d references kept, %d made anew", id, n, m)
		}
	}
	for w := range v.Watches() {
		if v.Account(w.Account) == nil || len(v.NoticesOf(w.ID)) > maxNoticesOfOne {
			t.Errorf("watch %s is of no account, or has too many notices", w.ID)
		}
	}
	for k := range v.Keys() {
		if k.Account != "" && v.Account(k.Account) == nil {
			t.Errorf("key %s is of an account that is not there", k.ID)
		}
	}
	for g := range v.grants.Records() {
		if v.Account(g.Account) == nil || g.Set().IsEmpty() {
			t.Errorf("grants %q of nobody or of nothing", g.Key())
		}
	}
	for x := range v.HostTokens() {
		if of := v.identities.Get(x.Key()); of == nil || v.Account(of.Account).State != AccountActive {
			t.Errorf("a token of %s at %s, who may not sign in", x.Subject, x.Site)
		}
	}
	for h := range v.Holdings() {
		tx := txn{State: s}
		if !tx.isFileNeeded(h.Key) || len(h.Nodes) == 0 || !slices.IsSorted(h.Nodes) {
			t.Errorf("holding %+v of something that nobody needs", h)
		}
	}
	for j := range v.Jobs() {
		tx := txn{State: s}
		if !tx.hasSubject(j.Kind, j.Subject) {
			t.Errorf("job %+v has no subject", j)
		}
	}
}

// model is a second implementation of the state machine of one job, as drawn in job.go.
type model struct {
	state         string
	rerun, urgent bool
	fence         uint64
	attempt       int
	resets        int
}

func (m *model) wait(urgent bool) { *m = model{state: "waiting", fence: m.fence, urgent: urgent} }

func (m *model) step(op string, index, fence uint64) (ok bool) {
	held := m.state == "running" && m.fence == fence
	switch op {
	case "enqueue", "urgent":
		urgent := op == "urgent"
		switch {
		case m.state == "running":
			m.rerun, m.urgent = true, m.urgent || urgent
		case m.state == "waiting":
			m.urgent = m.urgent || urgent
		case m.state == "backoff" && !urgent:
		default:
			m.wait(urgent)
		}
		return true
	case "grant":
		if m.state != "waiting" && m.state != "backoff" {
			return false
		}
		m.state, m.fence, m.rerun = "running", index, false
		m.attempt++
		return true
	case "cancel":
		if m.state == "done" || m.state == "failed" {
			return false
		}
		m.state, m.rerun, m.urgent = "failed", false, false
		return true
	}
	if !held {
		return false
	}
	rerun := m.rerun
	m.rerun = false
	switch op {
	case "good":
		m.state, m.attempt, m.resets = "done", 0, 0
		urgent := m.urgent
		m.urgent = false
		if rerun {
			m.wait(urgent)
		}
	case "bad":
		m.state, m.resets = "backoff", 0
	case "hopeless":
		m.state, m.resets = "failed", 0
		if rerun {
			m.wait(m.urgent)
		}
	case "release":
		m.state = "waiting"
		m.attempt--
	case "revoke":
		m.state = "waiting"
		if m.resets++; m.resets > MaxResets {
			m.state = "failed"
		}
	}
	return true
}

func TestJobCommands_leaveTheSameJobsAsASimpleModel(t *testing.T) {
	t.Parallel()
	states := map[JobState]string{JobWaiting: "waiting", JobRunning: "running", JobBackoff: "backoff", JobDone: "done", JobFailed: "failed"}
	ops := []string{"enqueue", "urgent", "grant", "grant", "grant", "good", "bad", "hopeless", "release", "revoke", "revoke", "cancel"}
	for seed := range uint64(100) {
		rng := rand.New(rand.NewPCG(seed, 1))
		const kind, subject = JobKind(200), "who"
		b := newBook(t)
		b.s = New(JobRow{Kind: kind, Name: "model"})
		b.member("n1")
		b.do(&EnqueueJob{Kind: kind, Subject: subject})
		m := &model{state: "waiting"}
		var fences []uint64
		for range 300 {
			op := ops[rng.IntN(len(ops))]
			fence := m.fence
			if len(fences) > 0 && rng.IntN(4) == 0 {
				fence = fences[rng.IntN(len(fences))]
			}
			var cmd Command
			switch op {
			case "enqueue", "urgent":
				cmd = &EnqueueJob{Kind: kind, Subject: subject, Urgent: op == "urgent"}
			case "grant":
				cmd = &GrantJob{Kind: kind, Subject: subject, Node: "n1", Epoch: 1 << 24}
			case "good":
				cmd = &FinishJob{Kind: kind, Subject: subject, Fence: fence}
			case "bad", "hopeless":
				cmd = &FinishJob{Kind: kind, Subject: subject, Fence: fence, Error: "e", Permanent: op == "hopeless"}
			case "release":
				cmd = &ReleaseJob{Kind: kind, Subject: subject, Fence: fence}
			case "revoke":
				cmd = &RevokeJob{Kind: kind, Subject: subject, Fence: fence, Reason: "r"}
			case "cancel":
				cmd = &CancelJob{Kind: kind, Subject: subject, Reason: "r"}
			}
			got := b.apply(cmd)[0].Err == nil
			want := m.step(op, b.index, fence)
			j := b.s.View().Job(kind, subject)
			is := model{state: states[j.State], rerun: j.Rerun, urgent: j.Urgent, fence: j.Fence, attempt: int(j.Attempt), resets: int(j.Resets)}
			if got != want || is != *m {
				t.Fatalf("seed %d: %s at entry %d: accepted %v, want %v\n got %+v\nwant %+v", seed, op, b.index, got, want, is, *m)
			}
			if op == "grant" && got {
				fences = append(fences, m.fence)
			}
		}
	}
}

// large returns a catalog of n repositories with two shards each.
func large(tb testing.TB, n int) *State {
	tb.Helper()
	s := New()
	index := uint64(0)
	apply := func(c ...Command) Result {
		index++
		r := s.Apply(Entry{Index: index, At: epoch, Commands: c})
		if r[0].Err != nil {
			tb.Fatal(r[0].Err)
		}
		return r[0]
	}
	apply(&SetConfig{Raw: []byte("a"), Hash: hashText("a"), Connections: []ConnectionDef{{"a", "git", "a"}}, Instead: InsteadOfAny})
	apply(&PutMember{Member{ID: "n1", Epoch: 1 << 24}})
	fence := apply(&GrantJob{Kind: JobSync, Subject: "a", Node: "n1", Epoch: 1 << 24}).ID
	for at := 0; at < n; at += MaxPage {
		p := &SyncPage{Connection: "a", Fence: fence}
		for i := at; i < min(at+MaxPage, n); i++ {
			p.Repos = append(p.Repos, ListedRepo{Name: fmt.Sprintf("example.com/org-%d/repository-%d", i%100, i), RepoFacts: RepoFacts{DisplayName: "x", CloneURL: fmt.Sprintf("https://example.com/org-%d/repository-%d.git", i%100, i), Public: true}})
		}
		apply(p)
	}
	for id := RepoID(1); id <= RepoID(n); id++ {
		g := apply(&GrantJob{Kind: JobIndex, Subject: RepoSubject(id), Node: "n1", Epoch: 1 << 24}).ID
		apply(&FinishIndex{Repo: id, Fence: g, Holder: "n1", Revisions: []Revision{{"HEAD", hash(int(id))[24:]}},
			Shards: []ShardRef{{ID: hash(int(id)), Bytes: 1}, {ID: hash(int(id) + n), Bytes: 1}}})
	}
	return s
}

func TestLoad_refusesDamagedSnapshots(t *testing.T) {
	t.Parallel()
	var buf bytes.Buffer
	if err := large(t, 700).View().Save(&buf); err != nil {
		t.Fatal(err)
	}
	good := buf.Bytes()
	rng := rand.New(rand.NewPCG(3, 3))
	for range 200 {
		bad := slices.Clone(good)
		at := rng.IntN(len(bad))
		bad[at] ^= 1 << rng.IntN(8)
		if _, err := Load(bytes.NewReader(bad)); err == nil {
			t.Fatalf("a flipped bit in byte %d of %d is accepted", at, len(bad))
		}
		if _, err := Load(bytes.NewReader(good[:at])); !errors.Is(err, ErrDamaged) {
			t.Fatalf("cut at %d of %d: got %v, want %v", at, len(good), err, ErrDamaged)
		}
	}
}

func FuzzLoadSnapshot_neverPanics(f *testing.F) {
	var buf bytes.Buffer
	if err := large(f, 3).View().Save(&buf); err != nil {
		f.Fatal(err)
	}
	f.Add(buf.Bytes())
	f.Fuzz(func(t *testing.T, data []byte) {
		if s, err := Load(bytes.NewReader(data)); err == nil {
			reload(t, s)
		}
		s := New()
		for tag := byte(1); tag < 13; tag++ {
			_ = s.restore(tag, data)
		}
	})
}

func FuzzDecodeEntry_decodedEntriesEncode(f *testing.F) {
	rng := rand.New(rand.NewPCG(4, 4))
	s := New()
	for i := range uint64(300) {
		e := drawEntry(rng, s.View(), i+1, epoch)
		data, err := e.Encode()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
		s.Apply(e)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		e, err := DecodeEntry(1, data)
		if err != nil {
			return
		}
		if _, err := e.Encode(); err != nil {
			t.Fatalf("an entry that was decoded does not encode: %v", err)
		}
		New().Apply(e)
	})
}

func BenchmarkApplyAndView(b *testing.B) {
	s := large(b, 100_000)
	index := s.Index()
	for b.Loop() {
		index++
		s.Apply(Entry{Index: index, At: epoch, Commands: []Command{&EnqueueJob{Kind: JobIndex, Subject: RepoSubject(RepoID(index%100_000 + 1)), Urgent: true}}})
		_ = s.View()
	}
}

func BenchmarkSaveSnapshot(b *testing.B) {
	v := large(b, 100_000).View()
	for b.Loop() {
		var w countWriter
		if err := v.Save(&w); err != nil {
			b.Fatal(err)
		}
		b.SetBytes(int64(w))
	}
}

func BenchmarkLoadSnapshot(b *testing.B) {
	var buf bytes.Buffer
	if err := large(b, 100_000).View().Save(&buf); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(buf.Len()))
	for b.Loop() {
		if _, err := Load(bytes.NewReader(buf.Bytes())); err != nil {
			b.Fatal(err)
		}
	}
}

type countWriter int

func (w *countWriter) Write(b []byte) (int, error) {
	*w += countWriter(len(b))
	return len(b), nil
}

// randomListed returns a repository of a host, with or without the host's id. Names move between
// ids.
func randomListed(rng *rand.Rand) ListedRepo {
	l := ListedRepo{Name: fmt.Sprintf("h/%d", rng.IntN(30)), RepoFacts: RepoFacts{Stars: rng.Uint32N(3), Public: true}, Target: "orgs/h"}
	switch rng.IntN(3) {
	case 0:
		l.ExternalID = fmt.Sprintf("gitea:h:%d", rng.IntN(40))
	case 1:
		l.CloneURL = fmt.Sprintf("file:///srv/%d", rng.IntN(9))
	}
	return l
}
