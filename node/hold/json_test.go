package hold

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

// This program reads the streams' requests of the last release, and sends what that release reads.
// New fields are allowed.
func TestStreamsBetweenNodes_areCompatibleWithTheLastRelease(t *testing.T) {
	t.Parallel()
	for text, into := range map[string]any{
		`{"Repo":3,"Have":["s"]}`:                 new(mirrorCall),
		`{"Names":["s"],"Repo":3,"Generation":3}`: new(prefetchCall),
	} {
		d := json.NewDecoder(strings.NewReader(text))
		d.DisallowUnknownFields()
		if err := d.Decode(into); err != nil {
			t.Errorf("%T: %s is not read: %v", into, text, err)
		}
		again, err := json.Marshal(into)
		if err != nil {
			t.Fatal(err)
		}
		var was, is map[string]any
		if json.Unmarshal([]byte(text), &was) != nil || json.Unmarshal(again, &is) != nil {
			t.Fatalf("%s, %s", text, again)
		}
		for name, value := range was {
			if !reflect.DeepEqual(is[name], value) {
				t.Errorf("%T: of %s the last release is sent %s", into, text, again)
			}
		}
	}
	if MethodFile != "file" || MethodMirror != "mirror" || MethodPrefetch != "prefetch" {
		t.Error("a method has another name than in the last release")
	}
}
