package cluster

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/raft"
	"go.etcd.io/bbolt"
)

// logIn writes a log and votes in many batches, as raft does, and returns what readAll must return.
func logIn(t *testing.T, dir string) string {
	t.Helper()
	s, err := openStore(dir, offlineWatchdog())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	rng := rand.New(rand.NewPCG(1, 2))
	index := uint64(0)
	for range 60 {
		var batch []*raft.Log
		for range 1 + rng.IntN(4) {
			index++
			batch = append(batch, &raft.Log{Index: index, Term: 1 + index/50, Type: raft.LogCommand, Data: fmt.Appendf(nil, "entry %d %s", index, strings.Repeat("x", rng.IntN(300)))})
		}
		s.setCommit(index - 1)
		for _, err := range []error{s.StoreLogs(batch), s.SetUint64([]byte("CurrentTerm"), 1+index/50), s.Set([]byte("LastVoteCand"), []byte("n1"))} {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := s.DeleteRange(1, 20); err != nil {
		t.Fatal(err)
	}
	return readAll(t, s)
}

// readAll returns everything in a store as text.
func readAll(t *testing.T, s *store) string {
	t.Helper()
	first, err := s.FirstIndex()
	if err != nil {
		t.Fatal(err)
	}
	last, err := s.LastIndex()
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for index := first; index <= last; index++ {
		var l raft.Log
		if err := s.GetLog(index, &l); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&all, "%d %d %d %s\n", l.Index, l.Term, l.Type, l.Data)
	}
	known, err := s.knownCommit()
	term, termErr := s.GetUint64([]byte("CurrentTerm"))
	vote, voteErr := s.Get([]byte("LastVoteCand"))
	if err != nil || termErr != nil || voteErr != nil {
		t.Fatal(err, termErr, voteErr)
	}
	fmt.Fprintf(&all, "%d %d %s", known, term, vote)
	return all.String()
}

// Every flipped bit of the log is detected before raft starts, unless it has no meaning.
func TestVerifyLog_detectsFlippedBits(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	want := logIn(t, dir)
	good, err := os.ReadFile(filepath.Join(dir, logFile))
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(3, 4))
	found := 0
	rounds := 400
	if testing.Short() {
		rounds = 100
	}
	for round := range rounds {
		bad := append([]byte(nil), good...)
		at := rng.IntN(len(bad))
		if round%4 == 0 {
			at = rng.IntN(4 * os.Getpagesize()) // the heads
		}
		bit := rng.IntN(8)
		bad[at] ^= 1 << bit
		dir := filepath.Join(dir, fmt.Sprint(round))
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, logFile), bad, 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := openStore(dir, offlineWatchdog())
		if err != nil {
			if !strings.Contains(err.Error(), "is damaged: move the data directory away") {
				t.Errorf("bit %d of byte %d: the error does not say what to do: %v", bit, at, err)
			}
			found++
			continue
		}
		if got := readAll(t, s); got != want {
			t.Errorf("bit %d of byte %d turned and was not found", bit, at)
		}
		s.Close()
		os.RemoveAll(dir)
	}
	t.Logf("%d of %d turned bits found, the others meant nothing", found, rounds)
	if found < rounds/10 {
		t.Errorf("only %d of %d found", found, rounds)
	}
}

// verifyPages finds what bbolt would find wrong with the pages. It must do so first: bbolt reports
// it while its goroutine still reads the file, which is then closed.
func TestVerifyPages_detectsAllThatBboltDetects(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	logIn(t, dir)
	path := filepath.Join(dir, logFile)
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := verifyPages(path); err != nil {
		t.Fatal(err)
	}

	rng := rand.New(rand.NewPCG(5, 6))
	size, found := os.Getpagesize(), 0
	for range 3000 {
		// Flip bits of headers, elements and keys: bbolt does not check values.
		page := 2 + rng.IntN(len(good)/size-2)
		at, bit := page*size+rng.IntN(size/4), rng.IntN(8)
		bad := bytes.Clone(good)
		bad[at] ^= 1 << bit
		if err := os.WriteFile(path, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		if verifyPages(path) != nil {
			found++
			continue
		}

		db, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true})
		if err != nil {
			t.Fatal(err)
		}
		err = db.View(func(tx *bbolt.Tx) (err error) {
			for broken := range tx.Check() {
				err = cmp.Or(err, broken)
			}
			return err
		})
		// Leave it open: a goroutine may still read it.
		if err != nil {
			t.Fatalf("bit %d of byte %d of page %d: %v", bit, at%size, page, err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if found < 100 {
		t.Errorf("only %d of 3000 turned bits found", found)
	}
}

// A length that is too large because of a flipped bit is an error. It must not crash the process in
// a goroutine of bbolt.
func TestVerifyPages_detectsFlippedLengths(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	logIn(t, dir)
	path := filepath.Join(dir, logFile)
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	branches := 0
	for page := 2 * os.Getpagesize(); page < len(good); page += os.Getpagesize() {
		if binary.NativeEndian.Uint16(good[page+8:]) != branchPage {
			continue
		}
		branches++
		bad := append([]byte(nil), good...)
		bad[page+pageHeader+7] ^= 4 // the length of the first key
		if err := os.WriteFile(path, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		// A free page may contain anything.
		s, err := openStore(dir, offlineWatchdog())
		if err == nil {
			s.Close()
			continue
		}
		if !strings.Contains(err.Error(), "is damaged: move the data directory away") {
			t.Errorf("the error does not say what to do: %v", err)
		}
		return
	}
	t.Errorf("no turned bit was found in %d branch pages", branches)
}
