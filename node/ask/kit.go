package ask

import (
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/shoalsearch/shoal/node/account"
)

// kit is what a turn works with while it is answered, the same for all.
type kit struct {
	sources Sources
	models  *models
	gate    *account.Gate
	lookup  func(variable string) (string, bool)
	now     func() time.Time
	pace    pace
	log     *slog.Logger
}

// mostSteps is how many steps a turn may take.
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
