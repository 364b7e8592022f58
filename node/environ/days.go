package environ

import (
	"fmt"
	"strconv"
	"strings"
)

// Days reads a variable that says for how many days something is kept: usual
// where it is empty, else from least to most.
func Days(text string, usual, least, most int) (int, error) {
	if text = strings.TrimSpace(text); text == "" {
		return usual, nil
	}

	days, err := strconv.Atoi(text)
	if err != nil || days < least || days > most {
		return 0, fmt.Errorf("want a whole number of days from %d to %d", least, most)
	}
	return days, nil
}
