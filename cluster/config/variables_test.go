package config

import (
	"strings"
	"testing"
)

// A number outside its limits is an error that names the limits.
func TestVariables_numbersOutsideTheirLimitsAreErrors(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text string
		want int // -1: refused
	}{
		{"", 90}, {"  ", 90}, {"1", 1}, {" 30\n", 30}, {"3650", 3650},
		{"0", -1}, {"3651", -1}, {"-1", -1}, {"1.5", -1}, {"30d", -1}, {"many", -1},
	} {
		got, err := parseWholeNumber(tt.text, 90, 1, 3650, "days")
		if refused := err != nil; refused != (tt.want < 0) || !refused && got != tt.want {
			t.Errorf("%q: %d, %v; want %d", tt.text, got, err, tt.want)
		}
		if err != nil && !strings.Contains(err.Error(), "from 1 to 3650") {
			t.Errorf("%q: %v does not name the bounds", tt.text, err)
		}
	}
}

func TestAuditVariables_refuseInvalidSizes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{"": 180, "0": 0, " 7 ": 7, "36500": 36500} {
		if got, err := AuditDays(text); err != nil || got != want {
			t.Errorf("%q: %d, %v", text, got, err)
		}
	}
	for text, want := range map[string]int{"": 4096, "0": 0, "100": 100} {
		if got, err := AuditDisk(text); err != nil || got != want {
			t.Errorf("%q: %d, %v", text, got, err)
		}
	}
	for text, want := range map[string]Queries{"": NoQueries, "FULL": WholeQueries, "hash": HashedQueries, "off": NoQueries} {
		if got, err := AuditQueries(text); err != nil || got != want {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
	for _, text := range []string{"-1", "4g", "1.5", "99999999999"} {
		if _, err := AuditDisk(text); err == nil {
			t.Errorf("%q is taken for megabytes", text)
		}
	}
	if _, err := AuditQueries("some"); err == nil {
		t.Error("some is taken for what is kept of queries")
	}
}
