package cluster

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/cluster/catalog"
)

// This is the JSON that nodes of the last release send, with every field. This program reads all of
// it, and sends everything that the last release reads. Fields may be added.
func TestJSONBetweenNodes_isCompatibleWithTheLastRelease(t *testing.T) {
	t.Parallel()
	for text, into := range map[string]any{
		`{"ID":"s","Number":3,"Epoch":3,"Session":3,"Addr":"s","Gossip":"s","API":"s","Zone":"s","Weight":3,"Version":"s","State":3,"Since":"2001-09-09T01:46:40Z","Joined":"2001-09-09T01:46:40Z","Permissions":"unset","Lowest":3,"Highest":3}`: new(catalog.Member), // for join, admit and announce
		`{"Cluster":"s","Founder":"s","Expect":3}`:                                                                        new(promiseRequest),
		`{"Addr":"s","Last":{"index":3,"term":3}}`:                                                                        new(recallRequest),
		`{"Last":{"Term":3,"Index":3},"Leader":"s","Leads":true,"Index":3}`:                                               new(recallReply),
		`{"c":"s","w":"s","a":"s","x":3,"t":3,"f":"s","l":{"s":3,"d":3,"i":3,"t":"2001-09-09T01:46:40Z","r":3,"x":true}}`: new(meta),
		`{"cluster":"s","nodes":{"s":{"index":3,"term":3}},"current":{"at":"2001-09-09T01:46:40Z","index":3}}`:            new(memoryFile),
	} {
		d := json.NewDecoder(strings.NewReader(text))
		d.DisallowUnknownFields()
		if err := d.Decode(into); err != nil {
			t.Errorf("%T: %s is not read: %v", into, text, err)
			continue
		}
		again, err := json.Marshal(into)
		if err != nil {
			t.Fatal(err)
		}
		var was, is any
		if json.Unmarshal([]byte(text), &was) != nil || json.Unmarshal(again, &is) != nil || !within(was, is) {
			t.Errorf("%T: of %s the last release is sent %s", into, text, again)
		}
	}
}

// within reports whether one JSON value contains all of another.
func within(part, whole any) bool {
	fields, ok := part.(map[string]any)
	if !ok {
		return reflect.DeepEqual(part, whole)
	}
	all, ok := whole.(map[string]any)
	for name, value := range fields {
		ok = ok && within(value, all[name])
	}
	return ok
}
