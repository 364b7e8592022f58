package api

import (
	"context"
	"crypto/sha256"
	"encoding/hex"

	"github.com/shoalsearch/shoal/api/web"
)

// page serves the browser pages of package web. They hold no data: what they
// show they fetch from the API as anybody else does.
func (s *Server) page(_ context.Context, c *call) error {
	body, mime, ok := web.Page(c.path)
	if !ok {
		return &failure{Status: 404, Code: codeNotFound, Message: "There is no such page"}
	}
	sum := sha256.Sum256(body)
	tag := `"` + hex.EncodeToString(sum[:12]) + `"`
	c.setHeader("ETag", tag)
	c.setHeader("Cache-Control", "no-cache") // may be kept, but is asked for again
	c.setHeader("Content-Security-Policy", web.CSP)
	c.setHeader("Referrer-Policy", "no-referrer")
	c.setHeader("X-Frame-Options", "DENY")
	if c.requestHeader("If-None-Match") == tag {
		c.status = 304
		return nil
	}
	c.mime, c.body = mime, body
	return nil
}
