package config

import (
	"encoding/json"
	"math/big"
	"strconv"

	"github.com/tailscale/hujson"
)

// toPlain converts a tree with comments to maps, slices, strings, booleans and json.Numbers. Whole
// numbers get their shortest form, so that 1e3 and 1000.0 become 1000.
func toPlain(v *hujson.Value) any {
	switch n := v.Value.(type) {
	case *hujson.Object:
		out := make(map[string]any, len(n.Members))
		for i := range n.Members {
			out[literalText(n.Members[i].Name)] = toPlain(&n.Members[i].Value)
		}
		return out

	case *hujson.Array:
		out := make([]any, len(n.Elements))
		for i := range n.Elements {
			out[i] = toPlain(&n.Elements[i])
		}
		return out
	}

	l := v.Value.(hujson.Literal)
	switch l.Kind() {
	case '"':
		return l.String()
	case '0':
		if !isSaneNumber(l.String()) {
			return json.Number("1") // findHugeNumbers has already rejected it
		}
		return shortestNumber(l.String())

	case 't':
		return true
	case 'f':
		return false
	default:
		return nil
	}
}

// shortestNumber returns the shortest form of a whole number, and any other number as written.
func shortestNumber(s string) json.Number {
	r, ok := new(big.Rat).SetString(s)
	if ok && r.IsInt() {
		return json.Number(r.Num().String())
	}
	return json.Number(s)
}

// childPath returns the JSON path of a property: connections.main, or connections["a b"] if the key
// is not a plain word.
func childPath(path, key string) string {
	switch {
	case !plainKey(key):
		return path + "[" + strconv.Quote(clipText(key)) + "]"
	case path == "":
		return key
	}
	return path + "." + key
}

// item returns the JSON path of the i-th item of a list.
func item(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }

// plainKey reports whether a key needs no quotes in a path.
func plainKey(key string) bool {
	for _, c := range key {
		if c >= 0x80 || !(c == '_' || c == '-' || c == '$' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z') {
			return false
		}
	}
	return key != ""
}

// clipText shortens text of the file for a message.
func clipText(s string) string {
	const most = 80
	if len(s) <= most {
		return s
	}

	// Do not cut within a character.
	cut := most
	for cut > 0 && s[cut]&0xC0 == 0x80 {
		cut--
	}
	return s[:cut] + "..."
}
