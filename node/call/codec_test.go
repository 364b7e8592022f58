package call

import (
	"bytes"
	"encoding/gob"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"sync"
	"testing"
)

// tree is an atom with atoms in it.
type tree struct {
	Name string
	Subs []atom
}

func (*tree) holds() bool { return true }

type lateAtom struct{ Size int }

func (lateAtom) holds() bool { return true }

type lateTree struct{ Leaf atom }

type asksTrees struct {
	Top   atom
	Texts map[string][]string
	Long  []byte
}

// randomTrees returns a random request.
func randomTrees(rng *rand.Rand) *asksTrees {
	var atoms func(depth int) []atom
	atoms = func(depth int) (all []atom) {
		for range rng.IntN(4) {
			switch rng.IntN(3 + depth) {
			case 0:
				all = append(all, Word{Text: fmt.Sprint(rng.Int()), Fold: rng.IntN(2) == 0})
			case 1:
				all = append(all, Near{rng.IntN(1000)})
			default:
				all = append(all, &tree{Name: strings.Repeat("x", rng.IntN(300)), Subs: atoms(depth - 1)})
			}
		}
		return all
	}
	q := &asksTrees{Long: bytes.Repeat([]byte{1}, 1+rng.IntN(300))}
	if rng.IntN(8) == 0 {
		q.Long = bytes.Repeat([]byte{2}, 2*keptBytes)
	}
	if rng.IntN(2) == 0 {
		q.Texts = map[string][]string{"a": {"b", fmt.Sprint(rng.IntN(9))}}
	}
	if some := atoms(2); len(some) > 0 {
		q.Top = &tree{Subs: some}
	}
	return q
}

// messageBefore returns a message of an earlier program, with its own gob stream.
func messageBefore(values ...any) []byte {
	b := bytes.NewBuffer([]byte{version})
	e := gob.NewEncoder(b)
	for _, v := range values {
		if err := e.Encode(v); err != nil {
			panic(err)
		}
	}
	return b.Bytes()
}

// Each message can be decoded by itself, in any order, from this program and from an earlier one,
// and by an earlier one.
func TestCodec_decodesEachMessageByItself(t *testing.T) {
	t.Parallel()
	Register(Word{}, Near{}, &tree{})
	sender := codecOf[asksTrees]()
	var wg sync.WaitGroup
	for seed := range uint64(4) {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(seed, 1))
			readers := []*codec{codecOf[asksTrees](), codecOf[asksTrees](), codecOf[asksTrees]()}
			for i := range 300 {
				want, behind := randomTrees(rng), parts{Release: "1.2.3", Fields: []string{fmt.Sprint(i)}}
				message := messageBefore(want, behind)
				if rng.IntN(3) > 0 {
					var err error
					if message, err = sender.encode(want, behind); err != nil {
						t.Error(err)
					}
				}

				naive, twin := gob.NewDecoder(bytes.NewReader(message[1:])), new(asksTrees)
				if err := naive.Decode(twin); err != nil || !reflect.DeepEqual(twin, want) {
					t.Errorf("an earlier program reads %+v: %v", twin, err)
				}

				got, also := new(asksTrees), parts{}
				if err := readers[rng.IntN(3)].decode(message, got, &also); err != nil || !reflect.DeepEqual(got, want) || !reflect.DeepEqual(also, behind) {
					t.Errorf("seed %d, message %d: %v\n%+v %+v\n%+v %+v", seed, i, err, got, also, want, behind)
					return
				}
			}
		})
	}
	wg.Wait()
}

// An atom that is registered later is in every message that has one.
func TestCodec_sendsLaterRegisteredQueryTypes(t *testing.T) {
	t.Parallel()
	Register(Word{})
	sender := codecOf[lateTree]()
	if _, err := sender.encode(&lateTree{Word{Text: "a"}}); err != nil {
		t.Fatal(err)
	}
	Register(lateAtom{})
	for i := range 3 {
		message, err := sender.encode(&lateTree{lateAtom{i + 1}})
		if err != nil {
			t.Fatal(err)
		}
		got := new(lateTree)
		if err := codecOf[lateTree]().decode(message, got); err != nil || got.Leaf != (lateAtom{i + 1}) {
			t.Errorf("message %d arrives as %+v: %v", i, got, err)
		}
	}
}

// Invalid bytes are refused, and do not affect later messages.
func TestCodec_refusesDamagedMessages(t *testing.T) {
	t.Parallel()
	Register(Word{}, Near{}, &tree{})
	sender, reader, rng := codecOf[asksTrees](), codecOf[asksTrees](), rand.New(rand.NewPCG(1, 2))
	for range 500 {
		want := randomTrees(rng)
		want.Long = nil
		message, err := sender.encode(want)
		if err != nil {
			t.Fatal(err)
		}
		damaged := bytes.Clone(message)
		for range 1 + rng.IntN(3) {
			damaged[rng.IntN(len(damaged))] = byte(rng.IntN(256))
		}
		_ = reader.decode(damaged[:rng.IntN(len(damaged)+1)], new(asksTrees)) // it may still be valid

		got := new(asksTrees)
		if err := reader.decode(message, got); err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("%+v arrives as %+v: %v", want, got, err)
		}
	}
}

// The cache of other programs' definitions is limited.
func TestCodec_limitsItsCacheOfForeignTypes(t *testing.T) {
	t.Parallel()
	c := codecOf[question]()
	for i := range 10 * keptShapes {
		c.decodersOf(fmt.Append(nil, i))
		if len(c.decoders) > keptShapes {
			t.Fatalf("%d shapes are kept", len(c.decoders))
		}
	}
}
