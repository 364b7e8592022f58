package catalog

import (
	"slices"
	"strings"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/shoalsearch/shoal/cluster/catalog/tree"
)

// The permissions of code hosts are stored per person at the host, not per account. An account has
// them while an identity of that person is linked to it. Two kinds of jobs ask the host:
// JobRepoSync asks who may read a repository, JobAccountSync what a person may read. An answer is
// an observation. A host that does not list all readers gives partial ones; the others are
// complete. For each repository and person, the complete observation counts that began last. Its
// beginning is the fence of the job, which grows with each job.

// Reader is a person at a code host, with what the host lets them read.
type Reader struct {
	Site    string // the code host, see SiteOf
	Subject string // the host's own permanent id of the person
	Repos   []byte // roaring bitmap of RepoIDs, from complete observations
	Extra   []byte // the same, from partial observations
	Changed uint64 // index of the entry that changed Repos or Extra last

	Began uint64    // fence of the last listing of what the person may read; 0: never listed
	At    time.Time // of its end
	Stale bool      // that listing is too old to count
	Issue string    // why the host refused the last listing; "": it did not
	Note  string    // what the host left out of that listing; "": nothing
}

// Key returns the key of the reader in the table. It is also the subject of the job that lists what
// the person may read.
func (r *Reader) Key() string { return ReaderKey(r.Site, r.Subject) }

// ReaderKey returns the key of a person at a site.
func ReaderKey(site, subject string) string { return site + "\x00" + subject }

// SplitReaderKey splits a ReaderKey.
func SplitReaderKey(key string) (site, subject string) {
	site, subject, _ = strings.Cut(key, "\x00")
	return site, subject
}

// Access describes the last observation of who may read a repository.
type Access struct {
	Repo    RepoID
	Began   uint64    // fence of the last observation; 0: never observed
	At      time.Time // end of the observation
	Partial bool      // it may miss readers
	Readers uint32    // number of readers found
}

// Site is a code host, as seen by permissions.
type Site struct {
	Name   string
	Listed uint64 // index of the last entry by which a listing of a person changed something
	Stale  []byte // roaring bitmap of the repositories whose Access is too old to count
}

// SiteOf returns the code host in a repository's external id, or "" if its host gives no ids.
//
//	gitea:git.example.com:17 -> gitea:git.example.com
func SiteOf(externalID string) string {
	at := strings.LastIndexByte(externalID, ':')
	if at < 0 {
		return ""
	}
	return externalID[:at]
}

// FinishRepoAccess reports which people the host newly lets read a repository, and which no longer.
// It ends the job unless More is set.
type FinishRepoAccess struct {
	Repo    RepoID
	Fence   uint64
	Seen    uint64   // index of the view that the difference was computed from
	Partial bool     // the host does not list all readers
	Readers uint32   // total number
	Add     []string // subjects
	Remove  []string
	More    bool
}

// FinishReaderAccess reports the repositories that the host newly lets a person read, and those
// that it no longer does. It ends the job.
type FinishReaderAccess struct {
	Site, Subject string
	Fence         uint64
	Instead       uint64 // Changed of the reader that the difference was computed from; 0: there was none
	Add, Remove   []byte // roaring bitmaps
	Note          string // what the host left out
}

// RefuseReader reports that the host refuses a person. They lose all access by this host, and the
// job ends.
type RefuseReader struct {
	Site, Subject string
	Fence         uint64
	Issue         string
}

// AgeAccess makes observations older than Before invalid, for some repositories and readers, until
// the next successful one.
type AgeAccess struct {
	Before  time.Time
	Repos   []RepoID
	Readers []string // their ReaderKeys
}

// Limits of synced permissions.
const (
	maxReaders = 100_000 // stored people of code hosts

	// MaxAccessPage bounds the number of subjects in one command.
	MaxAccessPage = 20_000
)

