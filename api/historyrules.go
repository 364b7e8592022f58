package api

import (
	"context"

	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/operate"
)

// historyRuleRoutes handles the rules that take repositories into the index of commits, or leave them out.
type historyRuleRoutes struct{ operate operate.Operator }

func (a *historyRuleRoutes) routes() []route {
	return []route{
		newRoute("GET", "/api/history", accessOwner, quickTimeout, ownerHandler(func(ctx context.Context, c *call, by account.Owner) error {
			return c.answer(a.operate.HistoryRules(ctx, by))
		})),
		newRoute("POST", "/api/history", accessOwner, adminTimeout, ownerHandler(a.set)),
	}
}

// set handles POST /api/history.
func (a *historyRuleRoutes) set(ctx context.Context, c *call, by account.Owner) error {
	f, err := decodeBody(c.requestBody())
	if err != nil {
		return err
	}
	req := operate.HistoryRequest{Glob: f.required("glob")}
	switch rule := f.required("rule"); rule {
	case "include", "exclude", "none":
		req.Include, req.Remove = rule == "include", rule == "none"
	case "":
	default:
		f.wrong("rule", "include, exclude or none")
	}
	if err := f.err(); err != nil {
		return err
	}
	return c.answer(a.operate.SetHistory(ctx, by, req))
}
