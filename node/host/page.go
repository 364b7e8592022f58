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
	maxPages = 100_000 // pages of one target

	// Limits of consecutive empty pages. Hosts that omit unreadable entries have some.
	lastEmpty = 3   // a numbered list ends there
	maxEmpty  = 100 // other lists fail there, because a cursor may lead to more
)

// walkPages reads all pages of a list, starting at first. read decodes a page. It returns the URL of
// the next page, or nil after the last, and the number of entries. If the server fails at a large
// page, smaller returns the URL of a smaller one, or nil if there is none. smaller may be nil.
func (c *client) walkPages(ctx context.Context, first *url.URL, smaller func(*url.URL) *url.URL, read func(context.Context, *url.URL) (next *url.URL, entries int, err error)) error {
	seen, empty := map[string]bool{}, 0
	for u := first; u != nil; {
		if seen[u.String()] || len(seen) == maxPages {
			return refusal(InvalidResponse, 0, "the pages of %s go in a circle", c.product)
		}
		seen[u.String()] = true

		next, entries, err := read(ctx, u)
		if err != nil {
			// Some hosts fail at large pages, but answer smaller ones.
			half := (*url.URL)(nil)
			if smaller != nil && smallerMayHelp(err) && ctx.Err() == nil {
				half = smaller(u)
			}
			if half == nil {
				return err
			}
			next = half
		} else if entries > 0 {
			empty = 0
		} else {
			empty++
		}
		if empty == maxEmpty && next != nil {
			return refusal(InvalidResponse, 0, "%s gives %d pages without an entry, and says each time that there are more", c.product, empty)
		}
		u = next
	}
	return nil
}

// forEach calls take for each entry of a page, until it fails.
func forEach[T any](page []T, take func(*T) error) error {
	for i := range page {
		if err := take(&page[i]); err != nil {
			return err
		}
	}
	return nil
}

// listArrays lists all pages that are plain JSON arrays, and calls take for each entry. The function
// next returns the URL of the next page, from the headers and the number of entries. Such pages are
// numbered, so the list ends after some empty pages, whatever the headers say.
func listArrays[T any](ctx context.Context, c *client, first *url.URL, smaller func(*url.URL) *url.URL, take func(*T) error, next func(at *url.URL, head http.Header, entries int) *url.URL) error {
	empty := 0
	return c.walkPages(ctx, first, smaller, func(ctx context.Context, u *url.URL) (*url.URL, int, error) {
		var page []T
		head, err := c.get(ctx, u, &page)
		if err != nil {
			return nil, 0, err
		}

		// Call next first, because it may report what the headers say even if take fails.
		after := next(u, head, len(page))
		if err := forEach(page, take); err != nil {
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

// singleRepoTarget returns a target with the one repository at a URL.
func singleRepoTarget[T any](c *client, name string, at *url.URL, take func(*T, func(Repo, string) error) error) target {
	return target{name: name, list: func(ctx context.Context, found func(Repo, string) error) error {
		var r T
		if _, err := c.getCached(ctx, at, &r); err != nil {
			return err
		}
		return take(&r, found)
	}}
}

// smallerMayHelp reports whether a smaller page may avoid an error: the server was too slow, failed,
// or sent too much.
func smallerMayHelp(err error) bool {
	r := (*Refusal)(nil)
	return errors.As(err, &r) && (r.Code == Unreachable && !isPermanent(r.cause) || r.Status == http.StatusOK && r.Code == InvalidResponse)
}

// halvePages returns a function that halves the size of a numbered page, down to least, for
// walkPages. size is the name of the parameter. The smaller page begins with the same entry.
func halvePages(size string, least int) func(*url.URL) *url.URL {
	return func(u *url.URL) *url.URL {
		q := u.Query()
		n, err := strconv.Atoi(q.Get(size))
		if err != nil || n/2 < least {
			return nil
		}

		// Page 3 of size 100 begins where page 5 of size 50 does.
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

// nextPage returns the URL of the page after one with n entries, from the Link header. If a proxy has
// removed that header, it counts the page number up, until a page is not full.
func (c *client) nextPage(at *url.URL, h http.Header, n int) *url.URL {
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

// nextLink returns the URL with rel="next" in a Link header, or nil. The client refuses URLs of
// other hosts.
func (c *client) nextLink(at *url.URL, h http.Header) *url.URL {
	for _, part := range strings.Split(strings.Join(h.Values("Link"), ","), ",") {
		// The header has several URLs, each with its relation.
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
