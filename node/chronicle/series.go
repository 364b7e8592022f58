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

// Limits of a series.
const (
	queueSize  = 4096     // accesses that may wait to be written
	batchBytes = 64 << 10 // bytes written at once
	fileBytes  = 16 << 20 // size of a file before the next begins
	fileTime   = 24 * time.Hour
	tidyEvery  = time.Minute // between deletions of old files; then sums are written too
	batchTime  = 20 * time.Millisecond
	shares     = 8 // parts of the disk limit, divided among series
)

// noted is an access on its way to a file.
type noted struct {
	line  Line
	query string
	whole bool // not to be summed up
}

// series is the files of one kind of accesses, oldest first:
//
//	the names hold the time of the first line: t₁ < t₂ < … and lines of file i are in [tᵢ, min(tᵢ₊₁, tᵢ + fileTime))
type series struct {
	d     trailDeps
	times *ascendingClock
	name  string
	share int64 // of shares

	queue     chan noted
	flushes   chan chan struct{}
	lost      atomic.Int64 // since the last report of losses
	written   atomic.Int64 // lines
	totalLost atomic.Int64 // lines lost in total
	bytes     atomic.Int64 // size of all files

	// Only the run goroutine uses the fields below.
	file    *os.File // nil: none
	size    int64
	first   time.Time // time in its name
	buf     bytes.Buffer
	lines   int // lines in buf
	sums    *sums
	warned  time.Time
	healthy bool
}

func newSeries(d trailDeps, times *ascendingClock, name string, share int64) *series {
	return &series{
		d:       d,
		times:   times,
		name:    name,
		share:   share,
		healthy: true,
		queue:   make(chan noted, queueSize),
		flushes: make(chan chan struct{}),
		sums:    newSums(),
	}
}

// queueAccess queues an access. If the queue is full, the access is counted as lost.
func (s *series) queueAccess(make func(at time.Time) noted) {
	s.times.next(func(at time.Time) {
		select {
		case s.queue <- make(at):
		default:
			s.lose(1)
		}
	})
}

func (s *series) lose(n int64) {
	s.lost.Add(n)
	s.totalLost.Add(n)
}

// run writes accesses until ctx ends, and then the rest.
func (s *series) run(ctx context.Context) {
	tick := time.NewTicker(tidyEvery)
	defer tick.Stop()
	s.removeOldFiles()

	// Accesses that come during a pause are written together, because waking for each would cost a
	// busy node more than writing. One of the channels is always nil.
	queue, rested := s.queue, (<-chan time.Time)(nil)

	for {
		select {
		case n := <-queue:
			s.addToBatch(n)
			s.drain()
			queue, rested = nil, time.After(batchTime)
		case <-rested:
			queue, rested = s.queue, nil
		case done := <-s.flushes:
			s.drain()
			close(done)

		case <-tick.C:
			s.queueSums()
			s.drain()
			s.removeOldFiles()

		// At the end, write the queue and the count of losses.
		case <-ctx.Done():
			s.drain()
			s.queueSums()
			s.drain()
			s.close()
			return
		}
	}
}

// flush returns when all earlier accesses are in a file, or ctx has ended.
func (s *series) flush(ctx context.Context) {
	done := make(chan struct{})
	select {
	case s.flushes <- done:
		<-done
	case <-ctx.Done():
	}
}

// drain writes the queue.
func (s *series) drain() {
	for {
		select {
		case n := <-s.queue:
			s.addToBatch(n)
		default:
			s.writeBatch()
			return
		}
	}
}

// addToBatch adds an access to the next batch. Most refusals of a crowd are only counted.
func (s *series) addToBatch(n noted) {
	policy := s.d.Policy()

	// Clients can cause any number of refusals.
	if policy.Off || s.name == "refusals" && !n.whole && !s.sums.getsOwnLine(&n.line) {
		return
	}

	// The variables in force now decide whether and how the query is kept.
	switch policy.Queries {
	case config.WholeQueries:
		n.line.setMetadata("query", oneLine(n.query))
	case config.HashedQueries:
		n.line.setMetadata("queryHash", s.hashQuery(n.query))
	}
	s.encodeLine(&n.line)
}

