package catalog

import (
	"testing"
	"time"
)

func TestJobKinds_numbersAndNamesAreUnique(t *testing.T) {
	t.Parallel()
	numbers, names := map[JobKind]bool{}, map[string]bool{}
	for _, row := range jobRows {
		if row.Kind == 0 || row.Name == "" || numbers[row.Kind] || names[row.Name] {
			t.Errorf("%+v: its number or name is missing or that of another kind", row)
		}
		numbers[row.Kind], names[row.Name] = true, true
		if row.Kind.String() != row.Name || row.Kind.OfRepo() != row.OfRepo {
			t.Errorf("%+v calls itself %s", row, row.Kind)
		}
	}
	if got := JobKind(200).String(); got != "kind 200" {
		t.Errorf("a kind of a later version is called %q", got)
	}
}

// A new kind of job needs only its row.
func TestJobKind_needsOnlyARow(t *testing.T) {
	t.Parallel()
	const count JobKind = 200
	var noted []string
	b := newBook(t)
	b.s = New(JobRow{
		Kind: count, Name: "count", OfRepo: true, exists: hasRepo,
		failed: func(_ *txn, c *FinishJob) { noted = append(noted, c.Subject+": "+c.Error) },
	})
	b.configure("a")
	b.member("n1")
	b.listing("a", "r")

	b.refused(NotFound, &EnqueueJob{Kind: count, Subject: "7"})
	b.do(&EnqueueJob{Kind: count, Subject: "1"})
	fence := b.grant(count, "1")
	b.do(&FinishJob{Kind: count, Subject: "1", Fence: fence, Error: "no", NotBefore: b.now.Add(time.Minute)})
	if len(noted) != 1 || noted[0] != "1: no" {
		t.Errorf("of a failure was noted %q", noted)
	}

	b.now = b.now.Add(time.Minute)
	b.do(&FinishJob{Kind: count, Subject: "1", Fence: b.grant(count, "1")})
	if j := b.s.View().Job(count, "1"); j == nil || j.State != JobDone {
		t.Errorf("after a good end the job is %+v", j)
	}

	b.listing("a") // the listing lacks the repository
	b.do(&EnqueueJob{Kind: JobCollect, Subject: "1"})
	b.do(&FinishCollect{Repo: 1, Fence: b.grant(JobCollect, "1")})
	if j := b.s.View().Job(count, "1"); j != nil {
		t.Errorf("the repository has left, its job has not: %+v", j)
	}
}

func TestFinishJob_isRefusedForKindsWithTheirOwnCommand(t *testing.T) {
	t.Parallel()
	b := newBook(t)
	b.s = New(JobRow{Kind: 200, Name: "count"})
	b.configure("a")
	b.member("n1")
	b.refused(Invalid, &FinishJob{Kind: JobSync, Subject: "a", Fence: b.grant(JobSync, "a")})
	b.do(&EnqueueJob{Kind: 200, Subject: "ann"})
	b.do(&FinishJob{Kind: 200, Subject: "ann", Fence: b.grant(200, "ann")})
	b.refused(NotFound, &EnqueueJob{Kind: 201, Subject: "x"})
}

// The node that runs a cancelled job can no longer end it. The connection of a cancelled sync shows
// the reason.
func TestCancelJob_theRunningNodeLosesTheJob(t *testing.T) {
	t.Parallel()
	b := newBook(t)
	b.configure("a")
	b.member("n1")
	b.refused(NotFound, &CancelJob{Kind: JobSync, Subject: "z", Reason: "cancelled"})
	b.refused(Invalid, &CancelJob{Kind: JobSync, Subject: "a"})

	fence := b.grant(JobSync, "a")
	b.do(&CancelJob{Kind: JobSync, Subject: "a", Reason: "cancelled by ann"})
	b.refused(Stale, &FinishJob{Kind: JobSync, Subject: "a", Fence: fence, Error: "late"})
	b.refused(Conflict, &CancelJob{Kind: JobSync, Subject: "a", Reason: "again"})
	if j, c := b.s.View().Job(JobSync, "a"), b.s.View().Connection("a"); j.State != JobFailed || j.Error != "cancelled by ann" || c.Error != j.Error {
		t.Errorf("the job is %+v, the connection says %q", j, c.Error)
	}
	b.do(&EnqueueJob{Kind: JobSync, Subject: "a", Urgent: true})
	b.grant(JobSync, "a")
}
