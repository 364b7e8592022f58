package config

import (
	"encoding/json"
	"math/big"
	"strconv"

	"github.com/tailscale/hujson"
)

// plain turns a tree with comments into one of maps, slices, strings, booleans
// and json.Numbers. Whole numbers get their shortest form, so that 1e3 and
// 1000.0 are 1000 wherever a count is expected.
func plain(v *hujson.Value) any {
	switch n := v.Value.(type) {
	case *hujson.Object:
		out := make(map[string]any, len(n.Members))
		for i := range n.Members {
			out[text(n.Members[i].Name)] = plain(&n.Members[i].Value)
		}
		return out

	case *hujson.Array:
		out := make([]any, len(n.Elements))
		for i := range n.Elements {
			out[i] = plain(&n.Elements[i])
		}
		return out
	}

	l := v.Value.(hujson.Literal)
	switch l.Kind() {
	case '"':
		return l.String()
	case '0':
		if !sane(l.String()) {
			return json.Number("1") // refused already, see numbers
		}
		return number(l.String())

	case 't':
		return true
	case 'f':
		return false
	default:
		return nil
	}
}

// number is the shortest form of a whole number, and any other as written.
func number(s string) json.Number {
	r, ok := new(big.Rat).SetString(s)
	if ok && r.IsInt() {
		return json.Number(r.Num().String())
	}
	return json.Number(s)
}

// child is the JSON path of a property: connections.main, or, where the key
// is not a plain word, connections["a b"].
func child(path, key string) string {
	switch {
	case !plainKey(key):
		return path + "[" + strconv.Quote(clip(key)) + "]"
	case path == "":
		return key
	}
	return path + "." + key
}

// item is the JSON path of the i-th item of a list.
func item(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }

// plainKey reports whether a key can stand in a path without quotes.
func plainKey(key string) bool {
	for _, c := range key {
		if c >= 0x80 || !(c == '_' || c == '-' || c == '$' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z') {
			return false
		}
	}
	return key != ""
}

// clip shortens what a message shows of the file.
func clip(s string) string {
	const most = 80
	if len(s) <= most {
		return s
	}

	// Do not cut a character in two.
	cut := most
	for cut > 0 && s[cut]&0xC0 == 0x80 {
		cut--
	}
	return s[:cut] + "..."
}
