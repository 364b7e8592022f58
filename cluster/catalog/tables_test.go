package catalog

import (
	"bytes"
	"compress/gzip"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog/codec"
	"github.com/shoalsearch/shoal/cluster/catalog/tree"
)

// gadget is a record of a table that exists only in this test.
type gadget struct {
	Name  string
	Parts []uint32
}

// putGadget is the command that changes it.
type putGadget struct {
	gadget
	in func(*tables) *tree.Table[string, gadget]
}

func (c *putGadget) apply(t *txn) Result {
	if c.Name == "" {
		return refuse(Invalid, "a gadget has a name")
	}
	c.in(&t.tables).Set(c.Name, &gadget{c.Name, c.Parts})
	return Result{}
}

// gadgetRow returns the row of the table, and a function that finds the table.
func gadgetRow() (tableRow, func(*tables) *tree.Table[string, gadget]) {
	var mu sync.Mutex
	all := map[*tables]*tree.Table[string, gadget]{}
	at := func(t *tables) *tree.Table[string, gadget] {
		mu.Lock()
		defer mu.Unlock()
		if all[t] == nil {
			all[t] = &tree.Table[string, gadget]{}
		}
		return all[t]
	}
	return tableOf(200, "gadget", at, func(g *gadget) string { return g.Name }, nil), at
}

func TestNewTable_needsOnlyARow(t *testing.T) {
	t.Parallel()
	row, at := gadgetRow()
	rows := append(slices.Clone(tableRows), row)
	s := newState(rows, jobRows)
	put := func(index uint64, name string, parts ...uint32) {
		t.Helper()
		s.Apply(Entry{Index: index, Commands: []Command{&putGadget{gadget{name, parts}, at}}})
	}

	put(1, "a", 1, 2)
	put(2, "b", 3)
	old := s.View()
	put(3, "b", 4)
	put(4, "c")

	// An old view does not change.
	if g := at(&old.tables).Get("b"); g == nil || !slices.Equal(g.Parts, []uint32{3}) || at(&old.tables).Get("c") != nil {
		t.Errorf("the view of entry 2 has b %+v and c %v", g, at(&old.tables).Get("c"))
	}
	now := s.View()
	if g := at(&now.tables).Get("b"); g == nil || !slices.Equal(g.Parts, []uint32{4}) {
		t.Errorf("the view of entry 4 has b %+v", g)
	}

	// The records are part of the state hash, in any order of insertion.
	if now.Hash() == old.Hash() || now.Hash() != rehash(now) {
		t.Errorf("hash %x, before %x, of the records %x", now.Hash(), old.Hash(), rehash(now))
	}

	// A snapshot contains them.
	var saved, again bytes.Buffer
	if err := now.Save(&saved); err != nil {
		t.Fatal(err)
	}
	loaded, err := loadInto(newState(rows, jobRows), bytes.NewReader(saved.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	if loaded.View().Hash() != now.Hash() || at(&loaded.tables).Len() != 3 {
		t.Errorf("restored: hash %x, want %x; %d gadgets", loaded.View().Hash(), now.Hash(), at(&loaded.tables).Len())
	}
	if err := loaded.View().Save(&again); err != nil || !bytes.Equal(saved.Bytes(), again.Bytes()) {
		t.Errorf("a snapshot of the restored state differs: %v", err)
	}

	// A version without the row refuses the snapshot.
	if _, err := Load(bytes.NewReader(saved.Bytes())); !errors.Is(err, codec.ErrNewer) {
		t.Errorf("a version that does not know the table: %v", err)
	}
}

func TestTableTags_areUnique(t *testing.T) {
	t.Parallel()
	tags := map[byte]bool{0: true, metaKind.tag: true, configKind.tag: true, levelKind.tag: true} // 0 ends a snapshot
	for _, row := range tableRows {
		if tags[row.tag()] {
			t.Errorf("two kinds of records have the tag %d", row.tag())
		}
		tags[row.tag()] = true
	}
}

func testdata(t *testing.T, name string) []byte {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err == nil {
		var b []byte
		if b, err = io.ReadAll(z); err == nil {
			return b
		}
	}
	t.Fatal(fmt.Errorf("%s: %w", name, err))
	return nil
}

func TestStamp_changesOnlyTheTime(t *testing.T) {
	t.Parallel()
	if *rewrite {
		return // the logs may not exist yet
	}
	at := epoch.Add(1234567 * time.Millisecond)
	for _, l := range readKept(t, 1) {
		for index, data := range l.entries {
			want, err := DecodeEntry(uint64(index+1), data)
			if err != nil {
				t.Fatal(err)
			}
			before := bytes.Clone(data)
			stamped, err := Stamp(data, at)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(data, before) {
				t.Fatalf("log %q, entry %d: Stamp has changed its argument", l.name, index+1)
			}

			// Stamp equals decoding, setting the time and encoding.
			want.At = at
			again, err := want.Encode()
			if err != nil || !bytes.Equal(stamped, again) {
				t.Fatalf("log %q, entry %d: %x, want %x, %v", l.name, index+1, stamped, again, err)
			}
		}
	}
	for _, bad := range [][]byte{nil, {1}, make([]byte, 30), append([]byte{2}, make([]byte, 30)...), append([]byte{1}, make([]byte, 16)...)} {
		if out, err := Stamp(bad, at); err == nil {
			t.Errorf("%x becomes %x", bad, out)
		}
	}
}

// The bytes equal the examples in the comments of the codec.
func TestCodec_bytesEqualTheDocumentedExamples(t *testing.T) {
	t.Parallel()
	e := Entry{At: time.UnixMilli(1_700_000_000_000), Node: "n1", Commands: []Command{&RevokeKey{ID: "k7"}}}
	for i := range e.Request {
		e.Request[i] = byte(i)
	}
	b, err := e.Encode()
	if err != nil {
		t.Fatal(err)
	}
	want := "01" + "000102030405060708090a0b0c0d0e0f" + "80a0abfef962" + "046e31" + "01" + "0e04" + "01046b37"
	if got := hex.EncodeToString(b); got != want {
		t.Errorf("entry: %s, drawn %s", got, want)
	}

	former := kindOf[FormerName](0, "former name")
	if got := hex.EncodeToString(former.append(nil, &FormerName{Name: "a/b"})); got != "0106612f62" {
		t.Errorf("record: %s, drawn 0106612f62", got)
	}
}
