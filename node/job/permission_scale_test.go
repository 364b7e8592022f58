package job

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/shoalsearch/shoal/clock"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/cluster/clustertest"
)

// benchPeople is the variable that enables this measurement, which takes a minute. make
// bench-people sets it.
const benchPeople = "SHOAL_BENCH_PEOPLE"

// The company: each person reads what everybody reads, what their department reads, and some more.
const (
	peopleMany  = 5_000
	reposMany   = 100_000
	forAll      = 20_000
	departments = 100
	forSome     = 500
)

const (
	companySite = "bitbucket:h.example.com"
	companyHost = "https://h.example.com"
	companyFile = `{"connections":{"host":{"type":"bitbucket","deploymentType":"server","url":"https://h.example.com","user":"u","token":{"env":"T"},"all":true}},
		"identityProviders":{"bb":{"provider":"bitbucket-server","purpose":"account_linking","clientId":{"env":"A"},"clientSecret":{"env":"B"},"baseUrl":"https://h.example.com"}}}`
)

// company is a world that counts the bytes of its entries.
type company struct {
	*clustertest.World
	t     *testing.T
	bytes int // of the entries since it was last reset
}

// do applies one entry and counts its bytes in the log.
func (c *company) do(cmds ...catalog.Command) {
	c.t.Helper()
	e := catalog.Entry{At: c.Now(), Node: "n1", Commands: cmds}
	data, err := e.Encode()
	if err != nil {
		c.t.Fatal(err)
	}
	c.bytes += len(data)
	c.Do(cmds...)
}

// granted enqueues and grants a job, like the leader, and returns its fence.
func (c *company) granted(kind catalog.JobKind, subject string) uint64 {
	c.t.Helper()
	c.do(&catalog.EnqueueJob{Kind: kind, Subject: subject, Urgent: true})
	c.do(&catalog.GrantJob{Kind: kind, Subject: subject, Node: "n1", Epoch: clustertest.Epoch, Deadline: c.Now().Add(time.Hour)})
	return c.View().Job(kind, subject).Fence
}

// timed returns the median duration of n calls.
func timed(n int, call func(i int)) time.Duration {
	all := make([]time.Duration, n)
	for i := range all {
		began := clock.Now()
		call(i)
		all[i] = clock.Since(began)
	}
	for i := range all {
		for j := i; j > 0 && all[j] < all[j-1]; j-- {
			all[j], all[j-1] = all[j-1], all[j]
		}
	}
	return all[n/2]
}

// TestPermissions_ofALargeCompanyAreMeasured keeps 5,000 people and 100,000 repositories of a code host in one
// catalog. It prints the table in bench/report/people.md.
func TestPermissions_ofALargeCompanyAreMeasured(t *testing.T) {
	if os.Getenv(benchPeople) == "" {
		t.Skipf("set %s, or run make bench-people", benchPeople)
	}
	c := &company{World: clustertest.New(t, companyFile, 1), t: t}
	row := func(what, format string, args ...any) {
		fmt.Printf("| %s | %s |\n", what, fmt.Sprintf(format, args...))
	}

	c.do(&catalog.SayPermissionSync{Node: "n1", Permissions: catalog.PermissionSyncOn})
	ids := c.list()
	bare := memory()
	c.hire()
	row("people beside 100,000 repositories, before hosts are asked", "%.0f MB of memory", float64(memory()-bare)/1e6)

	// The first answers have everything.
	bare, c.bytes = memory(), 0
	c.ask(ids, func(i int) *roaring.Bitmap { return c.reads(i, ids) })
	row("what hosts say of 5,000 people", "%.0f MB of memory, %.1f MB of log", float64(memory()-bare)/1e6, float64(c.bytes)/1e6)
	began := clock.Now()
	c.askRepos(ids)
	row("answers on 100,000 repositories", "%.1f s to apply 300,000 entries", clock.Since(began).Seconds())

	c.weighSnapshot(row)
	c.weighReading(row)
	c.weighDay(ids, row)
}

// list adds the repositories.
func (c *company) list() []catalog.RepoID {
	fence := c.granted(catalog.JobSync, "host")
	for from := 0; from < reposMany; from += 500 {
		page := &catalog.SyncPage{Connection: "host", Fence: fence}
		for i := from; i < from+500; i++ {
			page.Repos = append(page.Repos, catalog.ListedRepo{Name: fmt.Sprintf("h.example.com/p%d/r%d", i/1000, i),
				RepoFacts: catalog.RepoFacts{Visibility: catalog.Private, ExternalID: fmt.Sprint(companySite, ":", i)}})
		}
		c.do(page)
	}
	c.do(&catalog.FinishSync{Connection: "host", Fence: fence, Complete: true, Listed: reposMany})

	var ids []catalog.RepoID
	for r := range c.View().Repos() {
		ids = append(ids, r.ID)
	}
	return ids
}

