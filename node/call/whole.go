package call

import (
	"encoding"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"sync"

	release "github.com/shoalsearch/shoal/version"
)

// Whole returns the method with questions that mean something else without one of their
// fields, as a search does without a word. A node of an earlier release that does not know a
// field which is set refuses the question as a method that it does not have, so another node
// is asked. A field that a later release has dropped is skipped: it knows what was meant.
//
// Each other method skips every field that it does not know.
func (m Method[Req, Resp]) Whole() Method[Req, Resp] {
	m.whole = true
	return m
}

// behind is the types that travel behind an interface.
var behind sync.Map

// Register names values whose types travel behind an interface. To do so again is harmless.
func Register(values ...any) {
	for _, v := range values {
		gob.Register(v)
		behind.Store(reflect.TypeOf(v), true)
	}
}

// Behind is the types that travel behind an interface: a test holds them to what other
// versions send.
func Behind() (types []reflect.Type) {
	for t := range behind.Range {
		types = append(types, t.(reflect.Type))
	}
	return types
}

// parts is what stands behind a question that has to be understood whole.
type parts struct {
	Release string   // of the program that asks
	Fields  []string // that are set
}

// partsOf is the fields of a question that are set.
func partsOf(req any) parts {
	used := fieldSet{}
	used.set(reflect.ValueOf(req).Elem(), "")
	return parts{release.Number, slices.Sorted(maps.Keys(used))}
}

// understood refuses a question of a later release of which a field that is set is not known,
// and one with a field that the program of a test lacks. Where nothing stands behind it, it is
// of a program before there were parts.
func understood(behind *gob.Decoder, knows, lacks func(field string) bool) error {
	var p parts
	if err := behind.Decode(&p); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: %w", errVersion, err)
	}
	later := release.Later(p.Release, release.Number)
	for _, f := range p.Fields {
		if lacks(f) || later && !knows(f) {
			return fmt.Errorf("%w: it does not know %s of the question", errVersion, f)
		}
	}
	return nil
}

// fieldsOf is all fields that a question can have.
func fieldsOf(t reflect.Type) map[string]bool {
	all := fieldSet{}
	all.of(t, "", map[reflect.Type]bool{})
	return all
}

// fieldSet is names of fields, as "Text.Fold". Those of the question itself are as ".Files".
type fieldSet map[string]bool

// of adds all fields of a type that gob sends. owner is the name of the type.
func (s fieldSet) of(t reflect.Type, owner string, visited map[reflect.Type]bool) {
	switch kind := t.Kind(); {
	case kind == reflect.Interface:
		for _, b := range Behind() {
			s.of(b, typeName(b), visited)
		}
	case kind == reflect.Pointer || kind == reflect.Slice || kind == reflect.Array || kind == reflect.Map:
		s.of(t.Elem(), typeName(t.Elem()), visited)
	case kind == reflect.Struct && !visited[t] && !opaque(t):
		visited[t] = true
		for i := range t.NumField() {
			if f := t.Field(i); f.IsExported() {
				s[owner+"."+f.Name] = true
				s.of(f.Type, typeName(f.Type), visited)
			}
		}
	}
}

// set adds the fields of a value that are not zero: gob sends these alone.
func (s fieldSet) set(v reflect.Value, owner string) {
	switch kind := v.Kind(); {
	case kind == reflect.Interface || kind == reflect.Pointer:
		if !v.IsNil() {
			s.set(v.Elem(), typeName(v.Elem().Type()))
		}
	case kind == reflect.Map:
		for _, e := range v.Seq2() {
			s.set(e, typeName(e.Type()))
		}
	case (kind == reflect.Slice || kind == reflect.Array) && v.Type().Elem().Kind() != reflect.Uint8:
		for i := range v.Len() {
			s.set(v.Index(i), typeName(v.Index(i).Type()))
		}
	case kind == reflect.Struct && !opaque(v.Type()):
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() && !v.Field(i).IsZero() {
				s[owner+"."+f.Name] = true
				s.set(v.Field(i), typeName(f.Type))
			}
		}
	}
}

// typeName is the name of a type or of what it points at.
func typeName(t reflect.Type) string {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t.Name()
}

var opaqueTypes sync.Map

// opaque reports whether a type makes its bytes itself.
func opaque(t reflect.Type) bool {
	is, ok := opaqueTypes.Load(t)
	if !ok {
		p := reflect.PointerTo(t)
		is = p.Implements(reflect.TypeFor[gob.GobEncoder]()) || p.Implements(reflect.TypeFor[encoding.BinaryMarshaler]())
		opaqueTypes.Store(t, is)
	}
	return is.(bool)
}
