package audit

import (
	"embed"

	"github.com/quorate/quorate/internal/console/page"
)

//go:embed *.html
var templates embed.FS

// Pages returns the pages. The first one is in the navigation.
func Pages() []page.Page {
	return []page.Page{
		{Path: path, Name: "Audit", Templates: templates,
			About: "Who called what: which calls are recorded, where, and the latest records.",
			Sections: []page.Section{
				{ID: "audit-policy", Title: "Which calls are recorded", Wide: true, Template: "audit-policy", Load: policy,
					Command: page.Is("audit", "policy", "show")},
				{ID: "audit-check", Title: "Is a call recorded?", Wide: true, Template: "audit-check",
					Load: check},
				{ID: "audit-outputs", Title: "Where records go", Wide: true, Live: true, Template: "audit-outputs",
					Load: outputs, Command: page.Is("doctor", "--through-member")},
				{ID: "audit-records", Wide: true, Template: "audit-records", Load: records,
					Command: recordsCommand},
				{ID: "audit-verify", Title: "Are the records complete?", Wide: true, Template: "audit-verify", Load: heads,
					Command: page.Is("audit", "heads")},
			}},
		{Path: rulePath, Name: "Change what is recorded", Hidden: true, Templates: templates,
			About: "What it would do, before it is done.",
			Sections: []page.Section{
				{ID: "audit-form", Title: "The rule", Wide: true, Template: "audit-form", Load: form},
				{ID: "audit-preview", Title: "Preview", Wide: true, Template: "audit-preview", Load: preview},
			},
			Actions: []page.Action{{Path: rulePath, Do: set}}},
	}
}
