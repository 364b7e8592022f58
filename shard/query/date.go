package query

import "time"

// dates are the dates that at: takes, in UTC where they name no zone, and how
// much time each names: a day is meant to its end.
var dates = []struct {
	layout              string
	years, months, days int
}{
	{layout: time.RFC3339},
	{layout: "2006-01-02T15:04Z07:00"},
	{layout: "2006-01-02T15:04:05"},
	{layout: "2006-01-02T15:04"},
	{layout: "2006-01-02", days: 1},
	{layout: "2006-01", months: 1},
	{layout: "2006", years: 1},
}

// parseDate reads the value of at: to the last second of what it names, in UTC.
func parseDate(text string) (time.Time, bool) {
	for _, m := range dates {
		t, err := time.Parse(m.layout, text)
		if err != nil {
			continue
		}

		// The last second of the year, month or day that was named.
		if end := t.AddDate(m.years, m.months, m.days); end.After(t) {
			t = end.Add(-time.Second)
		}

		// In UTC it may be of another year, and one of five digits cannot be written back.
		t = t.UTC()
		return t, t.Year() >= 0 && t.Year() <= 9999
	}
	return time.Time{}, false
}