func (c *FinishRepoAccess) apply(t *txn) Result {
	job, refusal := t.runningJob(JobRepoSync, RepoSubject(c.Repo), c.Fence)
	if job == nil {
		return refusal
	}

	r := t.repos.Get(c.Repo)
	name := ""
	if r != nil {
		name = SiteOf(r.ExternalID)
	}

	if name == "" || len(c.Add)+len(c.Remove) > MaxAccessPage || slices.ContainsFunc(slices.Concat(c.Add, c.Remove), badSubject) {
		return refuse(Invalid, "the readers are malformed")
	}

	// A listing of a person came after the view that the difference was computed from.
	site := t.copySite(name)
	if site.Listed > c.Seen {
		return refuse(Stale, "what somebody may read was listed meanwhile: make the difference anew")
	}

	for _, subject := range c.Add {
		t.recordAccess(name, subject, c, true)
	}
	for _, subject := range c.Remove {
		t.recordAccess(name, subject, c, false)
	}
	if c.More {
		return Result{ID: t.index}
	}

	// After the last page the list is complete: earlier partial answers are obsolete.
	if old := t.access.Get(c.Repo); old != nil && old.Partial && !c.Partial {
		t.forgetExtra(name, c.Repo)
	}
	t.access.Set(c.Repo, &Access{Repo: c.Repo, Began: c.Fence, At: t.now, Partial: c.Partial, Readers: c.Readers})

	if stale := sharedBitmap(site.Stale); stale.Contains(c.Repo) {
		stale = stale.Clone()
		stale.Remove(c.Repo)
		site.Stale = encodeSet(stale)
		t.sites.Set(site.Name, site)
	}

	t.finishJob(job)
	return Result{ID: t.index}
}

func badSubject(s string) bool { return s == "" || len(s) > maxSubject || strings.ContainsRune(s, 0) }

// recordAccess records that a person may read the repository of an observation, or may not. It does
// nothing if a listing of the person that began later has decided that.
func (t *txn) recordAccess(site, subject string, c *FinishRepoAccess, may bool) {
	r := Reader{Site: site, Subject: subject}
	if old := t.readers.Get(ReaderKey(site, subject)); old != nil {
		r = *old
	} else if !may || t.readers.Len() >= maxReaders {
		return
	}

	// Listings of a person are complete. They do not touch Extra.
	laterListing := r.Began > c.Fence
	if laterListing && !c.Partial {
		return
	}

	stored := &r.Repos
	if c.Partial {
		stored = &r.Extra
	}
	if sharedBitmap(*stored).Contains(c.Repo) == may {
		return
	}

	set := sharedBitmap(*stored).Clone()
	if may {
		set.Add(c.Repo)
	} else {
		set.Remove(c.Repo)
	}

	*stored, r.Changed = encodeSet(set), t.index
	t.putReader(&r)
}

// putReader stores a reader, or deletes the record if it has become empty.
func (t *txn) putReader(r *Reader) {
	if len(r.Repos) == 0 && len(r.Extra) == 0 && r.Began == 0 && r.Issue == "" {
		t.readers.Delete(r.Key())
		return
	}
	t.readers.Set(r.Key(), r)
}

// forgetExtra removes a repository from the extra repositories of all readers at a site.
func (t *txn) forgetExtra(site string, repo RepoID) {
	// ReadersAt returns a slice, so the table may change in the loop.
	for _, old := range t.ReadersAt(site) {
		if sharedBitmap(old.Extra).Contains(repo) {
			r := *old
			set := sharedBitmap(old.Extra).Clone()
			set.Remove(repo)
			r.Extra, r.Changed = encodeSet(set), t.index
			t.putReader(&r)
		}
	}
}

// forgetAccess deletes all permissions on a repository that leaves the catalog.
func (t *txn) forgetAccess(repo *Repo) {
	t.access.Delete(repo.ID)
	name := SiteOf(repo.ExternalID)
	t.forgetExtra(name, repo.ID)

	// Remove the id from all readers, although it is never reused.
	for _, old := range t.ReadersAt(name) {
		if sharedBitmap(old.Repos).Contains(repo.ID) {
			r := *old
			set := sharedBitmap(old.Repos).Clone()
			set.Remove(repo.ID)
			r.Repos, r.Changed = encodeSet(set), t.index
			t.putReader(&r)
		}
	}
}

