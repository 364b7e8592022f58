package catalog

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

// A snapshot is a stream of blocks and an end:
//
//	magic     8 bytes "SHOALC01"
//	block     tag 1 (kind of record, not 0) | length 4 | CRC-32C 4 | body
//	          body: records of one kind, each as uvarint length and bytes
//	...
//	end       0 | SHA-256 of all bytes before the 0
//
// Numbers are little-endian. Records come in the order of their keys, so the
// same state gives the same bytes. A kind that is not known is refused: it
// was written by a newer version.

const (
	snapshotMagic = "SHOALC01"
	blockSize     = 64 << 10
	maxBlock      = MaxEntry + blockSize
)

// ErrDamaged is wrapped by the errors of Load about bytes that were not
// written like that.
var ErrDamaged = errors.New("the snapshot is damaged")

// Save writes a snapshot.
func (v *View) Save(w io.Writer) error {
	sum := sha256.New()
	buf := bufio.NewWriterSize(io.MultiWriter(w, sum), 256<<10)
	s := &saver{w: buf}
	s.raw([]byte(snapshotMagic))
	s.record(metaKind, &v.meta)
	if v.config.Index > 0 {
		s.record(configKind, v.config)
	}
	saveTable(s, &v.connections)
	saveTable(s, &v.repos)
	saveTable(s, &v.jobs)
	saveTable(s, &v.keys)
	saveTable(s, &v.members)
	saveTable(s, &v.groups)
	saveTable(s, &v.holdings)
	saveTable(s, &v.secrets)
	for _, id := range v.order.all() {
		s.record(requestKind, v.requests.get(id))
	}
	s.flush()
	if s.err == nil {
		s.err = buf.Flush()
	}
	if s.err == nil {
		_, s.err = w.Write(sum.Sum([]byte{0}))
	}
	if s.err != nil {
		return fmt.Errorf("catalog: write snapshot: %w", s.err)
	}
	return nil
}

// saver gathers records into blocks.
type saver struct {
	w    io.Writer
	tag  byte
	body []byte
	tmp  []byte
	err  error
}

func saveTable[K uint32 | uint64 | string, T any](s *saver, t *table[K, T]) {
	for rec := range t.records() {
		s.record(t.kind, rec)
	}
}

func (s *saver) raw(b []byte) {
	if s.err == nil {
		_, s.err = s.w.Write(b)
	}
}

func (s *saver) record(kind *recordKind, rec any) {
	if s.tag != kind.tag || len(s.body) >= blockSize {
		s.flush()
		s.tag = kind.tag
	}
	s.tmp = kind.append(s.tmp[:0], rec)
	s.body = binary.AppendUvarint(s.body, uint64(len(s.tmp)))
	s.body = append(s.body, s.tmp...)
}

func (s *saver) flush() {
	if len(s.body) == 0 {
		return
	}
	head := binary.LittleEndian.AppendUint32([]byte{s.tag}, uint32(len(s.body)))
	head = binary.LittleEndian.AppendUint32(head, crc32.Checksum(s.body, castagnoli()))
	s.raw(head)
	s.raw(s.body)
	s.body = s.body[:0]
}

// castagnoli is a table that the library makes once.
func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

// Load reads a snapshot and verifies it.
func Load(r io.Reader) (*State, error) {
	s := New()
	sum := sha256.New()
	l := &loader{r: bufio.NewReaderSize(r, 256<<10), sum: sum, s: s}
	if err := l.load(); err != nil {
		return nil, fmt.Errorf("catalog: read snapshot: %w", err)
	}
	s.rehashMeta()
	if err := s.reindex(); err != nil {
		return nil, fmt.Errorf("catalog: read snapshot: %w: %w", ErrDamaged, err)
	}
	return s, nil
}

type loader struct {
	r    io.Reader
	sum  io.Writer
	s    *State
	body []byte
}

func (l *loader) read(b []byte) error {
	if _, err := io.ReadFull(l.r, b); err != nil {
		return fmt.Errorf("%w: it ends too early: %w", ErrDamaged, err)
	}
	return nil
}

func (l *loader) load() error {
	magic := make([]byte, len(snapshotMagic))
	if err := l.read(magic); err != nil {
		return err
	}
	if string(magic) != snapshotMagic {
		return fmt.Errorf("%w: it does not begin like one", ErrDamaged)
	}
	l.sum.Write(magic)
	for {
		more, err := l.block()
		if err != nil || !more {
			return err
		}
	}
}

