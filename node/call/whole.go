package call

import (
	"encoding"
	"encoding/gob"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"

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

// behind is the types that travel behind an interface, and registered how often one was named.
var (
	behind     sync.Map
	registered atomic.Int64
)

// Register names values whose types travel behind an interface. To do so again is harmless.
func Register(values ...any) {
	for _, v := range values {
		gob.Register(v)
		behind.Store(reflect.TypeOf(v), true)
		registered.Add(1)
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

// parts is what stands behind a question: how to understand it whole, and of which request it
// is. A node of an earlier release skips what it does not know of it.
type parts struct {
	Release string   // of the program that asks
	Fields  []string // that are set, of a question that has to be understood whole
	Request string   // id of the client's request, "" for none
}

// partsOf is the fields of a question that are set.
func partsOf(req any) parts {
	used := setFields(make([]string, 0, 32), reflect.ValueOf(req).Elem(), true)
	slices.Sort(used)
	return parts{Release: release.Number, Fields: used}
}

// understood refuses a question of a later release of which a field that is set is not known,
// and one with a field that the program of a test lacks.
func (p parts) understood(knows, lacks func(field string) bool) error {
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
	case kind == reflect.Struct && !visited[t]:
		visited[t] = true
		for _, f := range sentOf(t) {
			s[owner+"."+f.name] = true
			s.of(t.Field(f.at).Type, f.typeName, visited)
		}
	}
}

// setFields adds the names of the fields of a value that are not zero: gob sends these alone.
// top is whether the value is the question itself.
func setFields(names []string, v reflect.Value, top bool) []string {
	switch v.Kind() {
	case reflect.Interface, reflect.Pointer:
		if !v.IsNil() {
			return setFields(names, v.Elem(), false)
		}
	case reflect.Map:
		for _, e := range v.Seq2() {
			names = setFields(names, e, false)
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			names = setFields(names, v.Index(i), false)
		}
	case reflect.Struct:
		for _, f := range sentOf(v.Type()) {
			value := v.Field(f.at)
			if value.IsZero() {
				continue
			}
			name := f.full
			if top {
				name = f.full[len(v.Type().Name()):]
			}
			// A search of many shards sets each field many times. They are few: a map costs more.
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
			if f.below {
				names = setFields(names, value, false)
			}
		}
	}
	return names
}

// sent is a field of a struct that gob sends.
type sent struct {
	at             int // in the struct
	name, typeName string
	full           string // name behind that of the struct
	below          bool   // whether it can have fields itself
}

// sentByType is []sent by reflect.Type: each question needs them again.
var sentByType sync.Map

// sentOf is the fields of a struct; none of a type that makes its bytes itself.
func sentOf(t reflect.Type) []sent {
	if known, ok := sentByType.Load(t); ok {
		return known.([]sent)
	}
	var all []sent
	for i := range t.NumField() {
		if f := t.Field(i); f.IsExported() && !opaque(t) {
			all = append(all, sent{i, f.Name, typeName(f.Type), t.Name() + "." + f.Name, hasFields(f.Type)})
		}
	}
	sentByType.Store(t, all)
	return all
}

// hasFields reports whether values of a type can have fields, in what they hold too.
func hasFields(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		return hasFields(t.Elem())
	}
	return t.Kind() == reflect.Interface || t.Kind() == reflect.Struct
}

// typeName is the name of a type or of what it points at.
func typeName(t reflect.Type) string {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t.Name()
}

// opaque reports whether a type makes its bytes itself.
func opaque(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return p.Implements(reflect.TypeFor[gob.GobEncoder]()) || p.Implements(reflect.TypeFor[encoding.BinaryMarshaler]())
}