func (c *FinishReaderAccess) apply(t *txn) Result {
	add, remove, err := decodeSetPair(c.Add, c.Remove)
	if err != nil || c.Site == "" || badSubject(c.Subject) {
		return refuse(Invalid, "the listing is malformed")
	}

	key := ReaderKey(c.Site, c.Subject)
	job, refusal := t.runningJob(JobAccountSync, key, c.Fence)
	if job == nil {
		return refusal
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

	set, extra := c.mergeListing(t, &r, add, remove)
	if !set.Equals(sharedBitmap(r.Repos)) || !extra.Equals(sharedBitmap(r.Extra)) {
		r.Repos, r.Extra, r.Changed = encodeSet(set), encodeSet(extra), t.index
		t.markListed(c.Site)
	}
	r.Began, r.At, r.Stale, r.Issue, r.Note = c.Fence, t.now, false, "", clipText(c.Note)

	// A successful listing also ends an earlier refusal.
	t.readers.Set(key, &r)
	t.finishJob(job)
	return Result{ID: t.index}
}

// mergeListing returns what a person may read after this listing: set by complete observations,
// extra by partial ones. Where a JobRepoSync asked about a repository later, its answer stays.
func (c *FinishReaderAccess) mergeListing(t *txn, r *Reader, add, remove *roaring.Bitmap) (set, extra *roaring.Bitmap) {
	// counts reports whether this listing decides about a repository.
	counts := func(id RepoID) bool {
		repo, a := t.repos.Get(id), t.access.Get(id)
		return repo != nil && SiteOf(repo.ExternalID) == c.Site && (a == nil || a.Partial || a.Began < c.Fence)
	}

	set = sharedBitmap(r.Repos).Clone()
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

	// Partial answers from before this listing are obsolete.
	extra = sharedBitmap(r.Extra).Clone()
	for it := sharedBitmap(r.Extra).Iterator(); it.HasNext(); {
		if id := it.Next(); t.access.Get(id) == nil || t.access.Get(id).Began < c.Fence {
			extra.Remove(id)
		}
	}
	return set, extra
}

// markListed records that a listing of a person has changed something at a site. A FinishRepoAccess
// that was computed before is then refused.
func (t *txn) markListed(name string) {
	site := t.copySite(name)
	site.Listed = t.index
	t.sites.Set(name, site)
}

func (c *RefuseReader) apply(t *txn) Result {
	key := ReaderKey(c.Site, c.Subject)
	job, refusal := t.runningJob(JobAccountSync, key, c.Fence)
	if job == nil {
		return refusal
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
			Issue:   clipText(c.Issue),
		})
		t.markListed(c.Site)
	}

	// The job ends for good, until the person links the account again.
	t.failJob(job, &FinishJob{Error: c.Issue, Permanent: true})
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
			stale[name] = sharedBitmap(t.copySite(name).Stale).Clone()
		}
		stale[name].Add(id)
	}

	// Write each site once, however many repositories it has.
	for name, set := range stale {
		site := t.copySite(name)
		site.Stale = encodeSet(set)
		t.sites.Set(name, site)
	}

	for _, key := range c.Readers {
		if old := t.readers.Get(key); old != nil && old.Began > 0 && !old.Stale && old.At.Before(c.Before) {
			t.ageListing(old)
		}
	}
	return Result{}
}

// ageListing makes the last listing of a person invalid. Repositories stay if a JobRepoSync asked
// about them after the listing began.
func (t *txn) ageListing(old *Reader) {
	r := *old
	set := sharedBitmap(old.Repos).Clone()
	for it := sharedBitmap(old.Repos).Iterator(); it.HasNext(); {
		id := it.Next()
		if a := t.access.Get(id); a == nil || a.Partial || a.Began < old.Began {
			set.Remove(id)
		}
	}

	r.Stale, r.Repos, r.Changed = true, encodeSet(set), t.index
	t.readers.Set(r.Key(), &r)
	t.markListed(r.Site)
}

// copySite returns a copy of the record of a site, which the caller may change.
func (t *tables) copySite(name string) *Site {
	if s := t.sites.Get(name); s != nil {
		copied := *s
		return &copied
	}
	return &Site{Name: name}
}

// ReadersAt returns the readers of a site.
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

// sharedBitmap decodes a set of a record. It shares the bytes: the caller must clone it before changing
// it.
func sharedBitmap(b []byte) *roaring.Bitmap {
	set := roaring.New()
	if len(b) > 0 {
		// Apply checked every stored set, so this one can be read.
		if _, err := set.FromBuffer(b); err != nil {
			return roaring.New()
		}
	}
	return set
}

// encodeSet encodes a set. Equal sets give equal bytes, and an empty set gives none.
func encodeSet(set *roaring.Bitmap) []byte {
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

// decodeSetPair decodes and checks the two sets of a command.
func decodeSetPair(add, remove []byte) (*roaring.Bitmap, *roaring.Bitmap, error) {
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

// ReadSet decodes and checks a set from another node: a damaged one would crash its users. The
// result does not alias b.
func ReadSet(b []byte) (*roaring.Bitmap, error) {
	set := roaring.New()
	if err := set.UnmarshalBinary(b); err != nil {
		return nil, err
	}
	return set, set.Validate()
}
