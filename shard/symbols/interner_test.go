package symbols

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
	"testing"
)

// Names are in the order of their lower case, then as they are: pages of them
// are found by it.
func TestNames_areSortedWithoutRegardToCase(t *testing.T) {
	t.Parallel()
	list := []string{"zebra", "Able", "able", "ABLE", "ablebodied", "Ablebodied", "a", "[", "@", "`", "{", "eightbyt", "EIGHTBYT", "eightbyte", "Ähre", "ähre", "prefix_of_eight_b", "prefix_of_eight_A", "PREFIX_of_eight_a", "İ", "ſ", "K"}
	names := newInterner()
	for _, s := range list {
		names.intern([]byte(s), names.hash([]byte(s)))
	}
	checkSorted(t, names, list)
}

// checkSorted compares the order of names with that of the plain way.
func checkSorted(t *testing.T, names *interner, list []string) {
	t.Helper()
	want := slices.Clone(list)
	slices.SortFunc(want, func(a, b string) int {
		return cmp.Or(strings.Compare(strings.ToLower(a), strings.ToLower(b)), strings.Compare(a, b))
	})
	var got []string
	for _, n := range sortNames(names) {
		got = append(got, string(names.name(n)))
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// FuzzInterner_numbersNamesLikeAMap returns numbers to names as a map does, and sorts them.
func FuzzInterner_numbersNamesLikeAMap(f *testing.F) {
	f.Add([]byte("foo,bar,foo,Foo,FOOBAR_baz_1,foobar_BAZ_0,\xc3\x84hre,\xe4,x\xe2\x84\xaa"), byte(','))
	f.Add([]byte(strings.Repeat("aAbBcCdD", 300)), byte('d'))
	f.Fuzz(func(t *testing.T, text []byte, comma byte) {
		names, twin := newInterner(), map[string]uint32{}
		var list []string
		for _, name := range bytes.Split(text, []byte{comma}) {
			if len(name) == 0 || len(name) > MaxName || bytes.IndexByte(name, 0) >= 0 {
				continue
			}
			want, ok := twin[string(name)]
			if !ok {
				want = uint32(len(list))
				twin[string(name)] = want
				list = append(list, string(name))
			}
			// A hash of few values makes them meet in the table.
			if got, ok := names.intern(name, names.hash(name)&7); !ok || got != want {
				t.Fatalf("number of %q is %d, %v, want %d", name, got, ok, want)
			}
		}
		for i, want := range list {
			if got := names.name(uint32(i)); string(got) != want {
				t.Fatalf("name %d is %q, want %q", i, got, want)
			}
		}
		checkSorted(t, names, list)
	})
}