// hire adds the accounts. Each has a linked identity, three browser sessions, two agents and a key.
func (c *company) hire() {
	for i := range peopleMany {
		id := fmt.Sprint("u", i)
		hash := func(kind byte, n int) []byte {
			return append([]byte{kind, byte(n)}, fmt.Sprintf("%030d", i)...)
		}
		c.do(&catalog.PutAccount{Account: catalog.User{ID: id, Email: id + "@example.com", Role: catalog.RoleMember, State: catalog.AccountActive}})
		c.do(&catalog.LinkIdentity{Identity: catalog.Identity{Provider: companyHost, Subject: fmt.Sprint("p", i), Account: id}})
		c.do(&catalog.PutHostToken{Account: id, Token: catalog.HostToken{Provider: companyHost, Subject: fmt.Sprint("p", i), Site: companySite, Sealed: make([]byte, 200)}})
		c.do(&catalog.CreateKey{Key: catalog.Key{ID: "k" + id, Name: "ci", Account: id, Hash: hash('k', 0), Role: catalog.RoleMember}})
		for n := range 3 {
			c.do(c.session(fmt.Sprint("s", i, "-", n), id, hash('s', n)))
		}
		for n := range 2 {
			c.do(&catalog.PutConsent{Since: c.View().Account(id).Changed, Consent: catalog.Consent{ID: fmt.Sprint("c", i, "-", n), Account: id,
				Client: make([]byte, 32), Name: "Agent", Kind: "registered", Host: "127.0.0.1", Scope: "mcp offline_access", Expires: c.Now().Add(90 * 24 * time.Hour)}})
		}
	}
}

func (c *company) session(id, account string, hash []byte) *catalog.PutSession {
	return &catalog.PutSession{Session: catalog.Session{ID: id, Account: account, Hash: hash, Method: "bb", Address: "192.0.2.7",
		Agent: "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36",
		Idle:  30 * 24 * time.Hour, Expires: c.Now().Add(90 * 24 * time.Hour)}}
}

// reads returns what a person may read.
func (c *company) reads(person int, ids []catalog.RepoID) *roaring.Bitmap {
	set := roaring.BitmapOf(ids[:forAll]...)
	size := (reposMany - forAll) / departments
	at := forAll + person%departments*size
	set.AddMany(ids[at : at+size])
	rng := rand.New(rand.NewPCG(uint64(person), 1))
	for range forSome {
		set.Add(ids[rng.IntN(reposMany)])
	}
	return set
}

// ask reports for each person what they may newly read.
func (c *company) ask(ids []catalog.RepoID, beside func(person int) *roaring.Bitmap) {
	for i := range peopleMany {
		subject := fmt.Sprint("p", i)
		fence := c.granted(catalog.JobAccountSync, catalog.ReaderKey(companySite, subject))
		finish := &catalog.FinishReaderAccess{Site: companySite, Subject: subject, Fence: fence}
		if r := c.View().Reader(companySite, subject); r != nil {
			finish.Instead = r.Changed
		}
		if add := beside(i); !add.IsEmpty() {
			add.RunOptimize()
			finish.Add, _ = add.ToBytes()
		}
		c.do(finish)
	}
}

// askRepos reports for each repository that it has no other readers.
func (c *company) askRepos(ids []catalog.RepoID) {
	for _, id := range ids {
		fence := c.granted(catalog.JobRepoSync, catalog.RepoSubject(id))
		c.do(&catalog.FinishRepoAccess{Repo: id, Fence: fence, Seen: c.View().Index(), Readers: 50})
	}
}

// weighSnapshot measures a snapshot, and the time to read it.
func (c *company) weighSnapshot(row func(what, format string, args ...any)) {
	var saved bytes.Buffer
	view := c.View()
	took := timed(3, func(int) {
		saved.Reset()
		if err := view.Save(&saved); err != nil {
			c.t.Fatal(err)
		}
	})
	row("snapshot", "%.1f MB, %.2f s", float64(saved.Len())/1e6, took.Seconds())

	before := memory()
	began := clock.Now()
	state, err := catalog.Load(bytes.NewReader(saved.Bytes()))
	if err != nil {
		c.t.Fatal(err)
	}
	load := clock.Since(began)
	row("the same read again", "%.2f s; %.0f MB of memory in all", load.Seconds(), float64(memory()-before)/1e6)

	began = clock.Now()
	r := state.Refound(catalog.Successor{Cluster: "next", Node: "n9", Restored: true})
	row("restore beside that: all ended, all asked anew", "%.2f s, %d sessions, %d consents", clock.Since(began).Seconds(), r.Sessions, r.Consents)
	if r.Sessions != 3*peopleMany || r.Consents != 2*peopleMany {
		c.t.Errorf("ended is %+v", r)
	}
}

