package browse

import (
	"regexp"
	"strconv"
	"strings"
	"time"
)

// ago matches a relative date: "30 days ago", "2 weeks", "an hour ago".
var ago = regexp.MustCompile(`^(\d{1,6}|an?|one) *(second|sec|minute|min|hour|day|week|month|year)s?( ago)?$`)

// dateLayouts are the absolute dates. until returns the last second of the day, month or year, so
// that a range "until 2026-01" includes January.
var dateLayouts = []struct {
	layout string
	until  func(time.Time) time.Time
}{
	{time.RFC3339Nano, nil},
	{"2006-01-02T15:04:05", nil},
	{"2006-01-02 15:04:05 -0700", nil},
	{"2006-01-02 15:04:05", nil},
	{"2006-01-02T15:04Z07:00", nil},
	{"2006-01-02T15:04", nil},
	{"2006-01-02 15:04", nil},
	{"2006-01-02", func(t time.Time) time.Time { return t.AddDate(0, 0, 1).Add(-time.Second) }},
	{"2006/01/02", func(t time.Time) time.Time { return t.AddDate(0, 0, 1).Add(-time.Second) }},
	{"2006-01", func(t time.Time) time.Time { return t.AddDate(0, 1, 0).Add(-time.Second) }},
	{"2006", func(t time.Time) time.Time { return t.AddDate(1, 0, 0).Add(-time.Second) }},
	{"Jan 2 2006", func(t time.Time) time.Time { return t.AddDate(0, 0, 1).Add(-time.Second) }},
	{"Jan 2, 2006", func(t time.Time) time.Time { return t.AddDate(0, 0, 1).Add(-time.Second) }},
	{"2 Jan 2006", func(t time.Time) time.Time { return t.AddDate(0, 0, 1).Add(-time.Second) }},
}

// parseDate reads an absolute date (ISO 8601; UTC without a zone) or one relative to now. With
// end, it returns the end of a day, month or year. It returns false for any other text.
func parseDate(text string, now time.Time, end bool) (time.Time, bool) {
	text = strings.TrimSpace(text)
	for _, l := range dateLayouts {
		if t, err := time.Parse(l.layout, text); err == nil {
			if end && l.until != nil {
				t = l.until(t)
			}
			return t, true
		}
	}

	// Git also accepts dots for spaces: "2.weeks.ago".
	text = strings.Join(strings.Fields(strings.ReplaceAll(strings.ToLower(text), ".", " ")), " ")
	switch text {
	case "now":
		return now, true
	case "today":
		// The same as today's date written out, so that "until today" includes today.
		return parseDate(now.UTC().Format(time.DateOnly), now, end)
	case "yesterday":
		return now.AddDate(0, 0, -1), true

	case "last week":
		return now.AddDate(0, 0, -7), true
	case "last month":
		return now.AddDate(0, -1, 0), true
	case "last year":
		return now.AddDate(-1, 0, 0), true
	}

	return parseAgo(text, now)
}

// parseAgo reads a date like "3 weeks ago"; false for any other text.
func parseAgo(text string, now time.Time) (time.Time, bool) {
	m := ago.FindStringSubmatch(text)
	if m == nil {
		return time.Time{}, false
	}

	count, err := strconv.Atoi(m[1])
	if err != nil {
		count = 1 // a, an, one
	}

	switch m[2] {
	case "second", "sec":
		return now.Add(-time.Duration(count) * time.Second), true
	case "minute", "min":
		return now.Add(-time.Duration(count) * time.Minute), true
	case "hour":
		return now.Add(-time.Duration(count) * time.Hour), true
	case "day":
		return now.AddDate(0, 0, -count), true
	case "week":
		// By the calendar: a day may have 23 or 25 hours.
		return now.AddDate(0, 0, -7*count), true
	case "month":
		return now.AddDate(0, -count, 0), true
	}

	return now.AddDate(-count, 0, 0), true
}
