package ask

import (
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/call"
)

// kit is what a turn works with while it is answered, the same for all.
type kit struct {
	sources Sources
	models  *models
	gate    *account.Gate
	catalog Catalog
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

// stillThere fails where the asker's key has been revoked meanwhile.
func (k *kit) stillThere(v catalog.Viewer) error {
	if v.KeyID != "" && k.catalog.View().Key(v.KeyID) == nil {
		return call.Fail(call.ErrUnauthenticated, "The key of the asker has been revoked.")
	}
	return nil
}
