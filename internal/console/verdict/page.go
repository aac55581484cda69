package verdict

import (
	"embed"

	"github.com/quorate/quorate/internal/console/page"
)

//go:embed *.html
var templates embed.FS

// Page returns the page.
func Page() page.Page {
	return page.Page{
		Path: "/", Name: "Verdict", About: "What is wrong, why, and the command that cures it.",
		Templates: templates,
		Sections: []page.Section{
			{ID: "verdict", Live: true, Wide: true, Template: "verdict", Load: judge, Command: page.Is("doctor",
				"--through-member")},
			{ID: "vitals", Title: "In numbers", Live: true, Wide: true, Template: "vitals", Load: vitals,
				Command: page.Is("status")},
			{ID: "asked", Title: "Members asked", Live: true, Wide: true, Template: "asked", Load: asked,
				Command: page.Is("doctor", "--through-member", "-o", "json")},
		},
	}
}
