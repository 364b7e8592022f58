package ask

import (
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/shoalsearch/shoal/node/account"
)

// kit holds what all turns use.
type kit struct {
	sources Sources
	models  *models
	gate    *account.Gate
	lookup  func(variable string) (string, bool)
	now     func() time.Time
	pace    pace
	log     *slog.Logger
}

// mostSteps returns the limit of steps in a turn.
func (k *kit) mostSteps() int {
	text, ok := k.lookup("SOURCEBOT_CHAT_MAX_STEP_COUNT")
	if !ok {
		return usualSteps
	}
	n, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil || n <= 0 {
		return usualSteps
	}
	return n
}
