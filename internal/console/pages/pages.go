package pages

import (
	"slices"

	"github.com/quorate/quorate/internal/console/alarms"
	"github.com/quorate/quorate/internal/console/audit"
	"github.com/quorate/quorate/internal/console/backups"
	"github.com/quorate/quorate/internal/console/changes"
	"github.com/quorate/quorate/internal/console/documents"
	"github.com/quorate/quorate/internal/console/encryption"
	"github.com/quorate/quorate/internal/console/keys"
	"github.com/quorate/quorate/internal/console/limits"
	"github.com/quorate/quorate/internal/console/members"
	"github.com/quorate/quorate/internal/console/page"
	"github.com/quorate/quorate/internal/console/top"
	"github.com/quorate/quorate/internal/console/traffic"
	"github.com/quorate/quorate/internal/console/users"
	"github.com/quorate/quorate/internal/console/verdict"
)

// All returns the pages.
func All() []page.Page {
	return slices.Concat(
		[]page.Page{verdict.Page(), members.Page()},
		changes.Pages(),
		[]page.Page{traffic.Page(), top.Page()},
		keys.Pages(),
		[]page.Page{users.Page(), users.Confirm()},
		limits.Pages(),
		audit.Pages(),
		[]page.Page{encryption.Page(), alarms.Page(), backups.Page(), backups.Confirm(), documents.Page()},
	)
}