// weighReading measures the cost of requests.
func (c *company) weighReading(row func(what, format string, args ...any)) {
	view := c.View()
	viewer := func(i int) catalog.Viewer {
		return catalog.Viewer{Role: catalog.RoleMember, Account: fmt.Sprint("u", i)}
	}
	began := clock.Now()
	sees := view.Visible(viewer(0)).GetCardinality()
	row("first set after repositories changed", "%.1f ms, %d repositories", clock.Since(began).Seconds()*1e3, sees)
	if sees < forAll || sees > forAll+(reposMany-forAll)/departments+forSome {
		c.t.Errorf("somebody sees %d repositories", sees)
	}

	first := timed(1000, func(i int) { view.Visible(viewer(i + 1)) })
	again := timed(1000, func(i int) { view.Visible(viewer(i + 1)) })
	row("set of a viewer", "%.0f µs at first, %.1f µs from then on", float64(first.Nanoseconds())/1e3, float64(again.Nanoseconds())/1e3)

	var counter Permissions
	began = clock.Now()
	counter.Of(view)
	row("permissions for the first scrape of /metrics", "%.0f ms", clock.Since(began).Seconds()*1e3)
	n := 0
	scrape := timed(9, func(int) {
		n++
		c.do(c.session(fmt.Sprint("scrape", n), "u7", append([]byte{'x', byte(n)}, fmt.Sprintf("%030d", n)...)))
		counter.Of(c.View())
	})
	row("the same from then on, after a change of something", "%.1f ms", scrape.Seconds()*1e3)
	row("the same of a catalog that has not changed", "%.1f µs", float64(timed(9, func(int) { counter.Of(c.View()) }).Nanoseconds())/1e3)

	// One repository is added, and a viewer is the first to ask for it.
	page := func(i int) {
		fence := c.granted(catalog.JobSync, "host")
		c.do(&catalog.SyncPage{Connection: "host", Fence: fence, Repos: []catalog.ListedRepo{{Name: fmt.Sprint("h.example.com/new/r", i),
			RepoFacts: catalog.RepoFacts{Visibility: catalog.Private, ExternalID: fmt.Sprint(companySite, ":new", i)}}}})
		c.do(&catalog.FinishSync{Connection: "host", Fence: fence, Listed: reposMany + 1})
	}
	var changed, rescraped []time.Duration
	for i := range 9 {
		page(i)
		now := c.View()
		changed = append(changed, timed(1, func(int) { now.Visible(viewer(i)) }))
		rescraped = append(rescraped, timed(1, func(int) { counter.Of(now) }))
	}
	slices.Sort(changed)
	slices.Sort(rescraped)
	row("first set after one repository changed", "%.2f ms", changed[4].Seconds()*1e3)
	row("permissions for a scrape after that", "%.1f ms", rescraped[4].Seconds()*1e3)

	signIn := timed(101, func(int) {
		n++
		c.do(c.session(fmt.Sprint("new", n), "u7", append([]byte{'n', byte(n)}, fmt.Sprintf("%030d", n)...)))
	})
	row("a sign-in beside 15,000 sessions, applied", "%.1f ms", signIn.Seconds()*1e3)
}

// weighDay measures the log of a day: every person and repository is asked about, one in ten people
// may read one more repository, everybody signs in once, and each agent refreshes its token for
// eight hours.
func (c *company) weighDay(ids []catalog.RepoID, row func(what, format string, args ...any)) {
	c.Pass(24 * time.Hour)
	var parts [4]int
	c.bytes = 0
	c.ask(ids, func(i int) *roaring.Bitmap {
		if i%10 != 0 {
			return roaring.New()
		}
		return roaring.BitmapOf(ids[(i*7919)%reposMany])
	})
	parts[0], c.bytes = c.bytes, 0
	c.askRepos(ids)
	parts[1], c.bytes = c.bytes, 0
	for i := range peopleMany {
		c.do(c.session(fmt.Sprint("day", i), fmt.Sprint("u", i), append([]byte{'d', 0}, fmt.Sprintf("%030d", i)...)))
	}
	parts[2], c.bytes = c.bytes, 0
	for hour := range 8 {
		for i := range 2 * peopleMany {
			c.do(&catalog.RotateConsent{ID: fmt.Sprint("c", i/2, "-", i%2), From: uint64(hour + 1), Expires: c.Now().Add(90 * 24 * time.Hour)})
		}
	}
	parts[3] = c.bytes

	all := 0
	for i, what := range []string{"people asked about", "repositories asked about", "sign-ins", "tokens refreshed"} {
		row("log of a day: "+what, "%.1f MB", float64(parts[i])/1e6)
		all += parts[i]
	}
	row("log of a day", "%.1f MB", float64(all)/1e6)
	if all > 100<<20 {
		c.t.Errorf("a day takes %d MiB of the log", all>>20)
	}
}
