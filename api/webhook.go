package api

import (
	"context"
	"net/netip"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/host"
	"github.com/shoalsearch/shoal/node/operate"
)

// webhookRoutes handles webhooks of code hosts.
type webhookRoutes struct {
	hooks        operate.Operator
	base         func() string
	now          func() time.Time
	trusted      func(netip.Addr) bool // addresses of trusted proxies
	authenticate authenticator
}

func (a *webhookRoutes) routes() []route {
	return []route{
		newRoute("POST", "/api/webhook/{connection}", accessOpen, adminTimeout, a.deliver).withMaxBody(host.MaxDelivery).withProof(a.prove),
		newRoute("GET", "/api/webhook/{connection}", accessOwner, adminTimeout, ownerHandler(a.get)).withMaxBody(host.MaxDelivery),
		newRoute("POST", "/api/webhook/{connection}/rotate", accessOwner, adminTimeout, ownerHandler(a.rotate)),
	}
}

// prove refuses a delivery, by its head only, that has neither a signature, as the connection's kind
// of host sends it, nor an owner's credential. So it refuses unsigned deliveries for unknown
// connections and for connections without webhooks.
func (a *webhookRoutes) prove(ctx context.Context, c *call) error {
	hook, delivery, keys := a.delivery(ctx, c)
	if hook.Signs(delivery, keys.Valid()) {
		return nil
	}
	return a.authenticate(ctx, c, accessOwner)
}

// delivery returns a call as a delivery, how its connection's kind of host signs deliveries, and the
// connection's keys. Without keys no signature is valid.
func (a *webhookRoutes) delivery(ctx context.Context, c *call) (host.Hook, host.Delivery, operate.WebhookKeys) {
	keys, err := a.hooks.DeliveryKeys(ctx, c.pathValues[0])
	if err != nil {
		keys = operate.WebhookKeys{} // an unknown connection has no keys
	}
	return a.hooks.Hook(c.pathValues[0]), host.Delivery{Header: c.requestHeader, Query: c.params().text, Body: c.requestBody(), Now: a.now()}, keys
}

// deliver handles POST /api/webhook/{connection}, by which a code host reports a push. The
// request must be signed with the connection's secret, or have an owner's credential.
func (a *webhookRoutes) deliver(ctx context.Context, c *call) error {
	var err error
	by := account.Operator() // for a signed delivery: its sender knows the secret

	// A signed delivery needs no other credential.
	hook, delivery, keys := a.delivery(ctx, c)
	if hook.Signed(delivery, keys.Valid()) {
		// Record no person or key as the actor: a code host sends thousands of deliveries a day.
		ctx = catalog.WithActor(ctx, catalog.Actor{Type: catalog.ActorSystem})
	} else {
		if err := a.authenticate(ctx, c, accessOwner); err != nil {
			return err
		}
		if by, err = account.AsOwner(c.viewer); err != nil {
			return err
		}
		ctx = catalog.WithActor(ctx, c.actor(a.trusted))
	}

	// Parse the body only after its sender has proved who it is.
	event, err := hook.Read(delivery)
	if err != nil {
		return invalidBody("%v", err)
	}

	r, err := a.hooks.Webhook(ctx, by, operate.WebhookRequest{Connection: c.pathValues[0], Event: event, Delivery: event.ID})
	if err != nil {
		return err
	}

	c.status = 202
	return c.json(struct {
		Repos []string `json:"repos"`
	}{r.Repos})
}

// get handles GET /api/webhook/{connection}: the values to enter at the code host.
func (a *webhookRoutes) get(ctx context.Context, c *call, _ account.Owner) error {
	keys, err := a.hooks.WebhookKeys(ctx, c.pathValues[0])
	if err != nil {
		return err
	}

	return a.show(c, keys)
}

// rotate handles POST /api/webhook/{connection}/rotate: it makes a new secret.
func (a *webhookRoutes) rotate(ctx context.Context, c *call, by account.Owner) error {
	keys, err := a.hooks.RotateWebhook(ctx, by, c.pathValues[0])
	if err != nil {
		return err
	}

	return a.show(c, keys)
}

func (a *webhookRoutes) show(c *call, keys operate.WebhookKeys) error {
	hook := a.hooks.Hook(c.pathValues[0])
	return c.json(struct {
		URL           string `json:"url"`
		Secret        string `json:"secret"`
		SigningToken  string `json:"signingToken,omitempty"`
		Steps         string `json:"steps"`
		PreviousUntil string `json:"previousUntil,omitempty"`
	}{a.base() + "/api/webhook/" + c.pathValues[0], keys.Secret, hook.SigningToken(keys.Secret), hook.Steps, formatTime(keys.Until)})
}
