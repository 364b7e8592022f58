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

// documentRoutes serves the OpenAPI document.
type documentRoutes struct{}

func (documentRoutes) routes() []route {
	return []route{
		newRoute("GET", "/api/openapi.json", accessOpen, 0, serveOpenAPI),
	}
}

// serveOpenAPI handles GET /api/openapi.json.
func serveOpenAPI(_ context.Context, c *call) error {
	c.mime, c.body = mimeJSON, openAPIDocument
	return nil
}
