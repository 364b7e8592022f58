package ask

import (
	"errors"
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/node/call"
)

// Files of turns as other releases write them.
func TestTurnFile_ofAnotherVersionIsRefusedUnchanged(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text  string
		newer bool
	}{
		"the version before":      {`{"Report": {"Query": "whales?"}, "Events": [{"N": 1, "Text": "yes"}]}`, false},
		"with the number of this": {`{"Format": 1, "Report": {"Query": "whales?"}, "Events": [{"N": 1, "Text": "yes"}]}`, false},
		"with a field more":       {`{"Report": {"Query": "whales?", "Mood": "calm"}, "Events": [{"N": 1, "Text": "yes", "At": 3}], "Votes": []}`, false},
		"a later version":         {`{"Format": 2, "Report": {"Query": "whales?"}, "Events": [{"N": 1, "Text": "yes"}]}`, true},
		"with another shape":      {`{"Format": 2, "Report": "whales?", "Events": {"1": "yes"}}`, true},
	} {
		k, err := unpack(packer.EncodeAll([]byte(c.text), nil))
		switch {
		case c.newer && (!errors.Is(err, call.ErrUnavailable) || !strings.Contains(err.Error(), "format 2; this node reads up to 1")):
			t.Errorf("%s: %v", name, err)
		case !c.newer && (err != nil || k.Report.Query != "whales?" || len(k.Events) != 1 || k.Events[0].Text != "yes"):
			t.Errorf("%s: %+v, %v", name, k, err)
		}
	}
	if _, err := unpack(packer.EncodeAll([]byte(`{"Report": `), nil)); err == nil || errors.Is(err, call.ErrUnavailable) {
		t.Errorf("a cut file: %v", err)
	}
}
