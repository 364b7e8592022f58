package api

import (
	"context"
	_ "embed"
)

// openAPIDocument describes every route under /api. It is written by hand;
// tests hold the handlers to it, route by route and field by field.
//
//go:embed openapi.json
var openAPIDocument []byte

// openAPI is GET /api/openapi.json.
func (s *Server) openAPI(_ context.Context, c *call) error {
	c.mime, c.body = mimeJSON, openAPIDocument
	return nil
}
