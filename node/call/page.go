package call

import "cmp"

// maxPerPage is the largest length of a page.
const maxPerPage = 100

// CheckPage checks a page number and length, and sets their defaults. Pages count from 1; usual
// is the default length.
func CheckPage(page, perPage *int, defaultSize int) error {
	*page, *perPage = cmp.Or(*page, 1), cmp.Or(*perPage, defaultSize)

	switch {
	case *page < 1 || *page > 1<<30:
		return Fail(ErrInvalid, "page must be at least 1")
	case *perPage < 1 || *perPage > maxPerPage:
		return Fail(ErrInvalid, "perPage must be from 1 to %d", maxPerPage)
	}
	return nil
}
