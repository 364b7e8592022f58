package oauth

import (
	"context"
	"errors"
)

// envelopeBox is what a browser carries between two requests of a sign-in.
var envelopeBox = box{"shoal-s.", accessRing}

// Envelope seals what a browser has to bring back, so that any node can open it
// and nothing is kept meanwhile. It is safe for concurrent use.
type Envelope struct{ rings *rings }

// Envelope seals with the secrets of this server.
func (s *Server) Envelope() *Envelope { return &Envelope{s.rings} }

// Seal puts a value into a text of at most a few kilobytes. It fails with
// call.ErrUnavailable on a node that is not ready.
func (e *Envelope) Seal(ctx context.Context, value any) (string, error) {
	return e.rings.seal(ctx, envelopeBox, value)
}

// Open takes the value out of a text; ours is false where this cluster did not
// seal it. It fails with call.ErrUnavailable on a node that cannot tell yet.
func (e *Envelope) Open(ctx context.Context, text string, value any) (ours bool, err error) {
	err = e.rings.open(ctx, envelopeBox, text, value)
	if errors.Is(err, errBox) {
		return false, nil
	}
	return err == nil, err
}
