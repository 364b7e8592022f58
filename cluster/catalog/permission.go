package catalog

import (
	"slices"
	"strings"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/shoalsearch/shoal/cluster/catalog/tree"
)

// What code hosts say of permissions is kept by people of the hosts, not by
// accounts: an identity that is linked leads to it at once, and one that is
// unlinked no more. Two kinds of observations bring it: who may read a
// repository (JobRepoSync), and what somebody may read (JobAccountSync). For
// each repository and person the complete observation counts that began last.

// Reader is somebody at a code host, and what the host lets them read there.
type Reader struct {
	Site    string // of the host: SiteOf its repositories
	Subject string // the host's own id of the person, which no rename changes
	Repos   []byte // roaring bitmap of RepoIDs, by complete observations
	Extra   []byte // the same, by observations that do not know all readers
	Changed uint64 // index of the entry that changed Repos or Extra last

	Began uint64    // fence of the last listing of what the person may read; 0 before the first
	At    time.Time // of its end
	Stale bool      // that listing is too old to count
	Issue string    // why the host refused the last one; empty where it did not
	Note  string    // what the host left out of it; empty for nothing
}

// Key is where the reader stands in the table, and the subject of the job that
// lists what the person may read.
func (r *Reader) Key() string { return ReaderKey(r.Site, r.Subject) }

// ReaderKey is the key of somebody at a site.
func ReaderKey(site, subject string) string { return site + "\x00" + subject }

// SplitReaderKey takes a key apart.
func SplitReaderKey(key string) (site, subject string) {
	site, subject, _ = strings.Cut(key, "\x00")
	return site, subject
}

// Access is how it was asked last who may read a repository.
type Access struct {
	Repo    RepoID
	Began   uint64    // fence of the last observation; 0 before the first
	At      time.Time // of its end
	Partial bool      // it does not know all readers
	Readers uint32    // that it found
}

// Site is a code host as far as permissions are concerned.
type Site struct {
	Name   string
	Listed uint64 // index of the last entry by which a listing of a person changed something
	Stale  []byte // roaring bitmap of the repositories whose Access is too old to count
}

// SiteOf is the host of a repository in its external id; empty where its host
// gives no ids.
//
//	gitea:git.example.com:17 -> gitea:git.example.com
func SiteOf(externalID string) string {
	at := strings.LastIndexByte(externalID, ':')
	if at < 0 {
		return ""
	}
	return externalID[:at]
}

// FinishRepoAccess says which people the host lets read a repository beside
// those that are known to, and which no more. It ends the job unless more comes.
type FinishRepoAccess struct {
	Repo    RepoID
	Fence   uint64
	Seen    uint64   // index of the view that the difference was made with
	Partial bool     // the host does not tell of all readers
	Readers uint32   // in all
	Add     []string // subjects
	Remove  []string
	More    bool
}

// FinishReaderAccess says what the host lets somebody read beside what is
// known, and what no more, and ends the job.
type FinishReaderAccess struct {
	Site, Subject string
	Fence         uint64
	Instead       uint64 // Changed of the reader that the difference was made with; 0 where there was none
	Add, Remove   []byte // roaring bitmaps
	Note          string // what the host left out
}

// RefuseReader says that the host refuses somebody: what they may read ends
// with the job.
type RefuseReader struct {
	Site, Subject string
	Fence         uint64
	Issue         string
}

// AgeAccess ends what was observed before a time of some repositories and
// readers, until the next good observation.
type AgeAccess struct {
	Before  time.Time
	Repos   []RepoID
	Readers []string // keys
}

// Bounds of synced permissions.
const (
	maxReaders = 100_000 // people of hosts who are remembered

	// MaxAccessPage is how many subjects a command names at most.
	MaxAccessPage = 20_000
)

func (c *FinishRepoAccess) apply(t *txn) Result {
	job, no := t.held(JobRepoSync, RepoSubject(c.Repo), c.Fence)
	if job == nil {
		return no
	}

	r := t.repos.Get(c.Repo)
	name := ""
	if r != nil {
		name = SiteOf(r.ExternalID)
	}

	if name == "" || len(c.Add)+len(c.Remove) > MaxAccessPage || slices.ContainsFunc(slices.Concat(c.Add, c.Remove), badSubject) {
		return refuse(Invalid, "the readers are malformed")
	}

	// A difference that was made before a listing is none any more.
	site := t.site(name)
	if site.Listed > c.Seen {
		return refuse(Stale, "what somebody may read was listed meanwhile: make the difference anew")
	}

	for _, subject := range c.Add {
		t.setReads(name, subject, c, true)
	}
	for _, subject := range c.Remove {
		t.setReads(name, subject, c, false)
	}
	if c.More {
		return Result{ID: t.index}
	}

	// With the last page the list is whole.
	if old := t.access.Get(c.Repo); old != nil && old.Partial && !c.Partial {
		t.forgetExtra(name, c.Repo)
	}
	t.access.Set(c.Repo, &Access{Repo: c.Repo, Began: c.Fence, At: t.now, Partial: c.Partial, Readers: c.Readers})

	if stale := bitmap(site.Stale); stale.Contains(c.Repo) {
		stale = stale.Clone()
		stale.Remove(c.Repo)
		site.Stale = bytesOf(stale)
		t.sites.Set(site.Name, site)
	}

	t.finish(job)
	return Result{ID: t.index}
}

