package alarms

import (
	"embed"

	"github.com/quorate/quorate/internal/console/page"
)

//go:embed *.html
var templates embed.FS

// Page returns the page.
func Page() page.Page {
	return page.Page{
		Path: "/alarms", Name: "Alarms and upkeep",
		About:     "Alarms that are raised, the feature level, saved files, automatic repair, and certificates.",
		Templates: templates,
		Sections: []page.Section{
			{ID: "alarms", Title: "Alarms", Live: true, Wide: true, Template: "alarms", Load: standing,
				Command: page.Is("alarm", "list")},
			{ID: "level", Title: "Feature level", Live: true, Template: "level", Load: levels,
				Command: page.Is("upgrade", "status")},
			{ID: "backups", Title: "Backups", Template: "backups", Load: backups,
				Command: page.Is("backup", "status")},
			{ID: "repair", Title: "Automatic repair, and processes that should not run", Live: true,
				Template: "repair", Load: repair, Command: page.Is("member", "list")},
			{ID: "certificates", Title: "Certificates", Template: "certificates", Load: certificates,
				Command: page.Is("doctor", "--through-member", "-o", "json")},
		},
	}
}
