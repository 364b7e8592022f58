package call

import "cmp"

// maxPerPage is how many entries a page of a list has at most.
const maxPerPage = 100

// CheckPage holds a request for a part of a list to its bounds, and fills in what
// it leaves open. Pages are counted from 1; one has usual entries unless the
// request names another number.
func CheckPage(page, perPage *int, usual int) error {
	*page, *perPage = cmp.Or(*page, 1), cmp.Or(*perPage, usual)

	switch {
	case *page < 1 || *page > 1<<30:
		return Fail(ErrInvalid, "page must be at least 1")
	case *perPage < 1 || *perPage > maxPerPage:
		return Fail(ErrInvalid, "perPage must be from 1 to %d", maxPerPage)
	}
	return nil
}