// hashQuery returns the keyed hash of a query, or "" if its secret is not available.
func (s *series) hashQuery(query string) string {
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

// encodeLine encodes a line into the buffer, and writes the buffer to the file when it is large. A line
// that cannot be encoded counts as lost.
func (s *series) encodeLine(l *Line) {
	before := s.buf.Len()
	enc := json.NewEncoder(&s.buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(l); err != nil {
		s.buf.Truncate(before)
		s.lose(1)
		return
	}
	if s.lines++; int64(s.buf.Len()) >= min(batchBytes, s.maxFile()) {
		s.writeBatch()
	}
}

// writeBatch appends the batch to the newest file.
func (s *series) writeBatch() {
	if s.lines == 0 {
		return
	}

	err := s.openWithRoom()
	if err == nil {
		var n int
		n, err = s.file.Write(s.buf.Bytes())
		s.size += int64(n)
		s.bytes.Add(int64(n))
	}

	// A batch that cannot be written is lost. Keeping it would fill memory while the disk is full.
	if err != nil {
		s.lose(int64(s.lines))
		s.logWriteError(err)
		s.close()
	} else {
		s.written.Add(int64(s.lines))
		s.healthy = true
	}
	s.buf.Reset()
	s.lines = 0
}

// logWriteError logs that files cannot be written, at most once an hour.
func (s *series) logWriteError(err error) {
	if now := s.d.Now(); s.healthy || now.Sub(s.warned) > time.Hour {
		s.d.Log.Error("who reads what cannot be written down: the audit lacks it", "files", s.name, "err", err)
		s.warned = now
	}
	s.healthy = false
}

// openWithRoom opens a file with room: the newest one, also after a restart, or a new one.
func (s *series) openWithRoom() error {
	if s.file != nil && s.hasRoom() {
		return nil
	}

	newest := ""
	if s.file == nil {
		if names := s.fileNames(); len(names) > 0 {
			newest = names[len(names)-1]
		}
	}
	s.close()
	if err := os.MkdirAll(s.d.Dir, folderMode); err != nil {
		return err
	}

	// Continue the last file after a restart, so that short runs do not make many files.
	if newest != "" {
		if err := s.openAtEnd(newest); err != nil || s.hasRoom() {
			return err
		}
		s.close()
	}
	s.removeOldFiles()
	return s.openAtEnd(s.fileName(s.firstTime()))
}

// hasRoom reports whether the file takes more lines.
func (s *series) hasRoom() bool {
	return s.size < s.maxFile() && s.d.Now().Sub(s.first) < fileTime
}

// firstTime returns the time of the first line in the batch.
func (s *series) firstTime() time.Time {
	var first struct {
		At time.Time `json:"timestamp"`
	}
	line, _, _ := bytes.Cut(s.buf.Bytes(), []byte("\n"))
	if err := json.Unmarshal(line, &first); err != nil {
		return s.d.Now() // never: add has just encoded it
	}
	return first.At
}

// openAtEnd opens a file at its end. It ends a line that a crash has cut.
func (s *series) openAtEnd(name string) error {
	f, err := os.OpenFile(filepath.Join(s.d.Dir, name), os.O_CREATE|os.O_RDWR|os.O_APPEND, fileMode)
	if err != nil {
		return err
	}
	s.file = f
	s.first, _ = s.timeOf(name)
	if s.size, err = f.Seek(0, io.SeekEnd); err != nil || s.size == 0 {
		return err
	}

	// Otherwise the next line would continue the cut one.
	last := make([]byte, 1)
	if _, err = f.ReadAt(last, s.size-1); err == nil && last[0] != '\n' {
		_, err = f.WriteString("\n")
		s.size++
	}
	return err
}

func (s *series) close() {
	if s.file != nil {
		_ = s.file.Close() // all was written, or the error reported
	}
	s.file, s.size = nil, 0
}

// maxFile returns the size limit of a file. If the disk limit is small, files are small too, so
// that old lines go in small parts. The last batch may exceed it by its size.
func (s *series) maxFile() int64 { return min(fileBytes, s.diskLimit()/8) }

// diskLimit returns the size limit of all files of the series.
func (s *series) diskLimit() int64 { return s.d.Policy().Disk / shares * s.share }

const nameTime = "20060102T150405.000000000Z"

func (s *series) fileName(at time.Time) string {
	return fmt.Sprintf("%s-%s.jsonl", s.name, at.UTC().Format(nameTime))
}

// timeOf returns the time in a file name, which is the time of the file's first line.
func (s *series) timeOf(name string) (time.Time, bool) {
	text := strings.TrimSuffix(strings.TrimPrefix(name, s.name+"-"), ".jsonl")
	at, err := time.Parse(nameTime, text)
	return at, err == nil && s.fileName(at) == name
}

// fileNames returns the file names, oldest first.
func (s *series) fileNames() (names []string) {
	list, err := os.ReadDir(s.d.Dir)
	if err != nil {
		return nil // the folder is not made yet
	}
	for _, f := range list {
		if _, ok := s.timeOf(f.Name()); ok {
			names = append(names, f.Name())
		}
	}
	slices.Sort(names)
	return names
}

// removeOldFiles removes files with only old lines, and the oldest files if their size exceeds the limit.
func (s *series) removeOldFiles() {
	policy, names := s.d.Policy(), s.fileNames()
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

		// Leave room for the present file and the next one.
		full := total+2*s.maxFile() > s.diskLimit() && i < len(names)-1
		if !old && !full {
			break
		}
		if i == len(names)-1 {
			s.close() // it may be open for writing
		}

		if err := os.Remove(filepath.Join(s.d.Dir, name)); err != nil {
			s.logWriteError(err)
			break
		}
		total -= sizes[i]
	}
	s.bytes.Store(total)
}

// queueSums queues lines for summed refusals and for losses.
func (s *series) queueSums() {
	// They pass the queue, so that times ascend.
	for _, l := range s.sums.take() {
		s.queueAccess(func(at time.Time) noted {
			l.At, l.ID = at.UTC(), accessID(s.d.Node, at)
			return noted{line: l, whole: true}
		})
	}

	if lost := s.lost.Swap(0); lost > 0 {
		a := Access{Action: "audit.lost", Actor: catalog.Actor{Type: catalog.ActorSystem, ID: s.d.Node}, TargetType: "audit", Target: s.name}
		s.queueAccess(func(at time.Time) noted {
			l := a.line(s.d.Node, at, s.d.Index())
			l.Count = int(lost)
			return noted{line: l, whole: true}
		})
	}
}

// Limits of refusals with a line each, per minute.
const (
	maxOfAddress = 20
	maxOfAll     = 500
	maxAddresses = 4096 // addresses counted separately
)

// sums counts refusals, by action and address, that are too many for a line each.
type sums struct {
	passed int
	counts map[string]*sum
}

type sum struct {
	refusals int
	more     Line // line for those that did not pass; its Count is their number
}

func newSums() *sums { return &sums{counts: map[string]*sum{}} }

// getsOwnLine reports whether a refusal gets its own line.
func (s *sums) getsOwnLine(l *Line) bool {
	key := l.Action + " " + l.Address
	if s.counts[key] == nil && len(s.counts) >= maxAddresses {
		key = l.Action // shared by all further addresses
	}

	x := s.counts[key]
	if x == nil {
		x = &sum{}
		s.counts[key] = x
	}

	// Two limits: neither one address nor many together may use up the lines.
	if x.refusals++; x.refusals <= maxOfAddress && s.passed < maxOfAll {
		s.passed++
		return true
	}

	// The line for many has only what they share.
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

// take returns a line for each sum, and resets the sums.
func (s *sums) take() (lines []Line) {
	for _, key := range slices.Sorted(maps.Keys(s.counts)) {
		if x := s.counts[key]; x.more.Count > 0 {
			lines = append(lines, x.more)
		}
	}
	*s = *newSums()
	return lines
}
