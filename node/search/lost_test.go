package search

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestFailedCalls_areLoggedOnceInAWhile(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		l := lostCalls{log: slog.New(slog.NewTextHandler(&out, nil))}
		for range 67 {
			l.note("id", "n2", errors.New("refused"))
			l.note("id", "n3", errors.New("refused"))
		}
		time.Sleep(lostAgain) // on the clock of the bubble
		l.note("id", "n2", errors.New("refused"))

		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		if len(lines) != 3 || !strings.Contains(lines[2], "node=n2") || !strings.Contains(lines[2], "again=66") {
			t.Errorf("want a line of each node, and one with the number left out:\n%s", out.String())
		}
	})
}
