package chronicle

import (
	"strings"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
)

// Clients choose tool names, targets and user agents. These are cut, kept on one line, and free of
// control characters.
func TestAuditLine_cleansTextOfClients(t *testing.T) {
	t.Parallel()
	for _, text := range []string{strings.Repeat("\x1b", 64<<10), strings.Repeat("é", 300), strings.Repeat("\u202e", 150), "two\nlines"} {
		a := Access{Action: "tool." + text, Target: text, Message: text, Actor: catalog.Actor{ID: text, Name: text, Agent: text, Key: text}}
		l := a.line("n1", time.Unix(0, 0), 7)
		for name, got := range map[string]string{
			"action": l.Action, "target": l.TargetID, "message": l.Metadata["message"], "credential": l.Metadata["credential"],
			"actor": l.ActorID, "name": l.ActorName, "agent": l.UserAgent, "query": oneLine(text),
		} {
			if len(got) > maxText || strings.ContainsAny(got, "\x1b\n\u202e") || strings.ToValidUTF8(got, "") != got {
				t.Errorf("%s of %.10q has %d bytes: %.30q", name, text, len(got), got)
			}
		}
	}
}
