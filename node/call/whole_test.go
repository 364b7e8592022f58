package call

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"testing"

	"github.com/shoalsearch/shoal/cluster/wire"
	release "github.com/shoalsearch/shoal/version"
)

// The same request in two releases; the later one has more fields.
type (
	atom interface{ holds() bool }

	Word struct {
		Text string
		Fold bool
	}
	Near struct{ Distance int }

	asksBefore struct {
		Atoms []atom
		Files int
	}
	asksNow struct {
		Atoms  []atom
		Files  int
		Newest bool
		Shards map[string]Word
	}
)

func (Word) holds() bool { return true }
func (Near) holds() bool { return true }

// before is the network of a node whose program does not know some fields.
type before struct {
	far
	lacks []string
}

func (b before) Lacks(field string) bool { return slices.Contains(b.lacks, field) }

// A node that does not know a field of a Whole request refuses it like an unknown method, so that
// another node is called.
func TestWholeRequest_isRefusedByANodeThatLacksAField(t *testing.T) {
	t.Parallel()
	Register(Word{}, Near{})
	word := []atom{Word{Text: "whale"}}
	for name, c := range map[string]struct {
		question asksNow
		lacks    []string
		refused  bool
	}{
		"nothing is set":                     {asksNow{}, nil, false},
		"what both know":                     {asksNow{Atoms: word, Files: 3}, nil, false},
		"a new field that is set":            {asksNow{Atoms: word, Newest: true}, []string{".Newest"}, true},
		"a new map that is set":              {asksNow{Shards: map[string]Word{"a": {}}}, []string{".Shards"}, true},
		"a field that the other has dropped": {asksNow{Newest: true}, nil, false},
		"a new field of an atom":             {asksNow{Atoms: []atom{Word{"whale", true}}}, []string{"Word.Fold"}, true},
		"a new field of an atom, not set":    {asksNow{Atoms: word}, []string{"Word.Fold"}, false},
		"a new field of the second atom":     {asksNow{Atoms: []atom{Word{Text: "a"}, Near{3}}}, []string{"Near.Distance"}, true},
		"a field of an atom that is not in":  {asksNow{Atoms: word}, []string{"Near.Distance"}, false},
	} {
		net := before{far{}, c.lacks}
		To[asksBefore, reply]("whole").Whole().Serve(net, func(_ context.Context, q *asksBefore) (*reply, error) {
			if q.Files != c.question.Files || len(q.Atoms) != len(c.question.Atoms) {
				t.Errorf("%s: %+v arrived", name, q)
			}
			return new(reply), nil
		})
		_, err := To[asksNow, reply]("whole").Whole().Ask(t.Context(), net, "other", &c.question)
		if refused := errors.Is(err, wire.ErrNoMethod) && Elsewhere(err); refused != c.refused || (err != nil) != c.refused {
			t.Errorf("%s: %v, want it refused: %v", name, err, c.refused)
		}
	}
}

// A field that only the sender knows matters if the sender is of a later release. A field of an
// earlier release was dropped since.
func TestWholeRequest_ofAnEarlierReleaseMayHaveADroppedField(t *testing.T) {
	t.Parallel()
	Register(Word{})
	known := fieldsOf(reflect.TypeFor[asksBefore]())
	for name, c := range map[string]struct {
		parts   parts
		refused bool
	}{
		"this release":                    {parts{Release: release.Number, Fields: []string{".Newest"}}, false},
		"an earlier one":                  {parts{Release: "0.0.9", Fields: []string{".Newest"}}, false},
		"a later one":                     {parts{Release: "99.0.0", Fields: []string{".Files", ".Newest"}}, true},
		"a later one, what both know":     {parts{Release: "99.0.0", Fields: []string{".Files", ".Atoms", "Word.Text", "Word.Fold"}}, false},
		"a later one, an atom it has not": {parts{Release: "99.0.0", Fields: []string{".Atoms", "Phrase.Text"}}, true},
	} {
		err := c.parts.checkFields(func(f string) bool { return known[f] }, func(string) bool { return false })
		if errors.Is(err, wire.ErrNoMethod) != c.refused || (err != nil) != c.refused {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A program that does not send field names can call and be called, because the request comes
// first.
func TestWholeRequest_ofAProgramThatSendsNoFieldNamesIsAnswered(t *testing.T) {
	t.Parallel()
	square := func(_ context.Context, q *question) (*reply, error) { return &reply{q.Number * q.Number}, nil }
	whole, plain := To[question, reply]("square").Whole(), To[question, reply]("square")
	for name, m := range map[string][2]Method[question, reply]{"from it": {plain, whole}, "to it": {whole, plain}} {
		net := far{}
		m[1].Serve(net, square)
		if r, err := m[0].Ask(t.Context(), net, "other", &question{7}); err != nil || r.Square != 49 {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
}

// Undecodable bytes count as another version, whatever is wrong with them.
func TestMethod_undecodableBytesCountAsAnotherVersion(t *testing.T) {
	t.Parallel()
	type other struct{ Number []string }
	net := far{}
	To[question, reply]("shape").Serve(net, func(context.Context, *question) (*reply, error) { return new(reply), nil })
	if _, err := To[other, reply]("shape").Ask(t.Context(), net, "other", &other{[]string{"a"}}); !errors.Is(err, wire.ErrNoMethod) || !Elsewhere(err) {
		t.Errorf("%v", err)
	}
}
