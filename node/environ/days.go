package environ

import (
	"fmt"
	"strconv"
	"strings"
)

// Days reads a variable that says for how many days something is kept: usual
// where it is empty, else from least to most.
func Days(text string, usual, least, most int) (int, error) {
	return Number(text, "days", usual, least, most)
}

// Number reads a variable that says how many of something there are: usual where
// it is empty, else from least to most.
func Number(text, unit string, usual, least, most int) (int, error) {
	if text = strings.TrimSpace(text); text == "" {
		return usual, nil
	}

	n, err := strconv.Atoi(text)
	if err != nil || n < least || n > most {
		return 0, fmt.Errorf("want a whole number of %s from %d to %d", unit, least, most)
	}
	return n, nil
}
