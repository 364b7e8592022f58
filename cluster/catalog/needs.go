package catalog

import (
	"fmt"
	"reflect"
	"strconv"
	"time"
)

// A program cannot read a command or field that a later level brought. So such a command or field
// is not written before the catalog has its level:
//	commandOf[Rename](91).since(2)           a command, in the table of commands
//	Reason string `level:"2"`                a field, which is zero until then

// since sets the lowest level at which a command may be written.
func (k commandKind) since(level uint64) commandKind {
	k.level = level
	return k
}

// requiredLevel returns the level that a catalog must have for a command.
func (k commandKind) requiredLevel(c Command) uint64 {
	level := max(1, k.level)
	if k.tagged {
		level = max(level, requiredLevel(reflect.ValueOf(c).Elem()))
	}
	return level
}

// requiredLevel returns the highest level of all fields that are not zero.
func requiredLevel(v reflect.Value) uint64 {
	level := uint64(1)
	switch {
	case v.IsZero() || v.Type() == reflect.TypeFor[time.Time]():
	case v.Kind() == reflect.Pointer:
		level = requiredLevel(v.Elem())
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() != reflect.Uint8:
		for i := range v.Len() {
			level = max(level, requiredLevel(v.Index(i)))
		}
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			if f := v.Field(i); !f.IsZero() {
				level = max(level, fieldLevel(v.Type().Field(i)), requiredLevel(f))
			}
		}
	}
	return level
}

// fieldLevel returns the level that brought a field.
func fieldLevel(f reflect.StructField) uint64 {
	level, _ := strconv.ParseUint(f.Tag.Get("level"), 10, 64)
	return max(1, level)
}

// hasLevelTag reports whether a field of the type, at any depth, has a tag with the level that it
// needs.
func hasLevelTag(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array:
		return hasLevelTag(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			if f := t.Field(i); fieldLevel(f) > 1 || t != reflect.TypeFor[time.Time]() && hasLevelTag(f.Type) {
				return true
			}
		}
	}
	return false
}

// Allows returns why the commands cannot be written into a catalog of this level, or nil. A member
// with an older program could not read them.
func (l Level) Allows(cmds []Command) error {
	for _, c := range cmds {
		kind, err := kindOfCommand(c)
		if err != nil {
			return err
		}
		if level := kind.requiredLevel(c); level > l.Number {
			return &Refusal{Conflict, fmt.Sprintf("%s needs level %d of the catalog, which has level %d: upgrade the nodes that hold it back, which `shoal upgrade check` lists", CommandName(c), level, l.Number)}
		}
	}
	return nil
}
