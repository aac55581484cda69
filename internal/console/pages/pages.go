package pages

import (
	"github.com/quorate/quorate/internal/console/members"
	"github.com/quorate/quorate/internal/console/page"
)

// All returns the pages.
func All() []page.Page {
	return []page.Page{
		members.Page(),
	}
}