func badSubject(s string) bool { return s == "" || len(s) > maxSubject || strings.ContainsRune(s, 0) }

// setReads notes whether somebody may read the repository of an observation,
// unless a listing that began later has said so.
func (t *txn) setReads(site, subject string, c *FinishRepoAccess, may bool) {
	old := t.readers.Get(ReaderKey(site, subject))
	r := Reader{Site: site, Subject: subject}
	if old != nil {
		r = *old
	}

	// Of two answers the one counts whose question began later.
	if !c.Partial && r.Began > c.Fence || old == nil && (!may || t.readers.Len() >= maxReaders) {
		return
	}

	at := &r.Repos
	if c.Partial {
		at = &r.Extra
	}

	if bitmap(*at).Contains(c.Repo) == may {
		return
	}

	set := bitmap(*at).Clone()
	if may {
		set.Add(c.Repo)
	} else {
		set.Remove(c.Repo)
	}

	*at, r.Changed = bytesOf(set), t.index
	t.putReader(&r)
}

// putReader keeps a reader as long as there is something to say of them.
func (t *txn) putReader(r *Reader) {
	if len(r.Repos) == 0 && len(r.Extra) == 0 && r.Began == 0 && r.Issue == "" {
		t.readers.Delete(r.Key())
		return
	}
	t.readers.Set(r.Key(), r)
}

// forgetExtra drops what partial observations said of a repository.
func (t *txn) forgetExtra(site string, repo RepoID) {
	// Collected first: the table changes on the way.
	for _, old := range t.ReadersAt(site) {
		if bitmap(old.Extra).Contains(repo) {
			r := *old
			set := bitmap(old.Extra).Clone()
			set.Remove(repo)
			r.Extra, r.Changed = bytesOf(set), t.index
			t.putReader(&r)
		}
	}
}

// forgetAccess drops what is known of the readers of a repository that leaves.
func (t *txn) forgetAccess(repo *Repo) {
	t.access.Delete(repo.ID)
	name := SiteOf(repo.ExternalID)
	t.forgetExtra(name, repo.ID)

	// Its number is never given out again, and still nobody keeps a right to it.
	for _, old := range t.ReadersAt(name) {
		if bitmap(old.Repos).Contains(repo.ID) {
			r := *old
			set := bitmap(old.Repos).Clone()
			set.Remove(repo.ID)
			r.Repos, r.Changed = bytesOf(set), t.index
			t.putReader(&r)
		}
	}
}

func (c *FinishReaderAccess) apply(t *txn) Result {
	add, remove, err := readSets(c.Add, c.Remove)
	if err != nil || c.Site == "" || badSubject(c.Subject) {
		return refuse(Invalid, "the listing is malformed")
	}

	key := ReaderKey(c.Site, c.Subject)
	job, no := t.held(JobAccountSync, key, c.Fence)
	if job == nil {
		return no
	}

	r := Reader{Site: c.Site, Subject: c.Subject}
	old := t.readers.Get(key)
	if old != nil {
		r = *old
	} else if t.readers.Len() >= maxReaders {
		return refuse(Conflict, "there are too many readers")
	}

	if r.Changed != c.Instead {
		return refuse(Stale, "what the person may read was changed meanwhile: make the difference anew")
	}

	set, extra := c.listed(t, &r, add, remove)
	if !set.Equals(bitmap(r.Repos)) || !extra.Equals(bitmap(r.Extra)) {
		r.Repos, r.Extra, r.Changed = bytesOf(set), bytesOf(extra), t.index
		t.noteListing(c.Site)
	}
	r.Began, r.At, r.Stale, r.Issue, r.Note = c.Fence, t.now, false, "", clip(c.Note)

	// A good listing also ends an earlier refusal.
	t.readers.Set(key, &r)
	t.finish(job)
	return Result{ID: t.index}
}

// listed is what somebody may read after a listing: by it, and by partial answers
// of repositories that know better.
func (c *FinishReaderAccess) listed(t *txn, r *Reader, add, remove *roaring.Bitmap) (set, extra *roaring.Bitmap) {
	// Where somebody asked later who may read a repository, that answer stays.
	counts := func(id RepoID) bool {
		repo, a := t.repos.Get(id), t.access.Get(id)
		return repo != nil && SiteOf(repo.ExternalID) == c.Site && (a == nil || a.Partial || a.Began < c.Fence)
	}

	set = bitmap(r.Repos).Clone()
	for it := add.Iterator(); it.HasNext(); {
		if id := it.Next(); counts(id) {
			set.Add(id)
		}
	}
	for it := remove.Iterator(); it.HasNext(); {
		if id := it.Next(); counts(id) {
			set.Remove(id)
		}
	}

	// What partial answers said of the person gives way to a listing that began later.
	extra = bitmap(r.Extra).Clone()
	for it := bitmap(r.Extra).Iterator(); it.HasNext(); {
		if id := it.Next(); t.access.Get(id) == nil || t.access.Get(id).Began < c.Fence {
			extra.Remove(id)
		}
	}
	return set, extra
}

