package limits

import (
	"embed"

	"github.com/quorate/quorate/internal/console/page"
)

//go:embed *.html
var templates embed.FS

// Pages returns the pages. The first one is in the navigation.
func Pages() []page.Page {
	return []page.Page{
		{Path: path, Name: "Limits", Templates: templates,
			About: "What users and applications may take of the cluster, and how near they are to it.",
			Sections: []page.Section{
				{ID: "limits-list", Wide: true, Live: true, Template: "limits-list", Load: list,
					Command: page.Is("limit", "list")},
				{ID: "limits-help", Title: "How limits work", Wide: true, Template: "limits-help", Load: help},
			}},
		{Path: setPath, Name: "Set a limit", Hidden: true, Templates: templates,
			About: "What it would do, before it is done.", Title: setTitle,
			Sections: []page.Section{
				{ID: "limits-form", Title: "The limit", Wide: true, Template: "limits-form", Load: form},
				{ID: "limits-preview", Title: "Preview", Wide: true, Template: "limits-preview", Load: preview,
					Command: setCommand},
			},
			Actions: []page.Action{{Path: setPath, Do: set}}},
		{Path: deletePath, Name: "Delete a limit", Hidden: true, Templates: templates,
			About: "What ends with it, before it is done.",
			Sections: []page.Section{
				{ID: "limits-delete", Wide: true, Template: "limits-delete", Load: confirm, Command: deleteCommand},
			},
			Actions: []page.Action{{Path: deletePath, Do: remove}}},
	}
}
