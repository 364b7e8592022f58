package oauth

import (
	"context"
	"errors"
)

// envelopeBox seals what a browser carries between two requests of a sign-in.
var envelopeBox = box{"shoal-s.", accessRing}

// Envelope seals data that a browser must bring back, so that any node can open it and nothing is
// stored. It is safe for concurrent use.
type Envelope struct{ rings *rings }

// Envelope returns an envelope with the secrets of this server.
func (s *Server) Envelope() *Envelope { return &Envelope{s.rings} }

// Seal returns a value as sealed text of at most a few kilobytes. It returns call.ErrUnavailable if
// the node is not ready.
func (e *Envelope) Seal(ctx context.Context, value any) (string, error) {
	return e.rings.seal(ctx, envelopeBox, value)
}

// Open decodes a sealed text into value. ours is false if this cluster did not seal it. It returns
// call.ErrUnavailable if the node cannot tell yet.
func (e *Envelope) Open(ctx context.Context, text string, value any) (ours bool, err error) {
	err = e.rings.open(ctx, envelopeBox, text, value)
	if errors.Is(err, errNotSealed) {
		return false, nil
	}
	return err == nil, err
}