// noteListing makes differences void that were made before.
func (t *txn) noteListing(name string) {
	site := t.site(name)
	site.Listed = t.index
	t.sites.Set(name, site)
}

func (c *RefuseReader) apply(t *txn) Result {
	key := ReaderKey(c.Site, c.Subject)
	job, no := t.held(JobAccountSync, key, c.Fence)
	if job == nil {
		return no
	}

	if c.Issue == "" {
		return refuse(Invalid, "a refusal has a reason")
	}

	if t.readers.Get(key) != nil || t.readers.Len() < maxReaders {
		t.readers.Set(key, &Reader{
			Site:    c.Site,
			Subject: c.Subject,
			Began:   c.Fence,
			At:      t.now,
			Changed: t.index,
			Issue:   clip(c.Issue),
		})
		t.noteListing(c.Site)
	}

	// A refusal is an answer: the job ends for good, until the person links the account again.
	t.failed(job, &FinishJob{Error: c.Issue, Permanent: true})
	return Result{ID: t.index}
}

func (c *AgeAccess) apply(t *txn) Result {
	stale := map[string]*roaring.Bitmap{}
	for _, id := range c.Repos {
		repo, a := t.repos.Get(id), t.access.Get(id)
		if repo == nil || a == nil || !a.At.Before(c.Before) {
			continue
		}

		name := SiteOf(repo.ExternalID)
		if stale[name] == nil {
			stale[name] = bitmap(t.site(name).Stale).Clone()
		}
		stale[name].Add(id)
	}

	// A site is written once, whatever the number of its repositories.
	for name, set := range stale {
		site := t.site(name)
		site.Stale = bytesOf(set)
		t.sites.Set(name, site)
	}

	for _, key := range c.Readers {
		if old := t.readers.Get(key); old != nil && old.Began > 0 && !old.Stale && old.At.Before(c.Before) {
			t.ageListing(old)
		}
	}
	return Result{}
}

// ageListing ends what a listing of somebody has said. What a later answer says
// of who may read a repository stays.
func (t *txn) ageListing(old *Reader) {
	// An answer that began after the listing is younger than it, and is aged by itself.
	r := *old
	set := bitmap(old.Repos).Clone()
	for it := bitmap(old.Repos).Iterator(); it.HasNext(); {
		id := it.Next()
		if a := t.access.Get(id); a == nil || a.Partial || a.Began < old.Began {
			set.Remove(id)
		}
	}

	r.Stale, r.Repos, r.Changed = true, bytesOf(set), t.index
	t.readers.Set(r.Key(), &r)
	t.noteListing(r.Site)
}

// site is a copy of the record of a site, which may be changed.
func (t *tables) site(name string) *Site {
	if s := t.sites.Get(name); s != nil {
		copied := *s
		return &copied
	}
	return &Site{Name: name}
}

// ReadersAt are the readers of a site.
func (t *tables) ReadersAt(site string) (all []*Reader) {
	for _, r := range tree.Under(t.readers.From, ReaderKey(site, "")) {
		all = append(all, r)
	}
	return all
}

func hasReader(_ *txn, subject string) bool {
	site, name := SplitReaderKey(subject)
	return site != "" && !badSubject(name)
}

// bitmap reads a set of a record. It shares the bytes: clone it before
// changing it.
func bitmap(b []byte) *roaring.Bitmap {
	set := roaring.New()
	if len(b) > 0 {
		// Apply has read every set that is kept, so this one can be read.
		if _, err := set.FromBuffer(b); err != nil {
			return roaring.New()
		}
	}
	return set
}

// bytesOf writes a set for a record: equal sets have equal bytes, and an empty
// one none.
func bytesOf(set *roaring.Bitmap) []byte {
	if set.IsEmpty() {
		return nil
	}
	set.RunOptimize()
	b, err := set.ToBytes()
	if err != nil {
		return nil
	}
	return b
}

// readSets checks sets that come in a command.
func readSets(add, remove []byte) (*roaring.Bitmap, *roaring.Bitmap, error) {
	sets := [2]*roaring.Bitmap{roaring.New(), roaring.New()}
	for i, b := range [][]byte{add, remove} {
		if len(b) == 0 {
			continue
		}

		set, err := ReadSet(b)
		if err != nil {
			return nil, nil, err
		}
		sets[i] = set
	}

	return sets[0], sets[1], nil
}

// ReadSet reads a set of repositories that somebody else has written: damaged, it would
// break whoever uses it. It shares nothing with b, which may lie anywhere in a buffer.
func ReadSet(b []byte) (*roaring.Bitmap, error) {
	set := roaring.New()
	if err := set.UnmarshalBinary(b); err != nil {
		return nil, err
	}
	return set, set.Validate()
}
