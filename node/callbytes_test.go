package node_test

import (
	"bytes"
	"encoding"
	"encoding/gob"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/node/nodetest"
)

var rewriteCalls = flag.Bool("rewrite-calls", false, "record what nodes send to each other")

// callsFile has the messages between nodes of the last release: for each method a request and a
// response with every field set.
const callsFile = "testdata/calls.json"

// calls returns request and response of every method, and each atom of a query that interface
// fields carry.
func calls() map[string][2]reflect.Type {
	all := call.Types()
	for _, t := range call.Behind() {
		all["behind an interface: "+t.String()] = [2]reflect.Type{t, t}
	}
	return all
}

// message is a recorded request or response.
type message struct {
	Shape  shape
	Bytes  []byte // without the version prefix
	Leaves int    // values in it
}

// shape is a type as gob sees it. With it a test can act as an older program.
type shape struct {
	Kind   string  `json:"kind"` // of reflect, or "gob" and "binary" if the type encodes itself; "" if it is left out
	Elem   *shape  `json:"elem,omitempty"`
	Key    *shape  `json:"key,omitempty"`
	Len    int     `json:"len,omitempty"`
	Fields []field `json:"fields,omitempty"`
}

type field struct {
	Name  string `json:"name"`
	Shape shape  `json:"shape"`
}

// gobOpaque and binaryOpaque decode any value that encodes itself.
type (
	gobOpaque    struct{ B []byte }
	binaryOpaque struct{ B []byte }
)

func (o *gobOpaque) GobDecode(b []byte) error          { o.B = bytes.Clone(b); return nil }
func (o gobOpaque) GobEncode() ([]byte, error)         { return o.B, nil }
func (o *binaryOpaque) UnmarshalBinary(b []byte) error { o.B = bytes.Clone(b); return nil }
func (o binaryOpaque) MarshalBinary() ([]byte, error)  { return o.B, nil }

const deepest = 8 // of recursive types

func shapeOf(t reflect.Type, depth int) shape {
	p := reflect.PointerTo(t)
	switch {
	case depth > deepest:
		return shape{}
	case p.Implements(reflect.TypeFor[gob.GobEncoder]()):
		return shape{Kind: "gob"}
	case p.Implements(reflect.TypeFor[encoding.BinaryMarshaler]()):
		return shape{Kind: "binary"}
	}

	of := func(t reflect.Type) *shape { s := shapeOf(t, depth+1); return &s }
	s := shape{Kind: t.Kind().String()}
	switch t.Kind() {
	case reflect.Pointer:
		return shapeOf(t.Elem(), depth)
	case reflect.Slice:
		s.Elem = of(t.Elem())
	case reflect.Array:
		s.Elem, s.Len = of(t.Elem()), t.Len()
	case reflect.Map:
		s.Key, s.Elem = of(t.Key()), of(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			if f := t.Field(i); f.IsExported() {
				s.Fields = append(s.Fields, field{f.Name, shapeOf(f.Type, depth+1)})
			}
		}
	case reflect.Interface, reflect.Func, reflect.Chan:
		return shape{}
	}
	return s
}

// typ returns a type of this shape; nil if it is left out.
func (s *shape) typ() reflect.Type {
	switch s.Kind {
	case "":
		return nil
	case "gob":
		return reflect.TypeFor[gobOpaque]()
	case "binary":
		return reflect.TypeFor[binaryOpaque]()
	case "slice", "array", "map":
		elem := s.Elem.typ()
		switch {
		case elem == nil:
			return nil
		case s.Kind == "slice":
			return reflect.SliceOf(elem)
		case s.Kind == "array":
			return reflect.ArrayOf(s.Len, elem)
		}
		return reflect.MapOf(s.Key.typ(), elem)
	case "struct":
		var fields []reflect.StructField
		for _, f := range s.Fields {
			if t := f.Shape.typ(); t != nil {
				fields = append(fields, reflect.StructField{Name: f.Name, Type: t})
			}
		}
		if len(fields) == 0 {
			return nil
		}
		return reflect.StructOf(fields)
	}
	return basic[s.Kind]
}

// basic has the types without parts, by kind.
var basic = func() map[string]reflect.Type {
	all := map[string]reflect.Type{}
	for _, v := range []any{false, 0, int8(0), int16(0), int32(0), int64(0), uint(0), uint8(0), uint16(0), uint32(0), uint64(0), float32(0), float64(0), ""} {
		all[reflect.TypeOf(v).Kind().String()] = reflect.TypeOf(v)
	}
	return all
}()

