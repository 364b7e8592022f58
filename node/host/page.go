package host

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

const (
	maxPages = 100_000 // of one target

	// Pages one behind the other without an entry: hosts that leave out what may not be
	// read have some.
	lastEmpty = 3   // of a numbered list, which ends there
	maxEmpty  = 100 // of others, which fail: a cursor may lead to more
)

// walk reads a listing page by page: read decodes the page at an address and
// says where the next one is, nil behind the last, and how many entries it had. A page that fails for its
// size is asked for again in halves, as far as smaller knows how.
func (c *client) walk(ctx context.Context, first *url.URL, smaller func(*url.URL) *url.URL, read func(context.Context, *url.URL) (next *url.URL, entries int, err error)) error {
	seen, empty := map[string]bool{}, 0
	for u := first; u != nil; {
		if seen[u.String()] || len(seen) == maxPages {
			return refusal(InvalidResponse, 0, "the pages of %s go in a circle", c.product)
		}
		seen[u.String()] = true

		next, entries, err := read(ctx, u)
		if err != nil {
			// Some hosts fail at a page that is too large for them, and answer a smaller one.
			half := (*url.URL)(nil)
			if smaller != nil && tooMuch(err) && ctx.Err() == nil {
				half = smaller(u)
			}
			if half == nil {
				return err
			}
			next = half
		} else if empty++; entries > 0 {
			empty = 0
		}
		if empty == maxEmpty && next != nil {
			return refusal(InvalidResponse, 0, "%s gives %d pages without an entry, and says each time that there are more", c.product, empty)
		}
		u = next
	}
	return nil
}

// each passes on the entries of a page until one is refused.
func each[T any](page []T, take func(*T) error) error {
	for i := range page {
		if err := take(&page[i]); err != nil {
			return err
		}
	}
	return nil
}

// arrays walks a listing whose pages are plain arrays, and passes on each entry. Such
// pages are numbered: behind some empty ones nothing comes, whatever the header says. next says where the page behind one is, by its header and how many it had.
func arrays[T any](ctx context.Context, c *client, first *url.URL, smaller func(*url.URL) *url.URL, take func(*T) error, next func(at *url.URL, head http.Header, entries int) *url.URL) error {
	empty := 0
	return c.walk(ctx, first, smaller, func(ctx context.Context, u *url.URL) (*url.URL, int, error) {
		var page []T
		head, err := c.get(ctx, u, &page)
		if err != nil {
			return nil, 0, err
		}

		// What the header says holds also where an entry is refused.
		after := next(u, head, len(page))
		if err := each(page, take); err != nil {
			return nil, 0, err
		}
		if empty++; len(page) > 0 {
			empty = 0
		}
		if empty == lastEmpty {
			after = nil
		}
		return after, len(page), nil
	})
}

// single is the target of one repository, which the host describes at an address.
func single[T any](c *client, name string, at *url.URL, take func(*T, func(Repo, string) error) error) target {
	return target{name: name, list: func(ctx context.Context, found func(Repo, string) error) error {
		var r T
		if _, err := c.getCached(ctx, at, &r); err != nil {
			return err
		}
		return take(&r, found)
	}}
}

// tooMuch tells an answer that a smaller page may mend: the server was not in
// time, failed, or sent more than is read.
func tooMuch(err error) bool {
	r := (*Refusal)(nil)
	return errors.As(err, &r) && (r.Code == Unreachable && !isPermanent(r.cause) || r.Status == http.StatusOK && r.Code == InvalidResponse)
}

// halves returns what makes pages that are numbered from 1 smaller: half the
// size, and the number at which the same entries begin.
func halves(size string, least int) func(*url.URL) *url.URL {
	return func(u *url.URL) *url.URL {
		q := u.Query()
		n, err := strconv.Atoi(q.Get(size))
		if err != nil || n/2 < least {
			return nil
		}

		// The page begins where it began: page 3 of 100 is page 5 of 50.
		at := max(1, atoi(q.Get("page")))
		q.Set(size, strconv.Itoa(n/2))
		q.Set("page", strconv.Itoa((at-1)*(n/(n/2))+1))

		half := *u
		half.RawQuery = q.Encode()
		return &half
	}
}

func atoi(s string) int {
	n, _ := strconv.Atoi(s)
	return n
}

// behind is the page behind one of n entries that is numbered: by its Link header, or,
// where a proxy ate that, the next number behind a page that is full.
func (c *client) behind(at *url.URL, h http.Header, n int) *url.URL {
	q := at.Query()
	size := atoi(q.Get("per_page"))
	if next := c.nextLink(at, h); next != nil || h.Get("Link") != "" || size == 0 || n < size {
		return next
	}
	q.Set("page", strconv.Itoa(max(1, atoi(q.Get("page")))+1))
	next := *at
	next.RawQuery = q.Encode()
	return &next
}

// nextLink is the address with rel="next" in a Link header, or nil. The
// address is followed as it is given, on the same host only.
func (c *client) nextLink(at *url.URL, h http.Header) *url.URL {
	for _, part := range strings.Split(strings.Join(h.Values("Link"), ","), ",") {
		// The header names several pages, each with what it is to this one.
		target, attributes, ok := strings.Cut(strings.TrimSpace(part), ">")
		if !ok || !strings.Contains(strings.ReplaceAll(attributes, `"`, ""), "rel=next") {
			continue
		}
		u, err := at.Parse(strings.TrimPrefix(target, "<"))
		if err != nil {
			return nil
		}
		return u
	}
	return nil
}
