package chronicle

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/cluster/config"
)

// Bounds of a series.
const (
	queued     = 4096     // accesses that wait to be written
	batchBytes = 64 << 10 // that are written at once
	fileBytes  = 16 << 20 // of a file, before the next one is begun
	fileTime   = 24 * time.Hour
	tidyEvery  = time.Minute // what is old goes, and what was summed up is told
	restTime   = 20 * time.Millisecond
	shares     = 8 // of the disk's bound, which the series divide
)

// noted is an access on its way to a file.
type noted struct {
	line  Line
	query string
	whole bool // it has been summed up already
}

// series is files of one kind of accesses, oldest first:
//
//	the names hold the time of the first line: t₁ < t₂ < … and lines of file i are in [tᵢ, min(tᵢ₊₁, tᵢ + fileTime))
type series struct {
	d     trailDeps
	order *order
	name  string
	share int64 // of the disk's bound, in parts of shares

	queue   chan noted
	flushes chan chan struct{}
	lost    atomic.Int64 // since it was told last
	written atomic.Int64 // lines
	missed  atomic.Int64 // lines that were lost, in all
	bytes   atomic.Int64 // of all files

	// The fields below are of the goroutine that runs.
	file    *os.File // nil for none
	size    int64
	first   time.Time // of its name
	buf     bytes.Buffer
	lines   int // in buf
	sums    *sums
	warned  time.Time
	healthy bool
}

func newSeries(d trailDeps, o *order, name string, share int64) *series {
	return &series{
		d:       d,
		order:   o,
		name:    name,
		share:   share,
		healthy: true,
		queue:   make(chan noted, queued),
		flushes: make(chan chan struct{}),
		sums:    newSums(),
	}
}

// put takes an access on, or counts it as lost where too many wait.
func (s *series) put(make func(at time.Time) noted) {
	s.order.next(func(at time.Time) {
		select {
		case s.queue <- make(at):
		default:
			s.lose(1)
		}
	})
}

func (s *series) lose(n int64) {
	s.lost.Add(n)
	s.missed.Add(n)
}

// run writes what comes until ctx ends, and then what is left.
func (s *series) run(ctx context.Context) {
	tick := time.NewTicker(tidyEvery)
	defer tick.Stop()
	s.tidy()

	// What comes during a rest is written together: to be woken for each access would
	// cost a busy node more than to write them. One of the two is nil.
	queue, rested := s.queue, (<-chan time.Time)(nil)

	for {
		select {
		case n := <-queue:
			s.take(n)
			s.drain()
			queue, rested = nil, time.After(restTime)
		case <-rested:
			queue, rested = s.queue, nil
		case done := <-s.flushes:
			s.drain()
			close(done)

		case <-tick.C:
			s.tell()
			s.drain()
			s.tidy()

		// What was queued before the end is written, and so is the count of what was lost.
		case <-ctx.Done():
			s.drain()
			s.tell()
			s.drain()
			s.close()
			return
		}
	}
}

// flush returns when all that was noted before is in a file, or ctx has ended.
func (s *series) flush(ctx context.Context) {
	done := make(chan struct{})
	select {
	case s.flushes <- done:
		<-done
	case <-ctx.Done():
	}
}

// drain writes what waits.
func (s *series) drain() {
	for {
		select {
		case n := <-s.queue:
			s.take(n)
		default:
			s.write()
			return
		}
	}
}

// take adds an access to what is written next. Of refusals that come in crowds
// most are summed up.
func (s *series) take(n noted) {
	policy := s.d.Policy()

	// Of refusals strangers can make any number.
	if policy.Off || s.name == "refusals" && !n.whole && !s.sums.passes(&n.line) {
		return
	}

	// Whether and how a query is kept is decided now, by the variables in force.
	switch policy.Queries {
	case config.WholeQueries:
		n.line.tell("query", oneLine(n.query))
	case config.HashedQueries:
		n.line.tell("queryHash", s.hash(n.query))
	}
	s.add(&n.line)
}

