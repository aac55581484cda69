package pages

import (
	"slices"

	"github.com/quorate/quorate/internal/console/changes"
	"github.com/quorate/quorate/internal/console/members"
	"github.com/quorate/quorate/internal/console/page"
)

// All returns the pages.
func All() []page.Page {
	return slices.Concat(
		[]page.Page{members.Page()},
		changes.Pages(),
	)
}
