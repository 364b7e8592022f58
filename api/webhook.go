package api

import (
	"context"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/host"
	"github.com/shoalsearch/shoal/node/operate"
)

// webhooks is what the routes of push events need.
type webhooks interface {
	Webhook(context.Context, account.Owner, operate.WebhookRequest) (*operate.WebhookResponse, error)
	WebhookKeys(ctx context.Context, connection string) (operate.WebhookKeys, error)
	RotateWebhook(context.Context, account.Owner, operate.ConnectionRequest) (operate.WebhookKeys, error)
	Hook(connection string) host.Hook
}

// webhook is POST /api/webhook/{connection}: a code host tells of a push. It
// has to be signed with the connection's secret, in the way of its kind of
// host, or carry an owner's key.
func (s *Server) webhook(ctx context.Context, c *call) error {
	body := c.requestBody()
	by := account.Operator() // who made the signature knows the connection's secret
	keys, err := s.parts.hooks.WebhookKeys(ctx, c.wild[0])
	if err != nil {
		keys = operate.WebhookKeys{} // which proves nothing
	}
	hook, p := s.parts.hooks.Hook(c.wild[0]), c.params()
	delivery := host.Delivery{Header: c.requestHeader, Query: p.text, Body: body, Now: s.opt.Now()}
	if hook.Signed(delivery, keys.Valid()) {
		// A code host is no person, and says thousands of times a day what it says.
		ctx = catalog.WithActor(ctx, catalog.Actor{Type: catalog.ActorSystem})
	} else {
		if err := s.authenticate(ctx, c, accessOwner, false); err != nil {
			return err
		}
		if by, err = account.AsOwner(c.viewer); err != nil {
			return err
		}
		ctx = catalog.WithActor(ctx, c.actor(s.opt.trusted))
	}
	event, err := hook.Read(delivery)
	if err != nil {
		return invalidBody("%v", err)
	}
	r, err := s.parts.hooks.Webhook(ctx, by, operate.WebhookRequest{Connection: c.wild[0], Event: event, Delivery: event.ID})
	if err != nil {
		return err
	}
	c.status = 202
	return c.json(struct {
		Repos []string `json:"repos"`
	}{list(r.Repos)})
}

// webhookSecret is GET /api/webhook/{connection}: what to enter at the code host.
func (s *Server) webhookSecret(ctx context.Context, c *call, _ account.Owner) error {
	keys, err := s.parts.hooks.WebhookKeys(ctx, c.wild[0])
	if err != nil {
		return err
	}
	return s.showWebhook(c, keys)
}

// rotateWebhook is POST /api/webhook/{connection}/rotate: a new secret.
func (s *Server) rotateWebhook(ctx context.Context, c *call, by account.Owner) error {
	keys, err := s.parts.hooks.RotateWebhook(ctx, by, operate.ConnectionRequest{Name: c.wild[0]})
	if err != nil {
		return err
	}
	return s.showWebhook(c, keys)
}

func (s *Server) showWebhook(c *call, keys operate.WebhookKeys) error {
	hook := s.parts.hooks.Hook(c.wild[0])
	return c.json(struct {
		URL           string `json:"url"`
		Secret        string `json:"secret"`
		SigningToken  string `json:"signingToken,omitempty"`
		Steps         string `json:"steps"`
		PreviousUntil string `json:"previousUntil,omitempty"`
	}{s.parts.base + "/api/webhook/" + c.wild[0], keys.Secret, hook.SigningToken(keys.Secret), hook.Steps, stamp(keys.Until)})
}
