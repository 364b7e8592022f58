package query

import "time"

// dates are the forms of dates that at: accepts, in UTC unless they have a zone, with the period
// that each one names. at: means the end of the period.
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

// parseDate returns the first and the last second of the period that a date names, in UTC.
func parseDate(text string) (first, last time.Time, ok bool) {
	for _, m := range dates {
		t, err := time.Parse(m.layout, text)
		if err != nil {
			continue
		}

		// Go to the last second of the year, month or day.
		first := t.UTC()
		if end := t.AddDate(m.years, m.months, m.days); end.After(t) {
			t = end.Add(-time.Second)
		}

		// In UTC the year may differ, and a year with five digits cannot be written back.
		t = t.UTC()
		return first, t, min(first.Year(), t.Year()) >= 0 && t.Year() <= 9999
	}
	return time.Time{}, time.Time{}, false
}
