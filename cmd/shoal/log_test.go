package main

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"
)

func TestJSONLog_hasTimesInUTC(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	slog.New(slog.NewJSONHandler(&b, &slog.HandlerOptions{ReplaceAttr: durationsAsText})).Info("done", "took", 540*time.Millisecond, "n", 3)
	if got := b.String(); !strings.Contains(got, `"took":"540ms","n":3`) {
		t.Error(got)
	}
}

func TestSearchCommand_refusesAnEmptyQuery(t *testing.T) {
	t.Parallel()
	f := searchFlags{}
	if err := f.run(nil, nil, []string{" "}); err == nil || !strings.Contains(err.Error(), "the query is empty") {
		t.Errorf("an empty query: %v", err)
	}
}