// hash is a text in a form that tells no more than which are equal, "" where the
// secret for it cannot be had.
func (s *series) hash(query string) string {
	if query == "" {
		return ""
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	sum, err := s.d.Hash(ctx, query)
	if err != nil {
		return ""
	}
	return sum
}

func (s *series) add(l *Line) {
	before := s.buf.Len()
	enc := json.NewEncoder(&s.buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(l); err != nil {
		s.buf.Truncate(before)
		s.lose(1)
		return
	}
	if s.lines++; int64(s.buf.Len()) >= min(batchBytes, s.mostBytes()) {
		s.write()
	}
}

// write appends what has gathered to the newest file.
func (s *series) write() {
	if s.lines == 0 {
		return
	}

	err := s.open()
	if err == nil {
		var n int
		n, err = s.file.Write(s.buf.Bytes())
		s.size += int64(n)
		s.bytes.Add(int64(n))
	}

	// What could not be written is lost: it is not kept in memory for a disk that is full.
	if err != nil {
		s.lose(int64(s.lines))
		s.warn(err)
		s.close()
	} else {
		s.written.Add(int64(s.lines))
		s.healthy = true
	}
	s.buf.Reset()
	s.lines = 0
}

// warn says that files cannot be written, once in a while.
func (s *series) warn(err error) {
	if now := s.d.Now(); s.healthy || now.Sub(s.warned) > time.Hour {
		s.d.Log.Error("who reads what cannot be written down: the audit lacks it", "files", s.name, "err", err)
		s.warned = now
	}
	s.healthy = false
}

// open makes sure that there is a file with room. The newest one is gone on with,
// after a restart too.
func (s *series) open() error {
	if s.file != nil && s.hasRoom() {
		return nil
	}

	newest := ""
	if s.file == nil {
		if names := s.names(); len(names) > 0 {
			newest = names[len(names)-1]
		}
	}
	s.close()
	if err := os.MkdirAll(s.d.Dir, folderMode); err != nil {
		return err
	}

	// A restart goes on with the last file, or short runs would make very many.
	if newest != "" {
		if err := s.append(newest); err != nil || s.hasRoom() {
			return err
		}
		s.close()
	}
	s.tidy()
	return s.append(s.fileName(s.firstTime()))
}

// hasRoom reports whether more may be written to the file.
func (s *series) hasRoom() bool {
	return s.size < s.mostBytes() && s.d.Now().Sub(s.first) < fileTime
}

// firstTime is when the first of the lines that wait to be written was noted.
func (s *series) firstTime() time.Time {
	var first struct {
		At time.Time `json:"timestamp"`
	}
	line, _, _ := bytes.Cut(s.buf.Bytes(), []byte("\n"))
	if err := json.Unmarshal(line, &first); err != nil {
		return s.d.Now() // never: add has just made it
	}
	return first.At
}

// append opens a file to be written at its end. A line that a crash has cut ends there.
func (s *series) append(name string) error {
	f, err := os.OpenFile(filepath.Join(s.d.Dir, name), os.O_CREATE|os.O_RDWR|os.O_APPEND, fileMode)
	if err != nil {
		return err
	}
	s.file = f
	s.first, _ = s.timeOf(name)
	if s.size, err = f.Seek(0, io.SeekEnd); err != nil || s.size == 0 {
		return err
	}

	// Without its end the line would swallow the next one.
	last := make([]byte, 1)
	if _, err = f.ReadAt(last, s.size-1); err == nil && last[0] != '\n' {
		_, err = f.WriteString("\n")
		s.size++
	}
	return err
}

func (s *series) close() {
	if s.file != nil {
		_ = s.file.Close() // everything was written, or the failure was told
	}
	s.file, s.size = nil, 0
}

// mostBytes is how large a file gets: of a small bound a part only, so that what
// is old goes piece by piece. A batch may come on top, of no more bytes.
func (s *series) mostBytes() int64 { return min(fileBytes, s.disk()/8) }

// disk is how many bytes all files may have.
func (s *series) disk() int64 { return s.d.Policy().Disk / shares * s.share }

const nameTime = "20060102T150405.000000000Z"

func (s *series) fileName(at time.Time) string {
	return fmt.Sprintf("%s-%s.jsonl", s.name, at.UTC().Format(nameTime))
}

// timeOf is that of the first line of a file.
func (s *series) timeOf(name string) (time.Time, bool) {
	text := strings.TrimSuffix(strings.TrimPrefix(name, s.name+"-"), ".jsonl")
	at, err := time.Parse(nameTime, text)
	return at, err == nil && s.fileName(at) == name
}

// names are those of the files, oldest first.
func (s *series) names() (names []string) {
	list, err := os.ReadDir(s.d.Dir)
	if err != nil {
		return nil // not made yet
	}
	for _, f := range list {
		if _, ok := s.timeOf(f.Name()); ok {
			names = append(names, f.Name())
		}
	}
	slices.Sort(names)
	return names
}

// tidy takes away files of which every line is too old, and the oldest ones where
// there are too many.
func (s *series) tidy() {
	policy, names := s.d.Policy(), s.names()
	sizes := make([]int64, len(names))
	total := int64(0)
	for i, name := range names {
		if info, err := os.Stat(filepath.Join(s.d.Dir, name)); err == nil {
			sizes[i] = info.Size()
			total += sizes[i]
		}
	}

	for i, name := range names {
		first, _ := s.timeOf(name)
		old := policy.Keep > 0 && s.d.Now().Sub(first) > policy.Keep+fileTime

		// Twice the most bytes of a file: room for the one written now and the next one.
		full := total+2*s.mostBytes() > s.disk() && i < len(names)-1
		if !old && !full {
			break
		}
		if i == len(names)-1 {
			s.close() // it may be the one that is written to
		}

		if err := os.Remove(filepath.Join(s.d.Dir, name)); err != nil {
			s.warn(err)
			break
		}
		total -= sizes[i]
	}
	s.bytes.Store(total)
}

// tell has written down what was summed up, and what was lost.
func (s *series) tell() {
	// Sums and losses go through the queue like all else, so that times ascend.
	for _, l := range s.sums.take() {
		s.put(func(at time.Time) noted {
			l.At, l.ID = at.UTC(), accessID(s.d.Node, at)
			return noted{line: l, whole: true}
		})
	}

	if lost := s.lost.Swap(0); lost > 0 {
		a := Access{Action: "audit.lost", Actor: catalog.Actor{Type: catalog.ActorSystem, ID: s.d.Node}, TargetType: "audit", Target: s.name}
		s.put(func(at time.Time) noted {
			l := a.line(s.d.Node, at, s.d.Index())
			l.Count = int(lost)
			return noted{line: l, whole: true}
		})
	}
}

// Bounds of refusals that are told one by one, in a minute.
const (
	ofOneAddress = 20
	ofAll        = 500
	addresses    = 4096 // that are told apart
)

// sums counts refusals of a kind from an address that are too many to be told one
// by one.
type sums struct {
	passed int
	counts map[string]*sum
}

type sum struct {
	seen int
	more Line // for those that did not pass; its Count is how many
}

func newSums() *sums { return &sums{counts: map[string]*sum{}} }

// passes tells whether a refusal has a line of its own.
func (s *sums) passes(l *Line) bool {
	key := l.Action + " " + l.Address
	if s.counts[key] == nil && len(s.counts) >= addresses {
		key = l.Action // of all further addresses
	}

	x := s.counts[key]
	if x == nil {
		x = &sum{}
		s.counts[key] = x
	}

	// Both bounds: a single address may not use up the lines, nor many together.
	if x.seen++; x.seen <= ofOneAddress && s.passed < ofAll {
		s.passed++
		return true
	}

	// A line for many tells nothing that is of one only.
	n := x.more.Count + 1
	x.more = Line{
		Action:    l.Action,
		ActorType: l.ActorType,
		Node:      l.Node,
		Status:    l.Status,
		Count:     n,
		Metadata:  map[string]string{"message": "as many more in the minute before"},
	}
	if strings.HasSuffix(key, " "+l.Address) {
		x.more.Address = l.Address
	}
	return false
}

// take is a line for each sum, and begins anew.
func (s *sums) take() (lines []Line) {
	for _, key := range slices.Sorted(maps.Keys(s.counts)) {
		if x := s.counts[key]; x.more.Count > 0 {
			lines = append(lines, x.more)
		}
	}
	*s = *newSums()
	return lines
}
