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

// Whole returns the method for requests whose meaning depends on every field, such as a search. A
// node of an earlier release refuses such a request if it does not know a field that is set. The
// refusal counts as an unknown method, so another node is asked. A field that a later release has
// dropped is skipped, because that release knew its meaning.
//
// Other methods skip every unknown field.
func (m Method[Req, Resp]) Whole() Method[Req, Resp] {
	m.whole = true
	return m
}

// atomTypes has the concrete types of interface fields. registered counts calls of Register.
var (
	atomTypes  sync.Map
	registered atomic.Int64
)

// Register registers concrete types of interface fields, so that gob can send them. Registering
// twice is harmless.
func Register(values ...any) {
	for _, v := range values {
		gob.Register(v)
		atomTypes.Store(reflect.TypeOf(v), true)
		registered.Add(1)
	}
}

// Behind returns the types given to Register. A test compares them with what other versions send.
func Behind() (types []reflect.Type) {
	for t := range atomTypes.Range {
		types = append(types, t.(reflect.Type))
	}
	return types
}

// parts follows a request. An older node skips the parts that it does not know.
type parts struct {
	Release string   // of the sender
	Fields  []string // fields that are set, of a request of a Whole method
	Request string   // id of the client's request, "" for none
	Trace   string   // the span that the question is below, "" for none
}

// partsOf returns the fields of a request that are set.
func partsOf(req any) parts {
	used := setFields(make([]string, 0, 32), reflect.ValueOf(req).Elem(), true)
	slices.Sort(used)
	return parts{Release: release.Number, Fields: used}
}

// checkFields returns an error if a later release sent a field that this one does not know, or a field
// that a test says it lacks.
func (p parts) checkFields(knows, lacks func(field string) bool) error {
	later := release.Later(p.Release, release.Number)
	for _, f := range p.Fields {
		if lacks(f) || later && !knows(f) {
			return fmt.Errorf("%w: it does not know %s of the question", errVersion, f)
		}
	}
	return nil
}

// fieldsOf returns all fields that a request can have.
func fieldsOf(t reflect.Type) map[string]bool {
	all := fieldSet{}
	all.addFields(t, "", map[reflect.Type]bool{})
	return all
}

// fieldSet has names of fields such as "Text.Fold". Fields of the request itself are like
// ".Files".
type fieldSet map[string]bool

// addFields adds all fields that gob sends of a type. owner is the name of the type.
func (s fieldSet) addFields(t reflect.Type, owner string, visited map[reflect.Type]bool) {
	switch kind := t.Kind(); {
	case kind == reflect.Interface:
		for _, b := range Behind() {
			s.addFields(b, typeName(b), visited)
		}
	case kind == reflect.Pointer || kind == reflect.Slice || kind == reflect.Array || kind == reflect.Map:
		s.addFields(t.Elem(), typeName(t.Elem()), visited)
	case kind == reflect.Struct && !visited[t]:
		visited[t] = true
		for _, f := range sentFields(t) {
			s[owner+"."+f.name] = true
			s.addFields(t.Field(f.at).Type, f.typeName, visited)
		}
	}
}

// setFields appends the names of fields that are not zero, because gob sends only these. top
// means that the value is the request itself.
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
		for _, f := range sentFields(v.Type()) {
			value := v.Field(f.at)
			if value.IsZero() {
				continue
			}
			name := f.full
			if top {
				name = f.full[len(v.Type().Name()):]
			}
			// A search of many shards sets the same few fields many times, so a linear search is
			// cheaper than a map.
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

// sentField is a field of a struct that gob sends.
type sentField struct {
	at             int // index in the struct
	name, typeName string
	full           string // name with that of the struct
	below          bool   // the field can have fields itself
}

// sentByType caches []sentField by reflect.Type.
var sentByType sync.Map

// sentFields returns the fields of a struct that gob sends; none if the type encodes itself.
func sentFields(t reflect.Type) []sentField {
	if known, ok := sentByType.Load(t); ok {
		return known.([]sentField)
	}
	var all []sentField
	for i := range t.NumField() {
		if f := t.Field(i); f.IsExported() && !encodesItself(t) {
			all = append(all, sentField{i, f.Name, typeName(f.Type), t.Name() + "." + f.Name, hasFields(f.Type)})
		}
	}
	sentByType.Store(t, all)
	return all
}

// hasFields reports whether a type or its elements can have fields.
func hasFields(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		return hasFields(t.Elem())
	}
	return t.Kind() == reflect.Interface || t.Kind() == reflect.Struct
}

// typeName returns the name of a type, or of the type that it points to.
func typeName(t reflect.Type) string {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t.Name()
}

// encodesItself reports whether a type encodes itself.
func encodesItself(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return p.Implements(reflect.TypeFor[gob.GobEncoder]()) || p.Implements(reflect.TypeFor[encoding.BinaryMarshaler]())
}