// fill sets every value that gob sends to a non-zero value.
func fill(v reflect.Value, depth int) {
	if t, ok := v.Addr().Interface().(*time.Time); ok {
		*t = time.Unix(1e9, 0).UTC()
		return
	}
	if s := shapeOf(v.Type(), 0); depth > deepest || s.Kind == "gob" || s.Kind == "binary" {
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), depth+1)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(v.Field(i), depth+1)
			}
		}
	case reflect.Interface:
		for _, t := range call.Behind() {
			if t.Kind() == reflect.Bool && t.Implements(v.Type()) {
				v.Set(reflect.New(t).Elem())
			}
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), depth+1)
	case reflect.Array:
		for i := range v.Len() {
			fill(v.Index(i), depth+1)
		}
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key, depth+1)
		fill(value, depth+1)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.String:
		v.SetString("s")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Float32, reflect.Float64:
		v.SetFloat(1.5)
	default:
		switch {
		case v.CanInt():
			v.SetInt(3)
		case v.CanUint():
			v.SetUint(3)
		}
	}
}

// leaves counts the non-zero values.
func leaves(v reflect.Value) (n int) {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return 0
		}
		return leaves(v.Elem())
	case reflect.Struct:
		if s := shapeOf(v.Type(), 0); s.Kind == "struct" {
			for i := range v.NumField() {
				if v.Type().Field(i).IsExported() {
					n += leaves(v.Field(i))
				}
			}
			return n
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			n += leaves(v.Index(i))
		}
		return n
	case reflect.Map:
		for k, x := range v.Seq2() {
			n += leaves(k) + leaves(x)
		}
		return n
	case reflect.Interface:
		return 0
	}
	if v.IsZero() {
		return 0
	}
	return 1
}

func filled(t reflect.Type) reflect.Value {
	v := reflect.New(t)
	fill(v.Elem(), 0)
	return v
}

func gobOf(t *testing.T, v reflect.Value) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := gob.NewEncoder(&b).EncodeValue(v); err != nil {
		t.Fatal(v.Type(), err)
	}
	return b.Bytes()
}

// differs returns an error if a value is lost between two programs, in either direction.
func (m *message) differs(t *testing.T, now reflect.Type) error {
	here := reflect.New(now)
	if err := gob.NewDecoder(bytes.NewReader(m.Bytes)).DecodeValue(here); err != nil {
		return fmt.Errorf("what the last release sends is not read here: %w", err)
	}
	if got := leaves(here); got != m.Leaves {
		return fmt.Errorf("of %d values that the last release sends %d arrive here", m.Leaves, got)
	}

	old := m.Shape.typ()
	if old == nil {
		return nil
	}
	there := reflect.New(old)
	if err := gob.NewDecoder(bytes.NewReader(gobOf(t, filled(now)))).DecodeValue(there); err != nil {
		return fmt.Errorf("what is sent here is not read by the last release: %w", err)
	}
	if got := leaves(there); got != m.Leaves {
		return fmt.Errorf("of %d values that the last release knows %d arrive there", m.Leaves, got)
	}
	return nil
}

// Each call between nodes can be read by the last release, and the other way round. New fields do
// no harm.
func TestCallsBetweenNodes_areCompatibleWithTheLastRelease(t *testing.T) {
	t.Parallel()
	nodetest.Start(t, nodetest.Config{}) // registers the types of parameters

	methods := calls()
	record := func(of reflect.Type) message {
		v := filled(of)
		return message{shapeOf(of, 0), gobOf(t, v), leaves(v)}
	}
	if *rewriteCalls {
		all := map[string][2]message{}
		for name, types := range methods {
			all[name] = [2]message{record(types[0]), record(types[1])}
		}
		text, err := json.Marshal(all)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(callsFile, append(text, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}

	text, err := os.ReadFile(callsFile)
	if err != nil {
		t.Fatal(err)
	}
	recorded := map[string][2]message{}
	if err := json.Unmarshal(text, &recorded); err != nil {
		t.Fatal(err)
	}
	for _, name := range slices.Sorted(maps.Keys(recorded)) {
		types, ok := methods[name]
		if !ok {
			t.Errorf("the last release calls %q, which nobody answers", name)
			continue
		}
		for i, what := range []string{"question", "answer"} {
			m := recorded[name][i]
			if err := m.differs(t, types[i]); err != nil {
				t.Errorf("%s of %q: %v", what, name, err)
			}
		}
	}
	for name := range methods {
		if _, ok := recorded[name]; !ok {
			t.Errorf("%q is not recorded: go test ./node -run TestCallsBetweenNodes_areCompatibleWithTheLastRelease -rewrite-calls", name)
		}
	}

	// A removed field and a changed type are errors; a new field is not.
	type before struct {
		A string
		B int
	}
	was := record(reflect.TypeFor[before]())
	for now, good := range map[reflect.Type]bool{
		reflect.TypeFor[struct {
			A string
			B int
			C []string
		}](): true,
		reflect.TypeFor[struct{ A string }]():    false,
		reflect.TypeFor[struct{ A, B string }](): false,
	} {
		if err := was.differs(t, now); (err == nil) != good {
			t.Errorf("%v: %v", now, err)
		}
	}
}