func (l *loader) block() (more bool, err error) {
	var head [9]byte
	if err := l.read(head[:1]); err != nil {
		return false, err
	}
	if head[0] == 0 {
		return false, l.end()
	}
	if err := l.read(head[1:]); err != nil {
		return false, err
	}
	size := binary.LittleEndian.Uint32(head[1:])
	if size > maxBlock {
		return false, fmt.Errorf("%w: a block of %d bytes", ErrDamaged, size)
	}
	if l.body, err = readGrowing(l.r, l.body[:0], int(size)); err != nil {
		return false, fmt.Errorf("%w: it ends too early: %w", ErrDamaged, err)
	}
	if crc32.Checksum(l.body, castagnoli()) != binary.LittleEndian.Uint32(head[5:]) {
		return false, fmt.Errorf("%w: a block does not have its checksum", ErrDamaged)
	}
	l.sum.Write(head[:])
	l.sum.Write(l.body)
	return true, l.records(head[0])
}

// readGrowing reads n bytes and never has much more memory than bytes came.
func readGrowing(r io.Reader, b []byte, n int) ([]byte, error) {
	for n > 0 {
		step := min(n, 1<<20)
		at := len(b)
		b = append(b, make([]byte, step)...)
		if _, err := io.ReadFull(r, b[at:]); err != nil {
			return b, err
		}
		n -= step
	}
	return b, nil
}

func (l *loader) end() error {
	want := l.sum.(interface{ Sum([]byte) []byte }).Sum(nil)
	got := make([]byte, len(want))
	if err := l.read(got); err != nil {
		return err
	}
	if !bytes.Equal(got, want) {
		return fmt.Errorf("%w: it does not have its checksum", ErrDamaged)
	}
	return nil
}

func (l *loader) records(tag byte) error {
	r := &reader{b: l.body}
	for len(r.b) > 0 {
		rec := r.take(r.uvarint())
		if r.err != nil {
			return fmt.Errorf("%w: %w", ErrDamaged, r.err)
		}
		if err := l.s.restore(tag, rec); err != nil {
			return err
		}
	}
	return nil
}

// restore puts one record of a snapshot into the state.
func (s *State) restore(tag byte, b []byte) (err error) {
	switch tag {
	case metaKind.tag:
		return metaKind.decode(b, &s.meta)
	case configKind.tag:
		c := &Config{}
		err = configKind.decode(b, c)
		s.setConfig(c)
	case connectionKind.tag:
		err = restoreInto(&s.connections, b, func(c *Connection) string { return c.Name })
	case repoKind.tag:
		err = restoreInto(&s.repos, b, func(r *Repo) RepoID { return r.ID })
	case jobKind.tag:
		err = restoreInto(&s.jobs, b, func(j *Job) string { return jobKey(j.Kind, j.Subject) })
	case keyKind.tag:
		err = restoreInto(&s.keys, b, func(k *Key) string { return k.ID })
	case memberKind.tag:
		err = restoreInto(&s.members, b, func(m *Member) string { return m.ID })
	case groupKind.tag:
		err = restoreInto(&s.groups, b, func(g *Group) uint64 { return g.Number })
	case holdingKind.tag:
		err = restoreInto(&s.holdings, b, func(h *Holding) string { return h.Key })
	case secretKind.tag:
		err = restoreInto(&s.secrets, b, func(x *Secret) string { return x.Name })
	case requestKind.tag:
		err = restoreInto(&s.requests, b, func(q *request) string { return string(q.ID[:]) })
	default:
		err = fmt.Errorf("records of kind %d: %w", tag, errNewer)
	}
	return err
}

func restoreInto[K uint32 | uint64 | string, T any](t *table[K, T], b []byte, key func(*T) K) error {
	rec := new(T)
	if err := t.kind.decode(b, rec); err != nil {
		return err
	}
	// A record has one encoding, so its bytes are what its hash is made of.
	hash := t.kind.hashOf(b)
	t.sum += hash
	t.tree.set(key(rec), row[T]{rec, hash})
	return nil
}

// reindex makes the indexes from the records, and finds records that
// contradict each other.
func (s *State) reindex() error {
	for r := range s.repos.records() {
		if _, taken := s.names.get(r.Name); taken || r.ID == 0 || r.ID > s.meta.LastRepo {
			return fmt.Errorf("repository %d has the name or number of another", r.ID)
		}
		s.names.set(r.Name, r.ID)
		for _, id := range files(r.Shards) {
			n, _ := s.refs.get(id)
			s.refs.set(id, n+1)
		}
	}
	for j := range s.jobs.records() {
		s.indexJob(j)
	}
	for k := range s.keys.records() {
		s.keyHashes.set(string(k.Hash), k.ID)
	}
	for m := range s.members.records() {
		if _, taken := s.numbers.get(m.Number); taken || m.Number == 0 || m.Number > s.meta.LastMember {
			return fmt.Errorf("member %s has the number of another", m.ID)
		}
		s.numbers.set(m.Number, m.ID)
	}
	for q := range s.requests.records() {
		s.order.set(q.Index, string(q.ID[:]))
		s.replies += len(q.Results)
	}
	return nil
}
