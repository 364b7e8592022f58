package reply_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/api/reply"
)

type part struct {
	At    time.Time `json:"at"`
	Ended time.Time `json:"ended,omitzero"`
	Names []string  `json:"names"`
	Count int       `json:"count,omitzero"`
	Key   string    `json:"-"`
}

func TestEncode_writesEachKindOfValueInItsJSONForm(t *testing.T) {
	t.Parallel()
	when := time.Date(2026, 11, 2, 10, 20, 30, 400, time.UTC)
	for want, v := range map[string]any{
		`{"at":"","names":[]}`: part{Key: "secret"},
		`{"at":"2026-11-02T10:20:30Z","ended":"2026-11-02T10:20:30Z","names":["a"],"count":1}`: part{At: when, Ended: when, Names: []string{"a"}, Count: 1},
		`{"at":"2026-11-02T12:20:30+02:00","names":[]}`:                                        part{At: when.In(time.FixedZone("", 7200))},
		`["<&>\u2028\u2029","a�"]`:                                                             []string{"<&>\u2028\u2029", "a\xff"},
		`{"a":1,"b":2,"c":3}`:                                                                  map[string]int{"c": 3, "a": 1, "b": 2},
	} {
		got, err := reply.Encode(v)
		if err != nil || string(got) != want {
			t.Errorf("%+v: %s, want %s (%v)", v, got, want, err)
		}
	}

	got, err := reply.Encode(when, reply.Precise)
	if err != nil || string(got) != `"2026-11-02T10:20:30.0000004Z"` {
		t.Errorf("precise: %s, %v", got, err)
	}
}

// A client can decode the answer into its type and gets the same values, except fractions of
// seconds and unsent fields.
func TestDecode_returnsTheEncodedValues(t *testing.T) {
	t.Parallel()
	when := time.Date(2026, 11, 2, 10, 20, 30, 0, time.UTC)
	for _, v := range []part{{Names: []string{}}, {At: when, Ended: when, Names: []string{"a"}, Count: 1}} {
		text, err := reply.Encode(v)
		if err != nil {
			t.Fatal(err)
		}
		var got part
		if err := reply.Decode(text, &got); err != nil || !reflect.DeepEqual(got, v) {
			t.Errorf("%s: %+v, want %+v (%v)", text, got, v, err)
		}
	}

	var got part
	if err := reply.Decode([]byte(`{"names":null,"later":1,"AT":""}`), &got); err != nil || !got.At.IsZero() {
		t.Errorf("an answer of another version: %+v, %v", got, err)
	}
}
