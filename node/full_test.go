package node_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/node"
	"github.com/shoalsearch/shoal/node/nodetest"
)

// The status tells an operator why a node gets no data.
func TestStatus_saysThatAFullVolumeGetsNoData(t *testing.T) {
	t.Parallel()
	for used, want := range map[int64]string{
		84: "",
		85: "is 85 % full: the node is given no more data until space is made",
		95: "is 95 % full: nothing more is copied to the node or built on it until space is made",
	} {
		n := nodetest.Start(t, nodetest.Config{Edit: func(o *node.Options) {
			o.Space = func(string) (free, total int64) { return 1000 - 10*used, 1000 }
		}})

		nodetest.Wait(t, fmt.Sprintf("the warning of %d %%", used), func() error {
			told := strings.Join(n.Status().Warnings, "\n")
			if strings.Contains(told, "% full") != (want != "") || !strings.Contains(told, want) {
				return fmt.Errorf("warnings %q, want %q", told, want)
			}
			return nil
		})
	}
}
