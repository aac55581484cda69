package backups

import (
	"embed"

	"github.com/quorate/quorate/internal/console/page"
)

//go:embed *.html
var templates embed.FS

// path is that of the page.
const path = "/backups"

// Page returns the page.
func Page() page.Page {
	return page.Page{
		Path: path, Name: "Backups", About: "The continuous backup: how far it is, and which restore was proven.",
		Templates: templates,
		Sections: []page.Section{
			{ID: "backup-state", Title: "Continuous backup", Live: true, Template: "backup-state", Load: state,
				Command: page.Is("backup", "status")},
			{ID: "backup-proof", Title: "Last proven restore", Live: true, Template: "backup-proof", Load: proof},
			{ID: "backup-change", Title: "Start, change or stop", Wide: true, Template: "backup-change", Load: form},
		},
		Actions: []page.Action{{Path: path + "/start", Do: start}, {Path: path + "/stop", Do: stop}},
	}
}

// Confirm returns the page that says what a form does, before it is done.
func Confirm() page.Page {
	return page.Page{
		Path: path + "/change", Name: "Change the backup", About: "What a change of the backup does, before it is done.",
		Hidden: true, Templates: templates,
		Sections: []page.Section{
			{ID: "backup-confirm", Wide: true, Template: "backup-confirm", Load: confirm, Command: confirmCommand},
		},
	}
}
